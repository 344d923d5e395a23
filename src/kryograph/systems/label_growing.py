"""Systems that add labels of their own to those given, and train another system on all of them.

Co-training adds, for each class, the nodes that random walks tie most closely to its labelled
ones; self-training those that a first fit is surest of; union and intersection combine both;
multi-stage self-training adds them in several stages (and M3S, which has a file of its own).
What is trained is any system: the setting `inner` names it. Each fit starts anew, with the same
seed.

Validation nodes whose labels are known are never given another: a run scores by them. A node that
two classes ask for goes to the one that ranks it higher.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from kryograph.engine.cost import Estimate
from kryograph.errors import UsageError
from kryograph.graph import NO_NODES, Graph, Indices, Split, Task
from kryograph.systems.base import SYSTEMS, Fit, Probabilities, System, Weights, register, system
from kryograph.systems.lp import absorption
from kryograph.systems.settings import SearchRange, Settings, read_pairs, setting
from kryograph.training.loop import Conditions, Epoch

LI = "Li, Han, Wu: Deeper Insights into Graph Convolutional Networks. AAAI 2018"
SUN = "Sun, Lin, Zhu: Multi-Stage Self-Supervised Learning for GCNs. AAAI 2020"

ClassScores = npt.NDArray[np.float64]
AddedLabels = dict[int, Indices]
"""For each class, the nodes that are given its label, best first."""


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
        """The system that is trained."""
        if self.inner in SYSTEMS and issubclass(SYSTEMS[self.inner], LabelGrowingSystem):
            raise UsageError(f"The inner system {self.inner!r} adds labels itself.")
        changes = read_pairs(self.inner_settings.split(","))
        return system(self.inner, changes, operator=operator)


@dataclass(frozen=True)
class WalkSettings(LabelGrowingSettings):
    """Settings where random walks choose."""

    alpha: float = setting(
        1e-6,
        "α: how soon a walk is absorbed (Li, Han, Wu 2018)",
        low=1e-12,
        below=1e6,
        search=SearchRange(1e-8, 1.0, log=True),
    )


@dataclass(frozen=True)
class StageSettings(LabelGrowingSettings):
    """Settings where labels are added in stages."""

    stages: int = setting(
        4,
        "number of trainings, the first included (ours: the paper's number is not known)",
        low=1,
        below=1000,
        search=(2, 3, 4, 6),
    )


@dataclass(frozen=True)
class CoTrainingSettings(WalkSettings):
    """Settings of co-training."""


@dataclass(frozen=True)
class SelfTrainingSettings(LabelGrowingSettings):
    """Settings of self-training."""


@dataclass(frozen=True)
class UnionSettings(WalkSettings):
    """Settings of union."""


@dataclass(frozen=True)
class IntersectionSettings(WalkSettings):
    """Settings of intersection."""


@dataclass(frozen=True)
class MultiStageSettings(StageSettings):
    """Settings of multi-stage self-training."""


class LabelGrowingSystem(System):
    """Fits the inner system once or more, each time with more labels."""

    component_wise = False  # the classes' surest nodes may lie anywhere
    looks_at_a_fit: ClassVar[bool] = True

    @cached_property
    def inner(self) -> System:
        """What is trained."""
        inner: System = self.settings.system(self.operator)
        return inner

    def _quota(self, task: Task) -> Indices:
        """How many nodes to add to each class: in proportion to its labels."""
        graph, labels = task.graph, task.labels[task.split.train]
        degree = graph.adjacency.nnz / graph.n
        total = 3 * graph.n / max(degree, 1.0) ** self.settings.hops
        counts = np.bincount(labels, minlength=len(task.classes))
        quota: Indices = np.floor(total * counts / labels.size).astype(np.int64)
        return quota

    @abstractmethod
    def _choose(self, task: Task, fit: Fit | None, quota: Indices, seed: int) -> AddedLabels:
        """Which nodes are given which label."""

    def _stages(self) -> int:
        """How often labels are added."""
        return 1

    def _fit(
        self, task: Task, seed: int, conditions: Conditions, on_epoch: Callable[[Epoch], None]
    ) -> Fit:
        """Fit, add labels, fit again, as often as there are stages."""
        stages, now, epochs = self._stages(), task, 0
        fit = None
        if self.looks_at_a_fit or stages == 0:
            fit = self.inner.fit(task, seed=seed, conditions=conditions, on_epoch=on_epoch)
            epochs = fit.epochs
        for _ in range(stages):
            chosen = self._choose(now, fit, self._quota(task), seed)
            if fit is not None and not any(nodes.size for nodes in chosen.values()):
                break  # the same fit would follow, and choose nothing again
            now = grown(now, chosen)
            fit = self.inner.fit(now, seed=seed, conditions=conditions, on_epoch=on_epoch)
            epochs += fit.epochs
        assert fit is not None
        return Fit(task, fit.predict_proba(), epochs, fit.weights)

    def estimate(self, task: Task, conditions: Conditions | None = None) -> Estimate | None:
        inner = self.inner.estimate(task, conditions)
        fits = self._stages() + self.looks_at_a_fit
        return None if inner is None else inner.repeated(fits)

    def apply(self, weights: Weights, graph: Graph, classes: int) -> Probabilities:
        """What was learned last is the inner system's."""
        return self.inner.apply(weights, graph, classes)

    @property
    def inductive(self) -> bool:
        """If the inner system is."""
        return self.inner.inductive

    def embed(self, weights: Weights, graph: Graph, classes: int) -> ClassScores:
        """As the inner system sees them."""
        return self.inner.embed(weights, graph, classes)


