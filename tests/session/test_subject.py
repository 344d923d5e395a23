from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kryograph as kg
from kryograph.data import toy
from kryograph.data.tables import read_tables
from kryograph.errors import UsageError
from kryograph.graph import Graph
from kryograph.session.subject import MOST_FIELDS, Subject

EDGES = {"from": ["ann", "bob", "dee", "eve"], "to": ["bob", "cem", "eve", "fay"]}
PEOPLE = {
    "id": ["ann", "bob", "cem", "dee", "eve", "fay"],
    "age": [31, 45, None, 0, 2.5, 60],
    "town": ["Oslo", "", "Bergen", "Oslo", "Oslo", "Bergen"],
    "topic": ["art", "law", None, None, None, None],
}


def people() -> Subject:
    tables = read_tables(EDGES, PEOPLE, label="topic", category=("town",), keep_sheet=True)
    return Subject.of_tables(tables, "topic")


def test_a_node_shows_the_filled_cells_of_its_row() -> None:
    subject = people()
    assert subject.names == ("ann", "bob", "cem", "dee", "eve", "fay")
    assert subject.fields(0) == [("age", "31"), ("town", "Oslo")]
    assert subject.fields(1) == [("age", "45")]
    assert subject.fields(2) == [("town", "Bergen")]
    assert subject.fields(4) == [("age", "2.5"), ("town", "Oslo")]


def test_cells_are_only_kept_on_demand() -> None:
    assert read_tables(EDGES, PEOPLE, label="topic").sheet is None


def test_of_many_columns_of_numbers_zeros_are_left_out() -> None:
    table = {"id": ["a", "b"]} | {f"w{k}": [k % 3, 0] for k in range(200)}
    tables = read_tables({"from": ["a"], "to": ["b"]}, table, keep_sheet=True)
    fields = Subject.of_tables(tables, None).fields(0)
    assert len(fields) == MOST_FIELDS
    assert fields[:3] == [("w1", "1"), ("w2", "2"), ("w4", "1")]


def test_of_many_columns_of_numbers_dense_ones_are_left_out() -> None:
    table = {"id": ["a", "b", "c"], "age": [1, 2, 3]}
    table |= {f"w{k}": [0, 0, k % 2] for k in range(1, 30)}
    tables = read_tables({"from": ["a"], "to": ["b"]}, table, keep_sheet=True)
    subject = Subject.of_tables(tables, None)
    assert subject.fields(0) == []
    assert dict(subject.fields(2)).keys() == {f"w{k}" for k in range(1, 30, 2)}


def test_without_a_table_a_node_shows_its_features() -> None:
    graph = toy.two_cliques(2)
    assert Subject(graph, np.full(4, -1), ("a", "b")).fields(0) == []
    graph = Graph(graph.adjacency, np.array([[0.5, 0], [0, 0], [-2, 1], [0, 0]]))
    subject = Subject(graph, np.full(4, -1), ("a", "b"), feature_names=("age", "height"))
    assert subject.fields(2) == [("age", "-2"), ("height", "1")]
    assert subject.fields(0) == [("age", "0.5")]
    assert subject.feature_name(1) == "height"
    assert Subject(graph, np.full(4, -1), ()).feature_name(1) == "feature 1"


def test_classes_are_added_after_those_of_the_labels() -> None:
    assert people().with_classes(["zoo", "art"]).classes == ("art", "law", "zoo")
    alone = Subject(toy.path(3), np.full(3, -1), ())
    with pytest.raises(UsageError, match=r"no labels: name them with --classes a,b,c"):
        alone.with_classes([])
    with pytest.raises(UsageError, match="only 'a'"):
        alone.with_classes(["a"])


@pytest.mark.slow
def test_a_finished_run_is_a_subject(tmp_path: Path) -> None:
    people = PEOPLE | {"topic": ["art", "law", "art", None, "law", None]}
    labelled = kg.fit(EDGES, people, label="topic", category=("town",), system="lp")
    subject = Subject.of_run(labelled)
    assert subject.classes == ("art", "law")
    assert subject.labels.tolist() == [0, 1, 0, -1, 1, -1]
    assert subject.system is labelled.model.system
    assert "town = Oslo" in dict(subject.fields(0))
    assert subject.features_graph is subject.graph
