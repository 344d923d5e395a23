"""Label the nodes of a graph when only a handful of labels are known.

>>> import kryograph as kg
>>> task = kg.load("synthetic").task("public")
>>> fit = kg.system("linear-snowball", {"layers": 1, "hidden": 8}).fit(task, seed=0)
>>> fit.predict_proba().shape
(2708, 7)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kryograph.data import DATASETS, Dataset, load
    from kryograph.graph import Graph, Split, Task
    from kryograph.labelling.fit_tables import fit
    from kryograph.labelling.labelled_graph import LabelledGraph
    from kryograph.labelling.run_folder import load_run
    from kryograph.operators import Operator, operator
    from kryograph.runs.perform import final_score
    from kryograph.systems import SYSTEMS, Fit, System, system

    __version__: str

__all__ = [
    "DATASETS",
    "SYSTEMS",
    "Dataset",
    "Fit",
    "Graph",
    "LabelledGraph",
    "Operator",
    "Split",
    "System",
    "Task",
    "final_score",
    "fit",
    "load",
    "load_run",
    "operator",
    "system",
]

_MODULES = {
    "data": ("DATASETS", "Dataset", "load"),
    "graph": ("Graph", "Split", "Task"),
    "labelling.fit_tables": ("fit",),
    "labelling.labelled_graph": ("LabelledGraph",),
    "labelling.run_folder": ("load_run",),
    "operators": ("Operator", "operator"),
    "systems": ("SYSTEMS", "Fit", "System", "system"),
    "runs.perform": ("final_score",),
}
"""Module of each public name."""


def __getattr__(name: str) -> Any:
    """Import a public name on demand: torch takes seconds, and the help of a command needs none."""
    if name == "__version__":
        return import_module("importlib.metadata").version("kryograph")
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"kryograph.{module}"), name)
    raise AttributeError(f"module 'kryograph' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__, "__version__"]
