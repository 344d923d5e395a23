from __future__ import annotations

import pytest

from kryograph.errors import KryographError, UsageError, near_misses, unknown


def test_exit_codes() -> None:
    assert KryographError("no network").exit_code == 1
    assert UsageError("no such name").exit_code == 2
    assert issubclass(UsageError, KryographError)


def test_an_unknown_name_lists_all_and_the_nearest() -> None:
    error = unknown("data set", "pubmde", ["cora", "citeseer", "pubmed"])
    assert isinstance(error, UsageError)
    assert str(error) == (
        "Unknown data set 'pubmde': did you mean 'pubmed'? There are: cora, citeseer, pubmed."
    )


def test_a_name_that_is_near_to_nothing_gets_no_hint() -> None:
    message = str(unknown("data set", "zzz", ["cora", "citeseer"]))
    assert "did you mean" not in message
    assert message.endswith("There are: cora, citeseer.")


@pytest.mark.parametrize("name", ["CORA", "Cora"])
def test_upper_and_lower_case_are_near(name: str) -> None:
    assert f"{name!r}: did you mean 'cora'?" in str(unknown("data set", name, ["cora", "pubmed"]))


def test_two_near_names_are_both_told_the_nearest_first() -> None:
    message = str(unknown("system", "snowbal", ["linear-snowball", "snowball", "gcn"]))
    assert "did you mean 'snowball' or 'linear-snowball'?" in message


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in str(unknown("system", "\x1b[31mred\n", ["gcn"]))
    assert "\n" not in str(unknown("system", "\x1b[31mred\n", ["gcn"]))


def test_near_misses_are_at_most_three_and_the_most_similar_first() -> None:
    known = ["topic", "topics", "tropic", "Topical", "id"]
    assert near_misses("topic", known)[0] == "topic"
    assert len(near_misses("topic", known)) == 3
    assert near_misses("TOPICAL", known)[0] == "Topical"
    assert near_misses("weight", known) == []
