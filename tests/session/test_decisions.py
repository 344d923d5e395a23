from __future__ import annotations

import numpy as np
import pytest

from kryograph.errors import UsageError
from kryograph.session.decisions import Decisions
from kryograph.session.journal import Entry


def entry(number: int, op: str, node: str = "", label: str = "", **values: object) -> Entry:
    return Entry(number, "now", f"id {number}", op, node, label, **values)  # type: ignore[arg-type]


@pytest.fixture
def decisions() -> Decisions:
    """Four nodes, the first of which has a label."""
    return Decisions(["a", "b", "c", "d"], np.array([1, -1, -1, -1]), ["x", "y"])


def test_the_last_label_of_a_node_holds(decisions: Decisions) -> None:
    decisions.apply(entry(1, "label", "b", "x"))
    decisions.apply(entry(2, "label", "b", "y"))
    assert decisions.labels.tolist() == [1, 1, -1, -1]
    assert [one.seq for one in decisions.labelled] == [2]


def test_undo_brings_back_what_held_before(decisions: Decisions) -> None:
    decisions.apply(entry(1, "label", "b", "x"))
    decisions.apply(entry(2, "label", "b", "y"))
    decisions.apply(entry(3, "skip", "c"))
    decisions.apply(entry(4, "label", "a", "x"))
    assert decisions.skipped == [2]
    for number, of in ((5, 4), (6, 3), (7, 2), (8, 1)):
        assert decisions.last is not None
        assert decisions.last.seq == of
        decisions.apply(entry(number, "undo", of=of))
        if number == 5:
            assert decisions.labels.tolist() == [1, 1, -1, -1]
        elif number == 6:
            assert decisions.skipped == []
        elif number == 7:
            assert decisions.labels.tolist() == [1, 0, -1, -1]
    assert decisions.labels.tolist() == [1, -1, -1, -1]
    assert decisions.last is None


def test_a_new_class_comes_last_and_a_known_one_is_kept(decisions: Decisions) -> None:
    decisions.apply(entry(1, "class", label="z"))
    decisions.apply(entry(2, "class", label="x"))
    decisions.apply(entry(3, "label", "d", "z"))
    assert decisions.classes == ["x", "y", "z"]
    assert decisions.labels.tolist() == [1, -1, -1, 2]


@pytest.mark.parametrize(
    ("op", "node", "label", "reason"),
    [
        ("label", "e", "x", "There is no node 'e'"),
        ("skip", "e", "", "There is no node 'e'"),
        ("label", "a", "z", "There is no class 'z'"),
        ("class", "", " ", "A class needs a name"),
        ("class", "", "x", "There is a class 'x' already"),
        ("undo", "", "", "There is nothing to undo"),
    ],
)
def test_nonsense_is_refused(
    decisions: Decisions, op: str, node: str, label: str, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        decisions.check(op, node, label)


def test_replay_names_the_line_of_a_fault(decisions: Decisions) -> None:
    with pytest.raises(UsageError, match="j, line 1: There is no node 'e'"):
        decisions.replay([entry(1, "label", "e", "x")], "j")
    with pytest.raises(UsageError, match="j, line 1: It takes back line 9"):
        decisions.replay([entry(1, "undo", of=9)], "j")


def test_outcomes_are_those_of_predicted_nodes_that_were_displayed_for_a_reason(
    decisions: Decisions,
) -> None:
    check = {"reason": "check", "predicted": "x"}
    decisions.apply(entry(1, "label", "b", "x", **check))
    decisions.apply(entry(2, "label", "c", "y", **check))
    decisions.apply(entry(3, "label", "d", "y", reason="suggested", predicted="y"))
    decisions.apply(entry(4, "label", "a", "y", reason="check"))  # before there was a model
    assert decisions.outcomes("check") == [True, False]
    assert decisions.outcomes("suggested") == [True]
    decisions.apply(entry(5, "undo", of=2))
    assert decisions.outcomes("check") == [True]
