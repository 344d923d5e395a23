"""A person's own graph: choose a system by the given labels alone, and label every node."""

from kryograph.labelling.label import LabelledGraph, label_nodes

__all__ = ["LabelledGraph", "label_nodes"]
