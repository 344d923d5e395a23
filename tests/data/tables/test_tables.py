from __future__ import annotations

import ast
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import kryograph.data
from kryograph.data import Dataset, load
from kryograph.data.tables import check_for_fit, read_tables
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph
from tests.data.tables.examples import (
    EDGES,
    NODES,
    block,
    read,
    read_people,
)


def test_classes_are_sorted_as_numbers_if_they_are(tmp_path: Path) -> None:
    def classes(*labels: str) -> tuple[tuple[str, ...], list[int]]:
        rows = "".join(f"{i},{label}\n" for i, label in enumerate(labels))
        found = read(tmp_path, None, "id,y\n" + rows, label="y")
        return found.classes, found.labels.tolist()

    assert classes("10", "9", "", "10") == (("9", "10"), [1, 0, UNKNOWN, 1])
    assert classes("10", "9", "x") == (("10", "9", "x"), [0, 1, 2])
    assert classes("2.0", "", "1.0") == (("1", "2"), [1, UNKNOWN, 0])
    assert classes(" b ", "a", "b") == (("a", "b"), [1, 0, 1])


def test_a_label_that_looks_like_none_is_noted(tmp_path: Path) -> None:
    nodes = "id,y\n1,x\n2,?\n3,NA\n"
    tables = read(tmp_path, None, nodes, label="y")
    assert tables.classes == ("?", "x")
    assert any("'?' counts as a class" in note for note in tables.notes)
    assert read(tmp_path, None, nodes, label="y", unknown_label=["?"]).classes == ("x",)
    assert read(tmp_path, None, nodes, label="y", missing=["?"]).classes == ("NA", "x")


def test_what_was_done_to_the_edges_is_noted(tmp_path: Path) -> None:
    tables = read(tmp_path, "source,target\na,a\na,b\na,b\n", None)
    assert tables.notes == ("1 self-loop removed, 1 repeated edge merged (weight: count).",)


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[tuple[str, float]] = []
    read_people(tmp_path, EDGES, NODES, progress=lambda *a: told.append(a))
    assert {stage for stage, _ in told} == {"edges", "nodes", "features"}
    assert told[-1] == ("features", 1.0)
    assert all(0 <= fraction <= 1 for _, fraction in told)


def write_out(data: Dataset, graph: Graph, folder: Path) -> tuple[Path, Path]:
    """A data set as two tables, with the public training labels."""
    assert isinstance(graph.features, sp.csr_array)
    assert data.public is not None
    upper = sp.triu(graph.adjacency).tocoo()
    edges, nodes = folder / "edges.csv", folder / "nodes.csv"
    edges.write_text("".join(f"p{a},p{b}\n" for a, b in zip(upper.row, upper.col, strict=True)))
    train = set(data.public.train.tolist())
    with nodes.open("w") as stream:
        words = ",".join(f"w{at}" for at in range(graph.features.shape[1]))
        stream.write(f"id,{words},topic\n")
        for at, row in enumerate(graph.features.toarray().tolist()):
            label = data.classes[data.labels[at]] if at in train else ""
            stream.write(f"p{at},{','.join(f'{v:.17g}' for v in row)},{label}\n")
    return edges, nodes


def test_cora_written_out_is_cora(cora: Dataset, tmp_path: Path) -> None:
    edges, nodes = write_out(cora, load("cora", normalise=False).graph, tmp_path)
    tables = read_tables(edges, nodes, label="topic")
    assert tables.graph.fingerprint == cora.graph.fingerprint
    assert len(block(tables.columns, "counts")["names"]) == 1433
    assert cora.public is not None
    train = cora.public.train
    np.testing.assert_array_equal(np.flatnonzero(tables.labels != UNKNOWN), train)
    found = [tables.classes[label] for label in tables.labels[train]]
    assert found == [cora.classes[label] for label in cora.labels[train]]


def test_readers_are_loaded_when_they_are_needed() -> None:
    """Training on a known data set must not wait for Arrow or networkx."""
    for path in Path(kryograph.data.__file__).parent.glob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                said = ast.unparse(node)
                assert not any(name in said for name in ("pyarrow", "pandas", "networkx"))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (
            "x,,x,",
            r"All labels in column 'topic' of .*nodes.csv are 'x': there must be two classes",
        ),
        (",,,", r"There are no labels in column 'topic' of .*nodes.csv"),
        ("x,y,x,y", r"All 4 nodes have a label in .*nothing is left to predict"),
    ],
)
def test_nothing_to_learn(tmp_path: Path, labels: str, expected: str) -> None:
    rows = "".join(f"{i},{label}\n" for i, label in enumerate(labels.split(",")))
    tables = read_people(tmp_path, None, "id,topic\n" + rows, text=[])
    with pytest.raises(UsageError, match=expected):
        check_for_fit(tables)


def test_something_to_learn(tmp_path: Path) -> None:
    check_for_fit(read_people(tmp_path, EDGES, NODES))


def test_no_warning_escapes(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_people(tmp_path, EDGES, NODES.replace("4", "1e99"))
