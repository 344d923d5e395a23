from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from kryograph.basis import Basis
from kryograph.session.asking import CHECK, PICKED, SUGGESTED, Question, next_question
from kryograph.session.decisions import Decisions
from kryograph.session.fast_model import FastModel, FastPrediction
from kryograph.session.journal import Entry
from tests.session.sessions import CLASSES, K, cliques


@pytest.fixture
def decisions() -> Decisions:
    subject = cliques(known=True)
    return Decisions(subject.names, subject.labels, CLASSES)


def predict(decisions: Decisions) -> FastPrediction:
    subject = cliques()
    return FastModel(subject.features_graph, decisions.labels, 2).predict(decisions.labels, 2)


BASIS = Basis(cliques().graph)


def ask(decisions: Decisions, step: int, checks: float = 0.2) -> Question:
    prediction = predict(decisions)
    return next_question(BASIS, decisions, prediction, checks=checks, seed=0, step=step)


def test_a_share_of_the_nodes_is_drawn_uniformly(decisions: Decisions) -> None:
    prediction = predict(decisions)
    drawn = [
        next_question(BASIS, decisions, prediction, checks=0.5, seed=0, step=step)
        for step in range(1000)
    ]
    checks = [question for question in drawn if question.reason == CHECK]
    assert 440 < len(checks) < 560
    counts = Counter(question.node for question in checks)
    assert set(counts) == set(range(2 * K)) - {0, K}  # all but the labelled ones
    assert min(counts.values()) > 15


def test_a_hidden_guess_does_not_give_a_check_away(decisions: Decisions) -> None:
    prediction = predict(decisions)
    drawn = [
        next_question(BASIS, decisions, prediction, checks=0.2, seed=0, step=step)
        for step in range(500)
    ]
    assert all(question.blind for question in drawn if question.reason == CHECK)
    blind = [question for question in drawn if question.blind and question.reason == SUGGESTED]
    assert 50 < len(blind) < 120


def test_the_same_step_asks_for_the_same_node(decisions: Decisions) -> None:
    assert [ask(decisions, k).node for k in range(5)] == [ask(decisions, k).node for k in range(5)]


def test_without_a_model_nothing_is_a_check() -> None:
    decisions = Decisions(cliques().names, cliques().labels, CLASSES)
    assert {ask(decisions, step, checks=1.0).reason for step in range(3)} == {SUGGESTED}


def test_skipped_nodes_come_again_when_no_other_is_left(decisions: Decisions) -> None:
    names = cliques().names
    for number, name in enumerate(names[1:K] + names[K + 1 :], start=1):
        op = "skip" if name in ("c3", "d2") else "label"
        decisions.apply(Entry(number, "", str(number), op, name, "cat" if op == "label" else ""))
    assert ask(decisions, 1) == Question(3, PICKED)
    for number, name in ((90, "c3"), (91, "d2")):
        decisions.apply(Entry(number, "", str(number), "label", name, "dog"))
    assert ask(decisions, 1).node is None


def test_a_skipped_node_is_not_suggested(decisions: Decisions) -> None:
    first = ask(decisions, 1, checks=0).node
    assert first is not None
    decisions.apply(Entry(1, "", "1", "skip", cliques().names[first]))
    seen = {ask(decisions, step, checks=0.5).node for step in range(60)}
    assert first not in seen
    assert np.isin(list(seen), np.arange(2 * K)).all()
