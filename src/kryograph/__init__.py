"""Label the nodes of a graph when only a handful of labels are known.

>>> import kryograph as kg
>>> task = kg.load("synthetic").task("public")
>>> fit = kg.system("linear-snowball", {"layers": 1, "hidden": 8}).fit(task, seed=0)
>>> fit.predict_proba().shape
(2708, 7)
"""

from importlib.metadata import version

from kryograph.data import DATASETS, Dataset, load
from kryograph.graph import Graph, Split, Task
from kryograph.operators import Operator, operator
from kryograph.systems import SYSTEMS, Fit, System, system
from kryograph.training.protocol import final_score

__version__ = version("kryograph")

__all__ = [
    "DATASETS",
    "SYSTEMS",
    "Dataset",
    "Fit",
    "Graph",
    "Operator",
    "Split",
    "System",
    "Task",
    "final_score",
    "load",
    "operator",
    "system",
]
