"""Label every node of one graph: choose a system by the known labels alone, train, calibrate."""

from kryograph.labelling.explanation import Explanation
from kryograph.labelling.fit_tables import check_fit, fit, label_tables
from kryograph.labelling.label import label_nodes
from kryograph.labelling.labelled_graph import LabelledGraph
from kryograph.labelling.predicted import PredictedGraph, model_recipe, predict_tables
from kryograph.labelling.what_if import WhatIf

__all__ = [
    "Explanation",
    "LabelledGraph",
    "PredictedGraph",
    "WhatIf",
    "check_fit",
    "fit",
    "label_nodes",
    "label_tables",
    "model_recipe",
    "predict_tables",
]