def unlabelled_nodes(task: Task) -> Indices:
    """Nodes that may be given a label: neither labelled nor scored by."""
    free = np.ones(task.graph.n, dtype=bool)
    free[task.split.train] = False
    if task.has_validation:
        free[task.split.validation] = False
    return np.flatnonzero(free)


def most(scores: ClassScores, nodes: Indices, count: int) -> Indices:
    """The nodes with the highest scores; of equal ones those with lower numbers."""
    order = np.argsort(-scores[nodes], kind="stable")
    return nodes[order[:count]]


def surest(fit: Fit, nodes: Indices, quota: Indices) -> AddedLabels:
    """For each class, the nodes predicted so with the highest probability."""
    probabilities = fit.predict_proba()
    predicted = probabilities.argmax(axis=1)
    return {
        c: most(probabilities[:, c], nodes[predicted[nodes] == c], count)
        for c, count in enumerate(quota)
    }


def nearest_nodes(task: Task, nodes: Indices, quota: Indices, alpha: float) -> AddedLabels:
    """For each class, the nodes that walks tie most closely to its labelled nodes."""
    train = task.split.train
    near = absorption(task.graph, train, alpha)
    chosen = {}
    for c, count in enumerate(quota):
        scores = near[:, task.labels[train] == c].sum(axis=1)
        chosen[c] = most(scores, nodes[scores[nodes] > 0], count)
    return chosen


def grown(task: Task, added: AddedLabels) -> Task:
    """The task with more labels; there is no test node in it."""
    labels = task.labels.copy()
    rank = np.full(task.graph.n, task.graph.n)
    for c, nodes in added.items():
        places = np.arange(nodes.size)
        first = places < rank[nodes]
        labels[nodes[first]], rank[nodes[first]] = c, places[first]
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
    settings=CoTrainingSettings,
)
class CoTrainingSystem(LabelGrowingSystem):
    """The walk is the other view."""

    looks_at_a_fit = False

    def _choose(self, task: Task, fit: Fit | None, quota: Indices, seed: int) -> AddedLabels:
        return nearest_nodes(task, unlabelled_nodes(task), quota, self.settings.alpha)


@register(
    "self-training",
    summary="Adds the nodes that a first fit is surest of.",
    paper=LI,
    equation="class c gets the t_c nodes predicted c with the largest probability",
    settings=SelfTrainingSettings,
)
class SelfTrainingSystem(LabelGrowingSystem):
    """One round."""

    def _choose(self, task: Task, fit: Fit | None, quota: Indices, seed: int) -> AddedLabels:
        assert fit is not None
        return surest(fit, unlabelled_nodes(task), quota)


class _Both(LabelGrowingSystem):
    """Two opinions on each class."""

    @abstractmethod
    def _combine(self, sure: Indices, near: Indices) -> Indices:
        """The nodes of a class."""

    def _choose(self, task: Task, fit: Fit | None, quota: Indices, seed: int) -> AddedLabels:
        assert fit is not None
        nodes = unlabelled_nodes(task)
        sure = surest(fit, nodes, quota)
        near = nearest_nodes(task, nodes, quota, self.settings.alpha)
        return {c: self._combine(sure[c], near[c]) for c in sure}


@register(
    "union",
    summary="Adds what co-training or self-training would.",
    paper=LI,
    equation="class c gets the nodes of co-training and those of self-training",
    settings=UnionSettings,
)
class UnionSystem(_Both):
    """Either."""

    def _combine(self, sure: Indices, near: Indices) -> Indices:
        return np.concatenate([sure, near[~np.isin(near, sure)]])


@register(
    "intersection",
    summary="Adds what both co-training and self-training would.",
    paper=LI,
    equation="class c gets the nodes that co-training and self-training have in common",
    settings=IntersectionSettings,
)
class IntersectionSystem(_Both):
    """Both."""

    def _combine(self, sure: Indices, near: Indices) -> Indices:
        return sure[np.isin(sure, near)]


@register(
    "multi-stage",
    summary="Self-training in several stages.",
    paper=SUN,
    equation="in each stage, class c gets the next t_c nodes of self-training",
    settings=MultiStageSettings,
)
class MultiStageSystem(SelfTrainingSystem):
    """The first training adds nothing yet."""

    def _stages(self) -> int:
        return int(self.settings.stages) - 1
