"""Label every node of one graph: choose a system by the known labels alone, train, calibrate."""

from kryograph.labelling.label import LabelledGraph, label_nodes

__all__ = ["LabelledGraph", "label_nodes"]
