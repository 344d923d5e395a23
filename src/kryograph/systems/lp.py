"""LP: label propagation by partially absorbing random walks (ParWalks), without features.

P = (D - A + αI)^{-1}; node i takes the label of the labelled node j with the largest P_ij, where A
is the adjacency matrix and D its degrees. P_ij is proportional to the probability that j absorbs a
walk from i; α says how soon. Sums of P_ij over a class would not do: as α → 0 all entries
within a component become equal, and the class with the most labels would win everywhere.
"""

from __future__ import annotations

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
from kryograph.training.loop import DEFAULT_CONDITIONS, Conditions, OnEpoch, ignore_epoch


def absorption(graph: Graph, nodes: Indices, alpha: float) -> npt.NDArray[np.float64]:
    """Compute the columns of (D - A + αI)^{-1} that belong to some nodes: N × len(nodes)."""
    # In double precision: for a small α the matrix is nearly singular in every component.
    matrix = operator(graph, "laplacian").matrix + alpha * sp.eye_array(graph.n)
    columns = np.zeros((graph.n, nodes.size))
    columns[nodes, np.arange(nodes.size)] = 1.0
    # It is symmetric and diagonally dominant: without pivots the factors are several times sparser.
    factors = splu(
        matrix.tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    solution: npt.NDArray[np.float64] = factors.solve(columns)
    # Nothing is absorbed in another component; rounding must not say otherwise.
    _, component = sp.csgraph.connected_components(graph.adjacency, directed=False)
    solution[component[:, None] != component[nodes][None, :]] = 0.0
    return solution


@dataclass(frozen=True)
class LPSettings(Settings):
    """Settings of partially absorbing walks."""

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
class LPSystem(System[LPSettings]):
    """Label propagation; its weights are the indices and the labels of the labelled nodes."""

    uses_features = uses_operator = uses_seed = False
    inductive = False  # labelled nodes are known by their indices

    def fit(
        self,
        task: Task,
        *,
        seed: int = 0,
        conditions: Conditions = DEFAULT_CONDITIONS,
        on_epoch: OnEpoch = ignore_epoch,
    ) -> Fit:
        nodes = task.split.train
        pairs = {"nodes": nodes.copy(), "labels": task.labels[nodes]}
        weights = {name: torch.from_numpy(values) for name, values in pairs.items()}
        return Fit(task, self.apply(weights, task.graph, len(task.classes)), 0, weights)

    def apply(self, weights: Weights, graph: Graph, classes: int) -> Probabilities:
        nodes, labels = weights["nodes"].numpy(), weights["labels"].numpy()
        near = absorption(graph, nodes, self.settings.alpha)
        scores = np.zeros((graph.n, classes))
        for label in np.unique(labels):
            scores[:, label] = near[:, labels == label].max(axis=1)
        # In a component without labelled nodes only the class frequencies are known.
        shares = np.bincount(labels, minlength=classes) / nodes.size
        scores = np.where(scores.max(axis=1, keepdims=True) > 0, scores, shares)
        probabilities: Probabilities = scores / scores.sum(axis=1, keepdims=True)
        return probabilities
