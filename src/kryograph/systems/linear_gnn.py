"""Linear GNNs: least squares on the features and on their means over neighbours, averaged.

Ŷ = Σ_k P^k X W_k / (K + 1), where W_k has the smallest norm among the solutions of least squares on
the labelled rows of P^k X; P is the mean over neighbours, without self-loops. The output of class c
estimates whether a node is of it; `softmax` makes probabilities that are in the same order, but not
sharp. GraphAny mixes such outputs by attention that was learned on another graph; here they count
alike (D34).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import softmax

from kryograph.engine.cost import Estimate
from kryograph.graph import Graph, Task
from kryograph.operators import operator
from kryograph.systems.base import Fit, Probabilities, System, Weights, register
from kryograph.systems.head import closed_form_estimate
from kryograph.systems.settings import Settings, setting
from kryograph.training.loop import DEFAULT_CONDITIONS, Conditions, OnEpoch, ignore_epoch
from kryograph.training.softmax_regression import coordinates


@dataclass(frozen=True)
class LinearGNNSettings(Settings):
    """Settings of linear GNNs: how far their features come from."""

    hops: int = setting(2, "K: the largest power of P", low=0, below=100, search=(0, 1, 2, 3))


@register(
    "linear-gnn",
    summary="Least squares on X, PX and P²X, averaged; no epochs and no parameters.",
    paper="Zhao, Zhu, Galkin, Mostafa, Bronstein, Tang: Fully-inductive Node Classification on "
    "Arbitrary Graphs. ICLR 2025",
    equation="p = softmax(Σ_{k≤K} P^k X W_k / (K + 1)); W_k = (P^k X)_𝓛⁺ Y_𝓛, 𝓛 the labelled nodes",
    settings=LinearGNNSettings,
)
class LinearGNNSystem(System[LinearGNNSettings]):
    """Linear GNNs; a class without labelled nodes is never predicted."""

    uses_operator = uses_seed = False

    def fit(
        self,
        task: Task,
        *,
        seed: int = 0,
        conditions: Conditions = DEFAULT_CONDITIONS,
        on_epoch: OnEpoch = ignore_epoch,
    ) -> Fit:
        graph, nodes = task.graph, task.split.train
        classes = len(task.classes)
        labels = task.labels[nodes]
        onehot = np.eye(classes)[labels]
        walk = operator(graph, "neighbour-mean").matrix
        # Row i of `reached` is row nodes[i] of P^k, so that only labelled rows are multiplied.
        reached = sp.csr_array(sp.eye_array(graph.n, format="csr")[nodes])
        weights = {"labelled": torch.from_numpy(np.bincount(labels, minlength=classes))}
        for k in range(self.settings.hops + 1):
            rows = reached @ graph.features
            gram = rows @ rows.T
            inner = gram.toarray() if isinstance(gram, sp.sparray) else gram
            _, b = coordinates(np.asarray(inner, dtype=np.float64))
            weights[f"{k}"] = torch.from_numpy(np.asarray(rows.T @ (b @ (b.T @ onehot))))
            reached = reached @ walk
        return Fit(task, self.apply(weights, graph, classes), 0, weights)

    def estimate(self, task: Task, conditions: Conditions = DEFAULT_CONDITIONS) -> Estimate | None:
        return closed_form_estimate(task, hops=self.settings.hops)

    def apply(self, weights: Weights, graph: Graph, classes: int) -> Probabilities:
        walk = operator(graph, "neighbour-mean").matrix
        total = np.zeros((graph.n, classes))
        for k in reversed(range(self.settings.hops + 1)):  # by Horner's rule
            total = np.asarray(walk @ total + graph.features @ weights[f"{k}"].numpy())
        logits = total / (self.settings.hops + 1)
        logits[:, weights["labelled"].numpy() == 0] = -np.inf
        probabilities: Probabilities = softmax(logits, axis=1)
        return probabilities
