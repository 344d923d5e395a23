"""Systems that label more nodes themselves and train another system on all labels.

In a stage, class c gets up to t_c = floor(3 N / d^τ · n_c / n) new nodes, where N is the number of
nodes, d the mean degree, τ the setting `hops`, and n_c of the n labels belong to c:

* co-training: the nodes with the largest Σ_{j in c} P_ij, P = (D - A + αI)^{-1} (see `lp`);
* self-training: the nodes predicted c with the largest probability by a first fit;
* union and intersection: what either, or both, of these would add;
* multi-stage: self-training in several stages (and M3S, which has a file of its own).

The setting `inner` names the system that is trained; each fit starts anew, with the same seed.
Validation nodes with known labels never get another label, because runs are scored by them. A node
that two classes choose goes to the class that ranks it higher.

Li, Han, Wu: Deeper Insights into Graph Convolutional Networks. AAAI 2018 (the first four).
Sun, Lin, Zhu: Multi-Stage Self-Supervised Learning for GCNs. AAAI 2020 (multi-stage).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from kryograph.engine.cost import Estimate
from kryograph.errors import UsageError
from kryograph.graph import NO_NODES, Graph, Indices, Split, Task
from kryograph.systems.base import (
    SYSTEMS,
    Embedding,
    Fit,
    Probabilities,
    System,
    Weights,
    register,
    system,
)
from kryograph.systems.lp import LPSettings, absorption
from kryograph.systems.settings import Settings, inherited, read_pairs, setting
from kryograph.training.loop import DEFAULT_CONDITIONS, Conditions, OnEpoch, ignore_epoch

LI = "Li, Han, Wu: Deeper Insights into Graph Convolutional Networks. AAAI 2018"
SUN = "Sun, Lin, Zhu: Multi-Stage Self-Supervised Learning for GCNs. AAAI 2020"

AddedLabels = dict[int, Indices]
"""For each class, the nodes that get its label, best first."""


@dataclass(frozen=True)
class LabelGrowingSettings(Settings):
    """Settings of all systems that add labels."""

    inner: str = setting("gcn", "the system that is trained (GCN in both papers)")
    inner_settings: str = setting("", "what differs from its defaults, such as hidden=32,lr=0.02")
    hops: int = setting(
        2,
        "τ: 3 N / (mean degree)^τ labels are added in all (Li, Han, Wu 2018: the layers of GCN)",
        low=0,
        below=100,
        search=(1, 2, 3, 4),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.system("sym")

    def system(self, operator: str) -> System:
        """Build the inner system with this operator."""
        if self.inner in SYSTEMS and issubclass(SYSTEMS[self.inner], LabelGrowingSystem):
            raise UsageError(f"The inner system {self.inner!r} adds labels itself.")
        changes = read_pairs(self.inner_settings.split(","))
        return system(self.inner, changes, operator=operator)


@dataclass(frozen=True)
class WalkSettings(LabelGrowingSettings):
    """Settings of systems whose labels come from random walks."""

    alpha: float = inherited(LPSettings, "alpha", 1e-6)


@dataclass(frozen=True)
class StageSettings(LabelGrowingSettings):
    """Settings of systems that add labels in stages."""

    stages: int = setting(
        4,
        "number of trainings, the first included (ours: the paper's number is not known)",
        low=1,
        below=1000,
        search=(2, 3, 4, 6),
    )


class LabelGrowingSystem(System[LabelGrowingSettings]):
    """Base of systems that fit the inner system once or more, each time with more labels."""

    component_wise = False  # the nodes that get a label may lie anywhere
    needs_fit: ClassVar[bool] = True
    """Whether new labels depend on a fit without them."""

    @cached_property
    def inner(self) -> System:
        """The system that is trained."""
        return self.settings.system(self.operator)

    def _quota(self, task: Task) -> Indices:
        """t_c, the number of nodes to add to each class."""
        graph, labels = task.graph, task.labels[task.split.train]
        degree = graph.adjacency.nnz / graph.n
        total = 3 * graph.n / max(degree, 1.0) ** self.settings.hops
        counts = np.bincount(labels, minlength=len(task.classes))
        quota: Indices = np.floor(total * counts / labels.size).astype(np.int64)
        return quota

    @abstractmethod
    def _choose(self, task: Task, fit: Fit | None, quota: Indices, seed: int) -> AddedLabels:
        """Choose nodes for each class; `fit` is the last one, None if there is none yet."""

    def _stages(self) -> int:
        """Number of times that labels are added."""
        return 1

    def fit(
        self,
        task: Task,
        *,
        seed: int = 0,
        conditions: Conditions = DEFAULT_CONDITIONS,
        on_epoch: OnEpoch = ignore_epoch,
    ) -> Fit:
        stages, grown_task, epochs = self._stages(), task, 0
        fit = None
        if self.needs_fit or stages == 0:
            fit = self.inner.fit(task, seed=seed, conditions=conditions, on_epoch=on_epoch)
            epochs = fit.epochs
        for _ in range(stages):
            added = self._choose(grown_task, fit, self._quota(task), seed)
            if fit is not None and not any(nodes.size for nodes in added.values()):
                break  # the same fit would follow, and choose nothing again
            grown_task = grown(grown_task, added)
            fit = self.inner.fit(grown_task, seed=seed, conditions=conditions, on_epoch=on_epoch)
            epochs += fit.epochs
        assert fit is not None
        return Fit(task, fit.predict_proba(), epochs, fit.weights)

    def estimate(self, task: Task, conditions: Conditions = DEFAULT_CONDITIONS) -> Estimate | None:
        inner = self.inner.estimate(task, conditions)
        return None if inner is None else inner.repeated(self._stages() + self.needs_fit)

    # The weights are those of the last fit of the inner system, so it applies them.
    def apply(self, weights: Weights, graph: Graph, classes: int) -> Probabilities:
        return self.inner.apply(weights, graph, classes)

    @property
    def inductive(self) -> bool:
        return self.inner.inductive

    @property
    def has_hidden_layer(self) -> bool:
        return self.inner.has_hidden_layer

    def embed(self, weights: Weights, graph: Graph, classes: int) -> Embedding:
        return self.inner.embed(weights, graph, classes)


def unlabelled_nodes(task: Task) -> Indices:
    """Nodes that may get a label: neither training nodes nor validation nodes with labels."""
    free = np.ones(task.graph.n, dtype=bool)
    free[task.split.train] = False
    if task.has_validation:
        free[task.split.validation] = False
    return np.flatnonzero(free)


def _best(scores: npt.NDArray[np.float64], nodes: Indices, count: int) -> Indices:
    """Nodes with the highest scores; of equal ones those with lower indices."""
    order = np.argsort(-scores[nodes], kind="stable")
    return nodes[order[:count]]


def surest(fit: Fit, nodes: Indices, quota: Indices) -> AddedLabels:
    """For each class, the nodes predicted to be in it with the highest probability."""
    probabilities = fit.predict_proba()
    predicted = probabilities.argmax(axis=1)
    return {
        c: _best(probabilities[:, c], nodes[predicted[nodes] == c], count)
        for c, count in enumerate(quota)
    }


def nearest_nodes(task: Task, nodes: Indices, quota: Indices, alpha: float) -> AddedLabels:
    """For each class, the nodes that random walks tie most closely to its labelled nodes."""
    train = task.split.train
    near = absorption(task.graph, train, alpha)
    nearest = {}
    for c, count in enumerate(quota):
        scores = near[:, task.labels[train] == c].sum(axis=1)
        nearest[c] = _best(scores, nodes[scores[nodes] > 0], count)
    return nearest


def grown(task: Task, added: AddedLabels) -> Task:
    """Build the task with more training nodes and without test nodes."""
    labels = task.labels.copy()
    rank = np.full(task.graph.n, task.graph.n)
    for c, nodes in added.items():
        ranks = np.arange(nodes.size)
        first = ranks < rank[nodes]
        labels[nodes[first]], rank[nodes[first]] = c, ranks[first]
    new = np.flatnonzero(rank < task.graph.n)
    split = Split(
        f"{task.split.name} and {new.size} labels added",
        np.union1d(task.split.train, new),
        task.split.validation if task.has_validation else NO_NODES,
        NO_NODES,
    )
    return replace(task, labels=labels, split=split)


@register(
    "co-training",
    summary="Adds the nodes that random walks tie most closely to each class.",
    paper=LI,
    equation="P = (D - A + αI)^{-1}; class c gets the t_c nodes with the largest Σ_{j in c} P_ij",
    settings=WalkSettings,
)
class CoTrainingSystem(LabelGrowingSystem):
    """Co-training with random walks as the second view."""

    settings: WalkSettings
    needs_fit = False

    def _choose(self, task: Task, fit: Fit | None, quota: Indices, seed: int) -> AddedLabels:
        return nearest_nodes(task, unlabelled_nodes(task), quota, self.settings.alpha)


@register(
    "self-training",
    summary="Adds the nodes that a first fit is surest of.",
    paper=LI,
    equation="class c gets the t_c nodes predicted c with the largest probability",
    settings=LabelGrowingSettings,
)
class SelfTrainingSystem(LabelGrowingSystem):
    """Self-training with labels added once."""

    def _choose(self, task: Task, fit: Fit | None, quota: Indices, seed: int) -> AddedLabels:
        assert fit is not None
        return surest(fit, unlabelled_nodes(task), quota)


@register(
    "union",
    summary="Adds what co-training or self-training would.",
    paper=LI,
    equation="class c gets the nodes of co-training and those of self-training",
    settings=WalkSettings,
)
class UnionSystem(SelfTrainingSystem):
    """Union of the nodes of self-training and of co-training."""

    settings: WalkSettings

    def _choose(self, task: Task, fit: Fit | None, quota: Indices, seed: int) -> AddedLabels:
        sure = super()._choose(task, fit, quota, seed)
        near = nearest_nodes(task, unlabelled_nodes(task), quota, self.settings.alpha)
        return {c: self._combine(sure[c], near[c]) for c in sure}

    def _combine(self, sure: Indices, near: Indices) -> Indices:
        """Nodes of one class, given those of self-training and of co-training."""
        return np.concatenate([sure, near[~np.isin(near, sure)]])


@register(
    "intersection",
    summary="Adds what both co-training and self-training would.",
    paper=LI,
    equation="class c gets the nodes that co-training and self-training have in common",
    settings=WalkSettings,
)
class IntersectionSystem(UnionSystem):
    """Intersection of the nodes of self-training and of co-training."""

    def _combine(self, sure: Indices, near: Indices) -> Indices:
        return sure[np.isin(sure, near)]


@register(
    "multi-stage",
    summary="Self-training in several stages.",
    paper=SUN,
    equation="in each stage, class c gets the next t_c nodes of self-training",
    settings=StageSettings,
)
class MultiStageSystem(SelfTrainingSystem):
    """Self-training in several stages; the first training adds nothing yet."""

    settings: StageSettings

    def _stages(self) -> int:
        return self.settings.stages - 1
