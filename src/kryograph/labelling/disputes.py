"""Disputed labels: given labels that held-out predictions doubt (confident learning).

Northcutt, Jiang, Chuang: Confident learning, 2021. The confidence that is usual in a class is the
mean held-out probability of the class over the nodes that were given it. A label is disputed if its
own probability is below the usual one of its class, and another class, which is also the most
probable one, reaches the usual one of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kryograph.graph import Indices
from kryograph.systems.base import Probabilities


@dataclass(frozen=True)
class Dispute:
    """A label that is doubted.

    Args:
        node: Number of the node.
        label: Number of the class that was given.
        predicted: Number of the class that is predicted without the label.
        probability: Held-out probability of the predicted class, calibrated.
    """

    node: int
    label: int
    predicted: int
    probability: float


def find_disputes(
    nodes: Indices, labels: Indices, probabilities: Probabilities
) -> tuple[Dispute, ...]:
    """Find the disputed labels, the most doubtful one first.

    Args:
        nodes: Numbers of the held-out nodes.
        labels: Classes that they were given.
        probabilities: Calibrated held-out probabilities, n × C.

    >>> p = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.3, 0.7]])
    >>> find_disputes(np.arange(4), np.array([0, 0, 0, 1]), p)
    (Dispute(node=2, label=0, predicted=1, probability=0.9),)
    """
    rows, classes = np.arange(len(nodes)), probabilities.shape[1]
    own = probabilities[rows, labels]
    counts = np.bincount(labels, minlength=classes)
    sums = np.bincount(labels, own, minlength=classes)
    usual = np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)
    best = probabilities.argmax(axis=1)
    doubted = (best != labels) & (own < usual[labels]) & (probabilities[rows, best] >= usual[best])
    lead = probabilities[rows, best] - own
    order = [i for i in np.argsort(-lead, kind="stable").tolist() if doubted[i]]
    return tuple(
        Dispute(int(nodes[i]), int(labels[i]), int(best[i]), float(probabilities[i, best[i]]))
        for i in order
    )
