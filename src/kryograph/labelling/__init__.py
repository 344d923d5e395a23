"""A person's own graph: choose a system by the given labels alone, and label every node."""

from kryograph.labelling.fit import Labelled, label_nodes

__all__ = ["Labelled", "label_nodes"]
