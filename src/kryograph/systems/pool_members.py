"""Members of a pool: each is fitted on all labels and, for held-out predictions, on folds.

Heads share a basis. A system with epochs is fitted on the folds of the first draw only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax

from kryograph.basis import Basis
from kryograph.engine.machine import measure_rates
from kryograph.errors import KryographError
from kryograph.graph import UNKNOWN, Indices, Task
from kryograph.systems.base import Probabilities, System, Weights
from kryograph.systems.head import HeadSystem
from kryograph.text import OnProgress
from kryograph.training.folds import Fold, draw_folds
from kryograph.training.loop import Conditions
from kryograph.training.pooling import best_temperature, logarithms
from kryograph.training.stopping import exactly

SCHEMES = ((4, 3, 4), (12, 5, 3), (np.inf, 5, 2))
"""Up to so many labels per class, so many folds are drawn so many times."""

NETWORK_EPOCHS = 200
"""Number of epochs for which a network is trained."""


@dataclass(frozen=True, eq=False)
class LearnedMember:
    """A fitted member: weights, probabilities of all nodes, and held-out ones (draws × n × C)."""

    system: System
    weights: Weights
    probabilities: Probabilities
    held_out: Probabilities
    epochs: int


def learn_members(
    members: Sequence[System],
    basis: Basis,
    task: Task,
    folds: Sequence[Fold],
    seed: int,
    budget: float | None,
    progress: OnProgress,
) -> tuple[list[LearnedMember], list[str]]:
    """Fit each member; those that fail or would take too long become notes."""
    learned: list[LearnedMember] = []
    notes = []
    spent = 0.0
    for k, member in enumerate(members):
        progress("learning", k / len(members))
        try:
            if isinstance(member, HeadSystem):
                if member.exists(basis):
                    learned.append(_learn_head(member, basis, task, folds, seed))
                continue
            first = [fold for fold in folds if fold.draw == 0]
            estimate = member.estimate(task) if budget is not None else None
            if estimate is not None and budget is not None:
                seconds = estimate.seconds(measure_rates()) * (len(first) + 1)
                if spent + seconds > budget:
                    notes.append(
                        f"{member.name} would take about {seconds:,.0f} s, the budget has "
                        f"{budget - spent:,.0f} s left: it was left out."
                    )
                    continue
                spent += seconds
            learned.append(_learn_network(member, task, first, folds, seed))
        except Exception as error:
            reason = " ".join(str(error).split()).rstrip(".")
            notes.append(f"{member.name} could not be trained ({reason}). It was left out.")
    if not learned:
        raise KryographError(f"No member of the pool could be trained. {' '.join(notes)}")
    progress("learning", 1.0)
    return learned, notes


def held_out_losses(
    head: System, basis: Basis, task: Task, folds: Sequence[Fold], seed: int
) -> npt.NDArray[np.float64]:
    """Log-loss of a head on each labelled node by fits that have not seen its label, tempered."""
    if not isinstance(head, HeadSystem) or not head.exists(basis):
        raise KryographError(f"{head.name} has no such representation of this graph.")
    nodes = task.split.train
    logs = logarithms(_hold_out(head, basis, task, folds, seed))
    held = ~np.isnan(logs).any(axis=(0, 2))
    labels = task.labels[nodes][held]
    t = best_temperature(logs[:, held], labels, np.ones(len(labels)))
    tempered_logs = log_softmax(logs[:, held] / t, axis=-1)
    return np.asarray(-tempered_logs[:, np.arange(len(labels)), labels].mean(axis=0))


def pool_folds(task: Task, seed: int) -> list[Fold]:
    """Folds of the training nodes; fewer labels are divided more often.

    There are none if no class has two labels.
    """
    visible = np.full(task.graph.n, UNKNOWN)
    nodes = task.split.train
    visible[nodes] = task.labels[nodes]
    per_class = nodes.size / max(np.unique(task.labels[nodes]).size, 1)
    _, count, draws = next(scheme for scheme in SCHEMES if per_class <= scheme[0])
    if np.bincount(task.labels[nodes]).max() < 2:
        return []
    return draw_folds(visible, seed, count, draws)


def _positions(nodes: Indices, folds: Sequence[Fold]) -> list[tuple[Indices, Indices]]:
    """Positions of training and held-out nodes in the sorted array `nodes`."""
    order = np.argsort(nodes)

    def find(some: Indices) -> Indices:
        return np.asarray(order[np.searchsorted(nodes, some, sorter=order)])

    return [(find(fold.train), find(fold.held_out)) for fold in folds]


def _hold_out(
    head: HeadSystem, basis: Basis, task: Task, folds: Sequence[Fold], seed: int
) -> Probabilities:
    """Held-out predictions of the training nodes, draws × n × C; NaN if a node was never held."""
    nodes, classes = task.split.train, len(task.classes)
    labels, positions = task.labels[nodes], _positions(nodes, folds)
    held_out = np.full((1 + max((f.draw for f in folds), default=0), nodes.size, classes), np.nan)
    predictions = head.learn_folds(basis, nodes, labels, classes, positions, seed)
    for fold, (_, part), prediction in zip(folds, positions, predictions, strict=True):
        held_out[fold.draw, part] = prediction
    return held_out


def _learn_head(
    head: HeadSystem, basis: Basis, task: Task, folds: Sequence[Fold], seed: int
) -> LearnedMember:
    nodes, classes = task.split.train, len(task.classes)
    held_out = _hold_out(head, basis, task, folds, seed)
    weights = head.learn(basis, nodes, task.labels[nodes], classes, seed)
    return LearnedMember(head, weights, head.score(basis, weights, classes), held_out, 0)


def _learn_network(
    member: System, task: Task, first: Sequence[Fold], folds: Sequence[Fold], seed: int
) -> LearnedMember:
    """Fit a system on the folds of the first draw; other draws repeat its predictions."""
    conditions = Conditions(exactly(NETWORK_EPOCHS))
    nodes = task.split.train
    one_draw = np.full((nodes.size, len(task.classes)), np.nan)
    for fold, (_, part) in zip(first, _positions(nodes, first), strict=True):
        visible = np.full(task.graph.n, UNKNOWN)
        visible[fold.train] = task.labels[fold.train]
        known = Task.labelled(task.graph, visible, task.classes)
        fit = member.fit(known, seed=seed, conditions=conditions)
        one_draw[part] = fit.predict_proba()[fold.held_out]
    fit = member.fit(task, seed=seed, conditions=conditions)
    draws = 1 + max((f.draw for f in folds), default=0)
    held_out = np.repeat(one_draw[None], draws, axis=0)
    return LearnedMember(member, fit.weights, fit.predict_proba(), held_out, fit.epochs)
