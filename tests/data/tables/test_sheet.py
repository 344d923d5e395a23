from __future__ import annotations

import re
from pathlib import Path

import pytest

from kryograph.data.tables.sheet import near_columns
from kryograph.errors import UsageError
from tests.data.tables.examples import (
    NODES,
    sentence,
    sheet,
)


@pytest.mark.parametrize(
    ("nodes", "how", "expected"),
    [
        (
            NODES + "b,1,red,x,y\n",
            {},
            r"nodes.csv, line 6, column 'id': the node id 'b' occurs twice, first on line 3",
        ),
        (NODES + ",1,red,x,y\n", {}, r"nodes.csv, line 6, column 'id': the id is empty"),
        (
            NODES + "e,old,red,x,y\n" + "".join(f"{i},{i},red,,\n" for i in range(50)),
            {},
            r"nodes.csv, line 6, column 'age': 'old' is not a number; if .* say --missing old",
        ),
        (
            NODES + "e,nan,red,x,y\nf,nan,red,x,y\n",
            {},
            r"nodes.csv, line 6, column 'age': 'nan' is not a finite number.*1 more cell like",
        ),
        (NODES + "e,inf,red,x,y\n", {}, r"line 6, column 'age': 'inf' is not a finite"),
        (NODES + "e,1e999,red,x,y\n", {}, r"line 6, column 'age': '1e999' is not a finite"),
        (NODES + "e,1,red\n", {}, r"nodes.csv, line 6, column 3: .*but line 1 has 5"),
        (
            NODES,
            {"label": "topics"},
            r"has no column 'topics' of labels: did you mean 'topic'\? There are: 'id', 'age'",
        ),
        (
            NODES,
            {"text": ["titel"]},
            r"nodes.csv has no column 'titel' for --text: did you mean 'title'",
        ),
        (
            NODES,
            {"ignore": ["agee"]},
            r"nodes.csv has no column 'agee' for --ignore: did you mean 'age'",
        ),
        (NODES, {"id": "ids"}, r"nodes.csv has no column 'ids' of ids: did you mean 'id'"),
        ("a,x\nb,y\n", {"label": "Y", "text": []}, r"has no column 'Y' of labels"),
        ("who,topic\na,x\n", {"label": "Topic", "text": []}, r"did you mean 'topic'"),
        (NODES, {"id": "topic"}, r"'topic' cannot be the labels and the ids of the nodes"),
        (NODES, {"label": "title"}, r"'title' cannot be the labels and a column of the kind text"),
        (NODES, {"text": ["empty"]}, r"no column 'empty'"),
        (
            NODES.replace("one two", "").replace("two three", "").replace("four", ""),
            {},
            r"nodes.csv: there is no word in the text of 'title'",
        ),
        (
            "id,kind\n" + "".join(f"n{i},x{i}\n" for i in range(60)),
            {"label": None, "text": [], "category": ["kind"]},
            r"column 'kind': it has more than 50 different values.*--text kind.*--ignore kind",
        ),
        (
            "id,topic\n" + "".join(f"n{i},x{i}\n" for i in range(60)),
            {"text": []},
            r"column 'topic': more than 50 different values, too many for classes",
        ),
        (NODES.encode("utf-16"), {}, r"UTF-16"),
        (
            NODES.encode() + b"e,1,\xff,x,y\n",
            {},
            r"nodes.csv, line 6, byte 5: the byte 0xFF is not UTF-8",
        ),
        ("", {}, r"nodes.csv is empty"),
        ("id,age,colour,title,topic\n", {}, r"nodes.csv has a header, line 1, but no rows"),
        ("id,age,age,title,topic\na,1,2,x,y\n", {}, r"line 1: 'age' stands more than once"),
    ],
)
def test_bad_nodes(
    tmp_path: Path, nodes: str | bytes, how: dict[str, object], expected: str
) -> None:
    assert re.search(expected, sentence(tmp_path, None, nodes, **how))


@pytest.mark.parametrize("written", ["1", " 1 ", "+1", "1.0", "1e0", "1.", "10e-1", "0.1E+1", "01"])
def test_ways_to_write_a_number(written: str) -> None:
    cells = sheet(x=[written, "2"]).numbers("x")
    assert cells is not None
    assert cells.values.tolist() == [1.0, 2.0]


def test_nine_in_ten_make_a_column_of_numbers() -> None:
    mostly = ["1"] * 8 + ["x", ""]
    assert sheet(x=mostly).numbers("x") is None  # 8 of 9
    with pytest.raises(UsageError, match=r"line 11, column 'x': 'x' is not a number"):
        sheet(x=["1", *mostly]).numbers("x")  # 9 of 10
    with pytest.raises(UsageError, match=r"line 2, column 'x': 'old' is not a number"):
        sheet(x=["old", "1"]).numbers("x", required=True)


def test_near_misses_of_many_columns_stay_short() -> None:
    said = near_columns("w17x", [f"w{at}" for at in range(1000)])
    assert said.startswith(": did you mean 'w17'")
    assert said.endswith("There are 1,000 columns, the first 'w0', 'w1', 'w2'.")
