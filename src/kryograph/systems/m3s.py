"""M3S: multi-stage self-training that adds a label only if a cluster agrees.

As multi-stage, of the nodes i with argmax_c p_ic = argmin_c ‖mean(cluster of i) - mean(class c)‖:
nodes are clustered by k-means, each cluster stands for the class whose labelled nodes have the
nearest mean, and class c gets nodes whose prediction and cluster are c.

The clusters are those of the hidden layer of the fit, as in the paper, with rows at unit length; or
those of its log-probabilities (setting `layer`); or of diffused features (setting `view`). Diffused
features err elsewhere than the fit, so more of the added labels are right, but a fit that learns
from them is no better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kryograph.graph import Indices, Task
from kryograph.systems.base import Embedding, Fit, log_probabilities, register
from kryograph.systems.label_growing import (
    SUN,
    AddedLabels,
    MultiStageSystem,
    StageSettings,
    surest,
    unlabelled_nodes,
)
from kryograph.systems.prototypes import PrototypesSettings, diffused
from kryograph.systems.settings import setting

CLUSTER_COLUMNS = 256
"""Wider features are projected to this many columns: the time of k-means grows with the width."""

CLUSTER_ITERATIONS = 50
"""Limit of the iterations of k-means; later ones move a few nodes."""

DECIMALS = 6
"""Points are rounded to this many decimals: closer ones are the same point."""

LAYERS = ("hidden", "log-probabilities")


@dataclass(frozen=True)
class M3SSettings(StageSettings):
    """Settings of M3S, beside those of multi-stage."""

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
    layer: str = setting(
        "hidden",
        "layer that the view 'hidden' clusters: the 'hidden' layer (Sun, Lin, Zhu 2020), or "
        "'log-probabilities', as in runs before this setting existed",
        choices=LAYERS,
        neutral="log-probabilities",
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
    """M3S; if the inner system has no hidden layer, its log-probabilities are clustered."""

    settings: M3SSettings

    def _choose(self, task: Task, fit: Fit | None, quota: Indices, seed: int) -> AddedLabels:
        assert fit is not None
        agreed = cluster_classes(task, self._points(task, fit), self.settings.clusters, seed)
        nodes = unlabelled_nodes(task)
        if self.settings.refill:
            predicted = fit.predict_proba().argmax(axis=1)
            return surest(fit, nodes[agreed[nodes] == predicted[nodes]], quota)
        return {c: some[agreed[some] == c] for c, some in surest(fit, nodes, quota).items()}

    def _points(self, task: Task, fit: Fit) -> Embedding:
        """Points that are clustered: one row at unit length for each node."""
        if self.settings.view == "diffused":
            columns = CLUSTER_COLUMNS if task.graph.features.shape[1] > CLUSTER_COLUMNS else None
            hops = PrototypesSettings().hops
            return diffused(task.graph, self.operator, hops, columns=columns).double().numpy()
        if self.settings.layer == "hidden":
            vectors = self.inner.embed(fit.weights, task.graph, len(task.classes))
        else:
            vectors = log_probabilities(fit.predict_proba())
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        points: Embedding = vectors / np.where(length > 0, length, 1.0)
        return points


def cluster_classes(
    task: Task, points: npt.NDArray[np.float64], clusters: int, seed: int
) -> Indices:
    """For each unlabelled node, the class whose mean is nearest to the mean of its cluster.

    It is -1 for nodes with a known label.
    """
    from sklearn.cluster import KMeans  # slow to import, and only M3S needs it

    # `unique` sorts the points, so k-means does not depend on the order of the nodes.
    distinct, index, counts = np.unique(
        points.round(DECIMALS), axis=0, return_inverse=True, return_counts=True
    )
    means = KMeans(
        min(clusters, len(distinct)), n_init=1, max_iter=CLUSTER_ITERATIONS, random_state=seed
    )
    cluster = means.fit_predict(distinct, sample_weight=counts)[index]
    train, free = task.split.train, unlabelled_nodes(task)
    present = np.unique(task.labels[train])
    class_means = [points[train[task.labels[train] == c]].mean(axis=0) for c in present]
    classes = np.full(task.graph.n, -1)
    for k in np.unique(cluster[free]):
        members = free[cluster[free] == k]
        distance = np.linalg.norm(points[members].mean(axis=0) - class_means, axis=1)
        classes[members] = present[distance.argmin()]
    return classes
