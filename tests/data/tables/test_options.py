from __future__ import annotations

import json
from typing import Any

import pytest

from kryograph.data.tables.options import CHOICES, MISSING_WORDS, Reading, TableOptions
from kryograph.errors import UsageError
from kryograph.merging import REPEAT_RULES

OPTIONS = TableOptions(
    source="from", text=("title",), date=("born=day-first", "joined"), missing=(), repeat="mean"
)


def test_options_survive_json() -> None:
    stored = json.loads(json.dumps(OPTIONS.to_json()))
    assert TableOptions.from_json(stored) == OPTIONS
    reading = Reading(OPTIONS, {"born": "date"}, {"amount": "number"})
    again = Reading.from_json(json.loads(json.dumps(reading.to_json())))
    assert again == reading


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {"kinds": {}, "edge_kinds": {}, "options": {"colour": "red"}},
        {"kinds": {}, "edge_kinds": {}, "options": {"text": [1]}},
        {"kinds": {}, "edge_kinds": {}, "options": {"source": 7}},
        {"kinds": {}, "edge_kinds": {}, "options": {"repeat": "add"}},
        {"kinds": {"x": "smell"}, "edge_kinds": {}, "options": {}},
        {"kinds": [], "edge_kinds": {}, "options": {}},
        {"kinds": {}, "options": {}},
    ],
)
def test_a_damaged_record_is_refused(value: Any) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        Reading.from_json(value)


def test_dates_may_have_an_order() -> None:
    assert OPTIONS.date_orders == {"born": "day-first", "joined": None}
    assert OPTIONS.kinds["date"] == ("born", "joined")
    assert TableOptions(date=["a=b"]).date_orders == {"a=b": None}


def test_options_stand_over_those_of_a_model() -> None:
    mine = TableOptions(source="src", missing=("?",))
    together = mine.over(OPTIONS)
    assert (together.source, together.text, together.repeat) == ("src", ("title",), "mean")
    assert together.missing_words == ("?",)
    assert TableOptions().over(OPTIONS) == OPTIONS
    assert TableOptions().missing_words == MISSING_WORDS
    assert OPTIONS.missing_words == ()


def test_defaults_of_choices() -> None:
    assert TableOptions().choice("zero_weight") == "drop"
    assert TableOptions().choice("absent_nodes") == "error"
    assert TableOptions(id_pad="strip").choice("id_pad") == "strip"
    assert CHOICES["repeat"] == REPEAT_RULES


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"label": "y", "text": ["y"]}, "'y' cannot be the labels and a column of the kind text"),
        ({"label": "y", "id": "y"}, "'y' cannot be the labels and the ids of the nodes"),
        ({"number": ["x"], "category": ["x"]}, "'x' cannot be a column of the kind number and a"),
        ({"ignore": ["x"], "text": ["x"]}, "'x' cannot be a column of the kind text and ignored"),
        ({"ignore": ["x"], "source": "x"}, "'x' cannot be used and ignored"),
        ({"repeat": "add"}, "Unknown value of --repeat 'add'.*There are: sum, max"),
        ({"id_pad": "yes"}, "Unknown value of --id-pad 'yes'"),
    ],
)
def test_contradictions_are_refused(flags: dict[str, Any], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        TableOptions(**flags)


def test_a_column_may_be_named_twice_for_one_use() -> None:
    assert TableOptions(text=["a", "a"]).kinds["text"] == ("a", "a")
    assert "a" in TableOptions(weight="none", text=["a"]).named
    assert "none" not in TableOptions(weight="none").named
