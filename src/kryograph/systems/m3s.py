"""M3S: multi-stage self-training that asks a second opinion, of clusters, before it adds a label.

Nodes are clustered by k-means, and each cluster stands for the class whose labelled nodes' mean is
nearest to its own. A label is added only where the cluster agrees. What is clustered is the fit's
hidden layer, as in the paper, or features that are diffused, as prototypes see them: they err
elsewhere than the fit does, so that more of the added labels are right, but a fit that learns from
them is no better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import normalize

from kryograph.graph import Graph, Indices, Task
from kryograph.nn import krylov_blocks
from kryograph.operators import operator
from kryograph.systems.base import Fit, register
from kryograph.systems.label_growing import (
    SUN,
    AddedLabels,
    ClassScores,
    MultiStageSystem,
    StageSettings,
    surest,
    unlabelled_nodes,
)
from kryograph.systems.network import features_on_device
from kryograph.systems.settings import setting

HOPS = 16
"""How often features are diffused, as in prototypes."""

CLUSTER_COLUMNS = 256
"""To how many columns wider features are projected: k-means costs as much as they are wide."""

CLUSTER_ITERATIONS = 50
"""Of k-means at most; later ones move a few nodes."""

DECIMALS = 6
"""To which points are rounded: what differs by less is the same point."""


@dataclass(frozen=True)
class M3SSettings(StageSettings):
    """Settings of M3S."""

    clusters: int = setting(
        200,
        "number of clusters (Sun, Lin, Zhu 2020)",
        low=1,
        below=1_000_000,
        search=(50, 100, 200, 400),
    )
    view: str = setting(
        "hidden",
        "what is clustered: the 'hidden' layer of the fit (Sun, Lin, Zhu 2020), or features that "
        "are 'diffused'; by validation",
        choices=("diffused", "hidden"),
        search=("diffused", "hidden"),
    )
    refill: bool = setting(
        True,
        "the t surest nodes of those whose cluster agrees, by validation; if false, those of the t "
        "surest whose cluster agrees (Sun, Lin, Zhu 2020)",
    )


@register(
    "m3s",
    summary="Multi-stage self-training that checks itself by clustering.",
    paper=SUN,
    equation="as multi-stage, of the nodes whose cluster's nearest class mean agrees",
    settings=M3SSettings,
)
class M3SSystem(MultiStageSystem):
    """Any system can be inside: one without a hidden layer has its log-probabilities clustered."""

    def _choose(self, task: Task, fit: Fit | None, quota: Indices, seed: int) -> AddedLabels:
        assert fit is not None
        agreed = cluster_classes(task, self._points(task, fit), self.settings.clusters, seed)
        nodes = unlabelled_nodes(task)
        if self.settings.refill:
            predicted = fit.predict_proba().argmax(axis=1)
            return surest(fit, nodes[agreed[nodes] == predicted[nodes]], quota)
        return {c: some[agreed[some] == c] for c, some in surest(fit, nodes, quota).items()}

    def _points(self, task: Task, fit: Fit) -> ClassScores:
        """What is clustered, a row for each node."""
        if self.settings.view == "diffused":
            return diffused(task.graph, self.operator)
        hidden = self.inner.embed(fit.weights, task.graph, len(task.classes))
        length = np.linalg.norm(hidden, axis=1, keepdims=True)
        points: ClassScores = hidden / np.where(length > 0, length, 1.0)
        return points


def diffused(graph: Graph, name: str) -> ClassScores:
    """X + LX + … + L^16 X, rows at unit length; of a random projection of X where X is wide."""
    x = features_on_device(graph, "cpu")
    if x.shape[1] > CLUSTER_COLUMNS:
        # Drawn by the number of features alone: the order of the nodes does not matter.
        generator = torch.Generator().manual_seed(x.shape[1])
        x = x @ torch.randn(x.shape[1], CLUSTER_COLUMNS, generator=generator, dtype=x.dtype)
    total = torch.zeros(tuple(x.shape), dtype=x.dtype)
    for block in krylov_blocks(operator(graph, name), x, HOPS + 1):
        total += block
    points: ClassScores = normalize(total, dim=1).double().numpy()
    return points


def cluster_classes(task: Task, points: ClassScores, clusters: int, seed: int) -> Indices:
    """For each node, the class whose labelled nodes' mean is nearest to its cluster's mean.

    -1 for nodes whose label is known.
    """
    from sklearn.cluster import KMeans  # slow to import, and nobody else needs it

    # Sorted, so that the order of the nodes does not matter to where k-means starts.
    distinct, at, counts = np.unique(
        points.round(DECIMALS), axis=0, return_inverse=True, return_counts=True
    )
    means = KMeans(
        min(clusters, len(distinct)), n_init=1, max_iter=CLUSTER_ITERATIONS, random_state=seed
    )
    cluster = means.fit_predict(distinct, sample_weight=counts)[at]
    train, free = task.split.train, unlabelled_nodes(task)
    present = np.unique(task.labels[train])
    of_class = [points[train[task.labels[train] == c]].mean(axis=0) for c in present]
    classes = np.full(task.graph.n, -1)
    for k in np.unique(cluster[free]):
        members = free[cluster[free] == k]
        distance = np.linalg.norm(points[members].mean(axis=0) - of_class, axis=1)
        classes[members] = present[distance.argmin()]
    return classes
