from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kryograph.session.item import (
    describe_colours,
    describe_map,
    describe_session,
    explain_guess,
    nodes_drawn,
    search_nodes,
)
from kryograph.session.session import LabellingSession
from tests.session.sessions import K, Person, cliques


@pytest.fixture
def session(tmp_path: Path) -> Iterator[LabellingSession]:
    """Without check nodes, so that every guess is displayed."""
    opened = LabellingSession(tmp_path, cliques(known=True), checks=0)
    yield opened
    opened.close()


def numbers(packed: str) -> list[int]:
    return np.frombuffer(base64.b64decode(packed), dtype="<u2").tolist()


def test_the_page_is_told_what_it_shows(session: LabellingSession) -> None:
    session.pick("c1")
    session.pick("c7")
    state = describe_session(session)
    json.dumps(state)
    assert state["classes"] == ["cat", "dog"]
    assert state["counts"] == {
        "nodes": 2 * K,
        "labelled": 2,
        "session": 0,
        "skipped": 0,
        "by_class": [1, 1],
        "undo": 0,
    }
    item = state["item"]
    assert (item["node"], item["label"], item["picked"]) == ("c7", None, True)
    assert item["guess"]["classes"] == ["cat", "dog"]
    assert sum(item["guess"]["p"]) == pytest.approx(1)
    assert item["degree"] == len(item["neighbours"]) == K
    assert item["neighbours"][0] == {"node": "c0", "label": "cat", "predicted": None, "p": None}
    assert item["neighbours"][1] == {"node": "d0", "label": "dog", "predicted": None, "p": None}
    assert item["neighbours"][-1]["predicted"] == "cat"
    assert state["last"] is None


def test_the_reason_is_that_of_the_suggestion(session: LabellingSession) -> None:
    assert "hop" in describe_session(session)["item"]["why"]
    session.pick("c3")
    assert describe_session(session)["item"]["why"] == "You picked this node."
    person = Person(session)
    person.label()
    person.send("undo")
    assert describe_session(session)["item"]["why"] == "You took your last decision back."
    assert describe_session(session)["last"]["op"] == "undo"


def test_a_check_node_shows_no_guess_and_does_not_say_what_it_is(tmp_path: Path) -> None:
    session = LabellingSession(tmp_path, cliques(known=True), checks=1.0)
    item = describe_session(session)["item"]
    assert item["guess"] is None
    assert item["blind"]
    assert not item["picked"]
    assert all(one["predicted"] is None for one in item["neighbours"])
    assert explain_guess(session) is None
    assert "check" not in json.dumps(item)


def test_reasons_are_given_for_a_displayed_guess(session: LabellingSession) -> None:
    session.pick("c5")
    reasons = explain_guess(session)
    assert reasons is not None
    assert (reasons["node"], reasons["classes"]) == ("c5", ["cat", "dog"])
    json.dumps(reasons)


def test_search_lists_names_that_begin_with_the_query_first(session: LabellingSession) -> None:
    assert search_nodes(session, "D3") == ["d3"]
    assert search_nodes(session, "3") == ["c3", "d3"]
    assert search_nodes(session, " ") == []
    assert search_nodes(session, "zebra") == []


def test_the_map_has_colours_at_once_and_positions_later(session: LabellingSession) -> None:
    assert describe_map(session) is None
    colours = describe_colours(session)
    assert numbers(colours["label"]) == [0, *[65535] * 7, 1, *[65535] * 7]
    assert numbers(colours["predicted"]) == [0] * K + [1] * K
    assert min(numbers(colours["probability"])) >= 5000
    session.positions = np.stack([np.arange(2.0 * K), np.zeros(2 * K)], axis=1)
    placed = describe_map(session)
    assert placed is not None
    assert placed["names"] == list(session.decisions.names)
    at = numbers(placed["positions"])
    assert (at[0], at[-2], at[1]) == (0, 65535, 32767)


def test_of_a_large_graph_a_sample_is_drawn() -> None:
    assert nodes_drawn(5).tolist() == [0, 1, 2, 3, 4]
    large = nodes_drawn(50_000)
    assert large.size == 20_000
    assert (np.diff(large) > 0).all()
    assert (large == nodes_drawn(50_000)).all()


def test_without_a_model_nothing_is_predicted(tmp_path: Path) -> None:
    session = LabellingSession(tmp_path, cliques())
    state = describe_session(session)
    assert state["item"]["guess"] is None
    assert set(numbers(describe_colours(session)["predicted"])) == {65535}
    assert state["full"]["behind"] is None
