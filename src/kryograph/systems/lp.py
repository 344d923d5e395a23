"""LP: label propagation by partially absorbing random walks (ParWalks). No features, no training.

A walk that starts at node i is absorbed at each node with a small probability; P_ij is
proportional to the probability that node j absorbs it. A node takes the label of the labelled
node with the largest P_ij. The sum over a class's labelled nodes would not do: as α → 0 all
entries within a component become alike, and the class with most labels would win everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import splu

from kryograph.graph import Graph, Indices, Task
from kryograph.operators import operator
from kryograph.systems.base import Fit, Probabilities, System, Weights, register
from kryograph.systems.settings import SearchRange, Settings, setting
from kryograph.training.loop import Conditions, Epoch


def absorption(graph: Graph, nodes: Indices, alpha: float) -> npt.NDArray[np.float64]:
    """The columns of (D - A + αI)^{-1} that belong to some nodes: N × len(nodes)."""
    # In double precision: for a small α the matrix is nearly singular in every component.
    matrix = operator(graph, "laplacian").matrix + alpha * sp.eye_array(graph.n)
    columns = np.zeros((graph.n, nodes.size))
    columns[nodes, np.arange(nodes.size)] = 1.0
    solution: npt.NDArray[np.float64] = splu(matrix.tocsc()).solve(columns)
    # Nothing is absorbed in another component; rounding must not say otherwise.
    _, component = sp.csgraph.connected_components(graph.adjacency, directed=False)
    solution[component[:, None] != component[nodes][None, :]] = 0.0
    return solution


@dataclass(frozen=True)
class LPSettings(Settings):
    """Settings of ParWalks."""

    alpha: float = setting(
        1e-6,
        "α: how soon a walk is absorbed (Li, Han, Wu 2018)",
        low=1e-12,
        below=1e6,
        search=SearchRange(1e-8, 1.0, log=True),
    )


@register(
    "lp",
    summary="Label propagation by partially absorbing random walks; the graph alone.",
    paper="Wu, Li, So, Wright, Chang: Learning with Partially Absorbing Random Walks. NIPS 2012",
    equation="P = (D - A + αI)^{-1}; node i takes the label of argmax_j P_ij, j labelled",
    settings=LPSettings,
)
class LPSystem(System):
    """The operator is always D - A."""

    uses_features = uses_operator = uses_seed = False
    inductive = False  # labelled nodes are known by their numbers

    def _fit(
        self, task: Task, seed: int, conditions: Conditions, on_epoch: Callable[[Epoch], None]
    ) -> Fit:
        """There is nothing to learn but who has which label."""
        nodes = task.split.train
        pairs = {"nodes": nodes.copy(), "labels": task.labels[nodes]}
        weights = {name: torch.from_numpy(values) for name, values in pairs.items()}
        return Fit(task, self.apply(weights, task.graph, len(task.classes)), 0, weights)

    def apply(self, weights: Weights, graph: Graph, classes: int) -> Probabilities:
        """Solve one linear system for all labelled nodes, which are known by their numbers."""
        nodes, labels = weights["nodes"].numpy(), weights["labels"].numpy()
        near = absorption(graph, nodes, self.settings.alpha)
        scores = np.zeros((graph.n, classes))
        for label in np.unique(labels):
            scores[:, label] = near[:, labels == label].max(axis=1)
        # A component without labelled nodes: all that is known is how common the classes are.
        shares = np.bincount(labels, minlength=classes) / nodes.size
        scores = np.where(scores.max(axis=1, keepdims=True) > 0, scores, shares)
        probabilities: Probabilities = scores / scores.sum(axis=1, keepdims=True)
        return probabilities
