from __future__ import annotations

import pytest

from kryograph.data.tables.faults import MOST_FAULTS, Faults, TableFaults
from kryograph.data.tables.plan import Plan
from kryograph.errors import UsageError


def test_one_fault_is_one_sentence() -> None:
    faults = Faults()
    faults.raise_if_any(Plan())
    assert not faults
    with faults.collected("nodes.csv"):
        raise UsageError("One thing is wrong.")
    with faults.collected("nodes.csv"):
        raise UsageError("One thing is wrong.")
    plan = Plan()
    with pytest.raises(TableFaults, match=r"^One thing is wrong\.$") as raised:
        faults.raise_if_any(plan)
    assert raised.value.plan is plan
    assert raised.value.exit_code == 2


def test_faults_of_a_file_stand_together_and_the_first_twenty_are_listed() -> None:
    faults = Faults()
    for at in range(MOST_FAULTS + 5):
        faults.add("ab"[at % 2], UsageError(f"{'ab'[at % 2]}{at}."))
    with pytest.raises(TableFaults) as raised:
        faults.raise_if_any(Plan())
    lines = str(raised.value).splitlines()
    assert lines[0] == "25 faults:"
    assert lines[1:4] == ["- a0.", "- a2.", "- a4."]
    assert lines[14] == "- b1."
    assert lines[-1] == "- … and 5 more faults."
    assert len(lines) == MOST_FAULTS + 2


def test_other_errors_are_not_collected() -> None:
    faults = Faults()
    with pytest.raises(ValueError, match="not ours"), faults.collected("x"):
        raise ValueError("not ours")
