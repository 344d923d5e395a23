"""Asking: which node a person is to label next, and what is recorded of its prediction.

A share of the nodes is drawn at random from the unlabelled ones. They are check nodes: only they
say how accurate the model is. The page does not learn which they are. The guess is hidden on all of
them, because a displayed guess is agreed with too easily, and on the same share of the suggested
nodes, so that a hidden guess does not give them away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kryograph.basis import Basis
from kryograph.graph import UNKNOWN, Indices
from kryograph.labelling.suggestions import Suggestion, suggest_nodes
from kryograph.session.decisions import Decisions
from kryograph.session.fast_model import FastPrediction
from kryograph.session.journal import Entry

CHECK, SUGGESTED, PICKED = "check", "suggested", "picked"


@dataclass(frozen=True)
class Question:
    """A node that is displayed, with its prediction at that time.

    Args:
        node: Number of the node; None if all nodes have a label.
        reason: Why: "suggested", "check" or "picked".
        blind: Whether the guess is hidden until the answer.
        suggestion: The suggestion; None for other nodes.
        again: Whether the node is displayed because its last entry was taken back.
    """

    node: int | None
    reason: str
    blind: bool = False
    suggestion: Suggestion | None = None
    again: bool = False


def next_question(
    basis: Basis,
    decisions: Decisions,
    prediction: FastPrediction,
    *,
    checks: float,
    seed: int,
    step: int,
) -> Question:
    """Choose the next node.

    Args:
        basis: Basis of the graph; it is computed once for a session.
        decisions: What was decided until now.
        prediction: Predictions from these labels.
        checks: Share of check nodes.
        seed: Seed of the session.
        step: Number of entries until now; with the seed it determines the draw, so that a server
            that is started again displays the same node.
    """
    labels, skipped = decisions.labels, decisions.skipped
    free = labels == UNKNOWN
    free[skipped] = False
    if not free.any():
        return Question(skipped[0] if skipped else None, PICKED)
    rng = np.random.default_rng([seed, step])
    is_check, hides = rng.random() < checks, rng.random() < checks
    if is_check and prediction.pool is not None:
        return Question(int(rng.choice(np.flatnonzero(free))), CHECK, blind=True)
    suggestion = best_suggestion(basis, labels, skipped, prediction)
    hides = hides and prediction.pool is not None
    return Question(suggestion.node, SUGGESTED, hides, suggestion)


def best_suggestion(
    basis: Basis, labels: Indices, skipped: list[int], prediction: FastPrediction
) -> Suggestion:
    """Choose the node whose label is most useful; there must be a free one.

    Skipped nodes count as labelled, so that the next node is not one that resembles them.
    """
    seen = labels.copy()
    seen[skipped] = prediction.probabilities[skipped].argmax(axis=1)
    return suggest_nodes(basis.graph, seen, prediction.probabilities, 1, basis=basis)[0]


def question_again(entry: Entry, number: int) -> Question:
    """Ask again for a node whose entry was taken back; the guess is hidden if it was a check."""
    return Question(number, entry.reason or PICKED, blind=entry.reason == CHECK, again=True)
