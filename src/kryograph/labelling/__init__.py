"""Label every node of one graph: choose a system by the known labels alone, train, calibrate."""

from kryograph.labelling.explanation import Explanation
from kryograph.labelling.label import LabelledGraph, label_nodes
from kryograph.labelling.what_if import WhatIf

__all__ = ["Explanation", "LabelledGraph", "WhatIf", "label_nodes"]
