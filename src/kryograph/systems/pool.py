"""Pool: several heads on one basis give one answer; the default system of `kryograph fit`.

p = softmax((Σ_m w_m log p_m) / T + log r). The heads learn from representations of one `Basis`;
their weights w_m come from their predictions for held-out labels (`training.pooling`). T is a
temperature, learned from held-out predictions of the pool itself. r are factors of the classes:
estimated shares over shares among the labels (`training.class_shares`), times a power of the
latter, fitted to the held-out labels.

Folds: up to 4 labels per class are divided into 3 parts, 4 times; up to 12 into 5 parts, 3 times;
more into 5 parts, twice. A network is fitted on the folds of the first draw only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from kryograph.basis import Basis
from kryograph.engine.cost import Estimate
from kryograph.errors import UsageError
from kryograph.explain.contributions import AdditiveForm
from kryograph.graph import Graph, Indices, Task
from kryograph.systems.base import (
    Fit,
    Probabilities,
    System,
    Weights,
    member_systems,
    register,
)
from kryograph.systems.fitted_pool import FittedPool
from kryograph.systems.head import (
    BASIS_HOPS,
    STATE,
    HeadSystem,
    basis_state,
    closed_form_estimate,
    tensors,
)
from kryograph.systems.pool_members import LearnedMember, learn_members, pool_folds
from kryograph.systems.settings import Settings, setting
from kryograph.text import OnProgress, ignore_progress
from kryograph.threads import on_free_cores
from kryograph.training.class_shares import (
    SharePrior,
    accuracy_variance,
    class_shares,
    reweighted,
)
from kryograph.training.loop import DEFAULT_CONDITIONS, Conditions, OnEpoch, ignore_epoch
from kryograph.training.pooling import (
    Evidence,
    Pool,
    PooledMembers,
    logarithms,
    mean_one,
)
from kryograph.training.purpose import PURPOSES, WEIGHTINGS, Purpose, drawn_shares

HEADS = (
    "diffused-logistic:representation=weighted",
    "diffused-logistic:representation=features,penalty=1",
    "diffused-logistic:representation=diffused",
    "diffused-logistic:representation=sum",
    "diffused-logistic:representation=sum,rounds=4,align=true",
    "diffused-logistic:representation=centred",
    "diffused-logistic:representation=hops",
    "diffused-logistic:representation=contrast,penalty=1",
    "diffused-logistic:representation=neighbours,penalty=1",
    "prototypes:representation=sum,rounds=5",
    "prototypes:representation=centred,rounds=5",
    "trees",
)
"""Heads of the default pool."""

NETWORKS = ("truncated-krylov", "dcnn")
"""Networks that join the pool of `kryograph fit` within a budget."""

LABELS = ("as drawn", "balanced", "guess")


@dataclass(frozen=True)
class PoolSettings(Settings):
    """Settings of a pool: its members, its purpose and how labels were drawn."""

    members: str = setting(
        " + ".join(HEADS),
        "the systems, as NAME:SETTING=VALUE,… + NAME; heads share one basis",
        search=(" + ".join(HEADS), " + ".join(HEADS[:-1])),
    )
    metric: str = setting(
        "accuracy",
        "what the pool is made for; 'f1' and 'average-precision' need two classes",
        choices=PURPOSES,
    )
    positive: int = setting(
        -1, "number of the positive class for f1; -1 is the rarer one", low=-1, neutral=-1
    )
    weighting: str = setting(
        "by metric",
        "whether classes count alike in the log-loss ('balanced') or labels do ('none'); 'by "
        "metric' is 'balanced' for balanced accuracy only",
        choices=WEIGHTINGS,
        neutral="by metric",
    )
    labels: str = setting(
        "guess",
        "whether the labels say how frequent classes are ('as drawn') or not ('balanced' by "
        "design); 'guess' takes equal numbers of labels for a design",
        choices=LABELS,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.systems("sym")

    def systems(self, operator: str) -> list[System]:
        """Build the members with this operator."""
        return member_systems(self.members, operator)

    @property
    def purpose(self) -> Purpose:
        """The metric that the pool is made for, and how much each class counts."""
        return Purpose(self.metric, self.weighting, self.positive)


@dataclass(frozen=True, eq=False)
class PoolMember:
    """A member of a fitted pool, with its quality on held-out labels.

    Args:
        system: The system.
        weight: Its share of the pool's weights.
        accuracy: Accuracy on labels that it had not seen.
        loss: Mean log-loss on them.
        epochs: Number of epochs; 0 for a head.
    """

    system: System
    weight: float
    accuracy: float
    loss: float
    epochs: int


@dataclass(frozen=True, eq=False)
class PoolFit(Fit):
    """A fitted pool, with its held-out predictions.

    Args:
        members: Its members, by descending weight.
        nodes: Labelled nodes that were held out at least once.
        held_out: Probabilities of these nodes by pools that have not seen their labels, n × C.
        importance: Weight of each of these nodes in a mean that stands for the whole graph; the
            mean of the weights is 1.
        variance: Variance of the held-out accuracy that is due to the estimated shares of classes.
        transductive_gain: Held-out accuracy of the pool less that of its inductive members, which
            predict other graphs; None if all members are inductive.
        balanced: Whether the labels are taken as balanced by design.
        notes: Sentences about members that were left out.
    """

    members: tuple[PoolMember, ...]
    nodes: Indices
    held_out: Probabilities
    importance: npt.NDArray[np.float64]
    variance: float
    transductive_gain: float | None
    balanced: bool
    notes: tuple[str, ...]


@register(
    "pool",
    summary="Heads on one Krylov basis, weighted by their predictions for held-out labels.",
    paper="kryograph, 2026",
    equation="p = softmax((Σ_m w_m log p_m) / T + log r); w by held-out log-loss, shrunk",
    settings=PoolSettings,
)
class PoolSystem(System[PoolSettings]):
    """The default pool, unless other members are named."""

    uses_operator = False
    component_wise = False  # temperature and weights depend on all labels

    @cached_property
    def members(self) -> list[System]:
        """Systems of the pool; the weights of member k begin with "k."."""
        return self.settings.systems(self.operator)

    def fit(
        self,
        task: Task,
        *,
        seed: int = 0,
        conditions: Conditions = DEFAULT_CONDITIONS,
        on_epoch: OnEpoch = ignore_epoch,
    ) -> PoolFit:
        return self.fit_pool(task, seed=seed)

    @on_free_cores()
    def fit_pool(
        self,
        task: Task,
        *,
        seed: int = 0,
        budget: float | None = None,
        progress: OnProgress = ignore_progress,
    ) -> PoolFit:
        """Fit the members, on all labels and on folds, and pool them.

        Args:
            task: Graph and labels.
            seed: Determines folds and every random draw.
            budget: Seconds of processor time that networks may take together, by prediction; a
                network that would take more is left out with a note. None means no limit.
            progress: Called after each member with the share that is done.
        """
        self.settings.purpose.check(len(task.classes))
        basis, folds = Basis(task.graph), pool_folds(task, seed)
        learned, notes = learn_members(self.members, basis, task, folds, seed, budget, progress)
        evidence, nodes = self._evidence(learned, task, seed)
        whole = evidence.pooled(np.ones(len(learned), dtype=bool))
        labels, drawn = evidence.labels, drawn_shares(task)
        purpose = self.settings.purpose
        plain_ratio = purpose.label_factors(whole.held_out, labels, drawn)
        plain = reweighted(whole.held_out, plain_ratio)
        prior = self._share_prior(task)
        others = np.setdiff1d(np.arange(task.graph.n), task.split.train)
        predicted = whole.probabilities[others] if others.size else whole.probabilities
        shares = class_shares(plain, labels, reweighted(predicted, plain_ratio), prior)
        growth = shares / prior.centre
        ratio = plain_ratio * purpose.decision_factors(plain, labels, shares, growth)
        # Without features, heads learn from eigenvectors, which another graph does not have.
        known_elsewhere = [
            m.system.inductive and (basis.has_features or not isinstance(m.system, HeadSystem))
            for m in learned
        ]
        inductive = np.array(known_elsewhere)
        numbers = np.array([self.members.index(member.system) for member in learned])
        weights = {f"{k}.{name}": v for k, m in enumerate(learned) for name, v in m.weights.items()}
        weights |= {STATE + name: value for name, value in basis.state.items()}
        weights |= {"graph": _fingerprint(task.graph)}
        weights |= _pool_tensors("pool.", whole, numbers, ratio)
        frequency = mean_one(growth[labels])
        held_out, gain = reweighted(whole.held_out, ratio), None
        if inductive.all():
            weights |= _pool_tensors("inductive.", whole, numbers, ratio)
        elif inductive.any():
            rest = evidence.pooled(inductive)
            own = purpose.label_factors(rest.held_out, labels, drawn) * (ratio / plain_ratio)
            weights |= _pool_tensors("inductive.", rest, numbers[inductive], own)
            if labels.size:
                without = _mean_right(reweighted(rest.held_out, own), labels, frequency)
                gain = _mean_right(held_out, labels, frequency) - without
        return PoolFit(
            task=task,
            probabilities=reweighted(whole.probabilities, ratio),
            epochs=max(member.epochs for member in learned),
            weights=weights,
            members=_described(learned, whole.pool, evidence),
            nodes=nodes,
            held_out=held_out,
            importance=frequency,
            variance=accuracy_variance(plain, held_out, labels, shares, prior),
            transductive_gain=gain,
            balanced=prior.observed == 0,
            notes=tuple(notes),
        )

    def _evidence(
        self, learned: Sequence[LearnedMember], task: Task, seed: int
    ) -> tuple[Evidence, Indices]:
        """Predictions of the members, and the nodes that were held out at least once."""
        logs = np.stack([logarithms(member.held_out) for member in learned])
        held = ~np.isnan(logs).any(axis=(0, 1, 3))
        nodes = task.split.train[held]
        labels = task.labels[nodes]
        evidence = Evidence(
            held_out=logs[:, :, held],
            final=np.stack([logarithms(member.probabilities) for member in learned]),
            labels=labels,
            prior=np.array([getattr(member.system, "prior", 1.0) for member in learned]),
            importance=self.settings.purpose.importance(labels, drawn_shares(task)),
            seed=seed,
        )
        return evidence, nodes

    def _share_prior(self, task: Task) -> SharePrior:
        """Prior of the shares of the classes, by the numbers of labels."""
        counts = np.bincount(task.labels[task.split.train], minlength=len(task.classes))
        return SharePrior.of_labels(counts, self.settings.labels)

    def apply(self, weights: Weights, graph: Graph, classes: int) -> Probabilities:
        same = torch.equal(weights["graph"], _fingerprint(graph))
        prefix = "pool." if same else "inductive."
        if prefix + "kept" not in weights:
            raise UsageError(
                "All members of this pool know the nodes of their own graph only, and this is "
                "another one (or its rows are in another order): fit again with this graph."
            )
        fitted = FittedPool.read(self.members, weights, prefix)
        return fitted.probabilities(Basis(graph, basis_state(weights)), classes)

    def apply_changed(
        self, weights: Weights, graph: Graph, changed: Graph, classes: int
    ) -> Probabilities:
        fitted = FittedPool.read(self.members, weights, "pool.")
        basis = Basis(graph, basis_state(weights)).changed(changed)
        return fitted.probabilities(basis, classes)

    def not_recomputed(self, weights: Weights) -> list[str]:
        return FittedPool.read(self.members, weights, "pool.").not_recomputed

    def additive(self, weights: Weights, graph: Graph, classes: int) -> AdditiveForm:
        fitted = FittedPool.read(self.members, weights, "pool.")
        return fitted.additive(Basis(graph, basis_state(weights)), classes)

    def estimate(self, task: Task, conditions: Conditions = DEFAULT_CONDITIONS) -> Estimate | None:
        count = len(self.members)
        total = closed_form_estimate(task, hops=BASIS_HOPS, predictions=10 * count)
        runs = 1 + len([fold for fold in pool_folds(task, 0) if fold.draw == 0])
        for member in self.members:
            if not isinstance(member, HeadSystem):
                own = member.estimate(task, conditions)
                if own is None:
                    return None
                total = replace(own.repeated(runs), after=total)
        return total

    @property
    def inductive(self) -> bool:
        return any(member.inductive for member in self.members)


def _described(
    learned: Sequence[LearnedMember], pool: Pool, evidence: Evidence
) -> tuple[PoolMember, ...]:
    shares = pool.weights / max(pool.weights.sum(), 1e-12)
    right = np.zeros(len(learned))
    if evidence.labels.size:
        right = (evidence.held_out.argmax(axis=-1) == evidence.labels).mean(axis=(1, 2))
    members = [
        PoolMember(m.system, float(share), float(accuracy), float(loss), m.epochs)
        for m, share, accuracy, loss in zip(learned, shares, right, pool.losses, strict=True)
    ]
    return tuple(sorted(members, key=lambda member: -member.weight))


def _pool_tensors(
    prefix: str, pooled: PooledMembers, members: Indices, ratio: npt.NDArray[np.float64]
) -> Weights:
    """Tensors from which `apply` pools the members with these numbers."""
    return tensors(
        **{
            prefix + "weights": pooled.pool.weights,
            prefix + "temperatures": pooled.pool.temperatures,
            prefix + "temperature": np.array(pooled.temperature),
            prefix + "kept": members,
            prefix + "ratio": np.log(ratio),
        }
    )


def _mean_right(
    probabilities: Probabilities, labels: Indices, weights: npt.NDArray[np.float64]
) -> float:
    """Weighted share of nodes whose most probable class is the true one; weights have mean 1."""
    return float((probabilities.argmax(axis=1) == labels) @ weights / len(labels))


def _fingerprint(graph: Graph) -> torch.Tensor:
    return torch.tensor(list(graph.fingerprint.encode()), dtype=torch.uint8)
