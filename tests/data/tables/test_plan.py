from __future__ import annotations

from kryograph.data.tables.plan import NOT_USED, Plan


def test_neighbours_that_are_used_alike_share_a_line() -> None:
    plan = Plan()
    plan.add("nodes.csv", "id", "id")
    for at in range(6):
        plan.add("nodes.csv", f"w{at}", "number")
    for at in range(5):
        plan.add("nodes.csv", f"k{at}", "category", "2 values")
    plan.add("e.csv", "when", NOT_USED, "a reason")
    lines = str(plan).splitlines()
    assert lines[:3] == [
        "nodes.csv  id -> id",
        "nodes.csv  w0 … w5 -> number (6 columns)",
        "nodes.csv  k0 -> category (2 values)",
    ]
    assert lines[-1] == "e.csv      when -> not used (a reason)"
    assert len(plan.as_dicts()) == 13
    assert plan.as_dicts()[-1] == {
        "table": "e.csv",
        "column": "when",
        "use": "not used",
        "detail": "a reason",
    }


def test_columns_of_a_wide_table_share_lines_wherever_they_stand() -> None:
    plan = Plan()
    plan.add("nodes.csv", "id", "id")
    for at in range(2000):
        use = ("category", f"{at} values") if at % 3 else ("number", "")
        plan.add("nodes.csv", f"c{at}", *use)
    plan.add("nodes.csv", "url", NOT_USED, "every value is different")
    plan.add("nodes.csv", "topic", "label", "a 1, b 1")
    assert str(plan).splitlines() == [
        "nodes.csv  id -> id",
        "nodes.csv  c0 … c1998 -> number (667 columns)",
        "nodes.csv  c1 … c1999 -> category (1,333 columns)",
        "nodes.csv  url -> not used (every value is different)",
        "nodes.csv  topic -> label (a 1, b 1)",
    ]
    assert len(plan.as_dicts()) == 2003


def test_names_with_spaces_at_their_ends_or_lines_are_quoted() -> None:
    plan = Plan()
    plan.add("t", "two\nlines", "number")
    plan.add("t", " x", "number")
    plan.add("t", "two words", "number")
    assert str(plan).splitlines() == [
        "t  'two\\nlines' -> number",
        "t  ' x' -> number",
        "t  two words -> number",
    ]
    plan.add("\x1b[31mred.csv", "x", "number")
    assert str(plan).splitlines()[-1] == "'\\x1b[31mred.csv'  x -> number"
    assert str(Plan()) == ""
