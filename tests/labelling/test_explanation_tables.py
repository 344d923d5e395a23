from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kryograph.data import toy
from kryograph.explain.contributions import Contributions
from kryograph.graph import UNKNOWN, Graph
from kryograph.labelling import LabelledGraph, label_nodes
from kryograph.labelling.explanation_tables import NEAREST, NO_FEATURE, explanation_tables
from kryograph.systems import system


@pytest.fixture(scope="module")
def star() -> LabelledGraph:
    """A star with the centre 0, and one node alone; features are four numbers."""
    graph = toy.disjoint(toy.star(7), toy.isolated(1))
    features = np.random.default_rng(0).normal(size=(8, 4))
    labels = np.array([0, 0, 0, 1, 1, 1, UNKNOWN, UNKNOWN])
    named = Graph(graph.adjacency, features, tuple("abcdefgh"))
    labelled = label_nodes(named, labels, ("x", "y"), systems=[system("diffused-logistic")])
    return replace(labelled, feature_names=("age", "v[0]", "v[1]", "v[2]"))


PARTS = Contributions(
    intercept=0.0,
    hops=np.array([1.0, 2.0, 4.0]),
    nodes=np.array([1.0, 5.0, -3.0, 0.0, 4.0, 0.0, 0.0, 0.0]),
    neighbours=np.array([0.25, 3.0, -1.0, 4.0, 0.5, 0.25, 0.0, 0.0]),
    features=np.array([1.0, 2.0, -1.0, 0.5]),
    structure=4.5,
    others={"trees:leaf=2": 2.0, "trees": 1.0},
    members={"trees:leaf=2": 2.0, "trees": 1.0, "head": -7.0},
)


def lines(labelled: LabelledGraph, name: str, top: int = 2) -> list[tuple[str, float]]:
    table = explanation_tables(labelled, 0, PARTS, top)[name]
    return [(row["name"], row["log_odds"]) for row in table.to_pylist()]


OTHERS = ("members without an exact form: trees", 3.0)


def test_hops_are_listed_in_full(star: LabelledGraph) -> None:
    assert lines(star, "hops", 1) == [
        ("own features", 1.0),
        ("1 hop", 2.0),
        ("2 hops", 4.0),
        OTHERS,
    ]


def test_the_own_part_stands_before_the_strongest_neighbours(star: LabelledGraph) -> None:
    assert lines(star, "neighbours") == [
        ("a (itself)", 0.25),
        ("d", 4.0),
        ("b", 3.0),
        ("3 other neighbours", -0.25),
        OTHERS,
    ]
    table = explanation_tables(star, 0, PARTS, 2)["neighbours"]
    assert table["weight"].to_pylist() == [None, 1.0, 1.0, None, None]


def test_nodes_come_with_their_given_labels(star: LabelledGraph) -> None:
    table = explanation_tables(star, 0, PARTS, 2)["nodes"]
    assert table["node"].to_pylist() == ["b", "e", None, None]
    assert table["given"].to_pylist() == ["x", "y", None, None]
    assert lines(star, "nodes")[2:] == [("2 other nodes", -2.0), OTHERS]
    assert lines(star, "nodes", 9)[-1] == OTHERS  # nodes that contribute nothing are no line
    assert len(lines(star, "nodes", 9)) == 5


def test_entries_of_a_vector_are_one_feature(star: LabelledGraph) -> None:
    assert lines(star, "features") == [("v", 1.5), ("age", 1.0), (NO_FEATURE, 4.5), OTHERS]
    unnamed = replace(star, feature_names=None)
    assert lines(unnamed, "features", 1)[:2] == [("feature 1", 2.0), ("3 other features", 0.5)]


def test_members_say_whether_they_are_divided(star: LabelledGraph) -> None:
    table = explanation_tables(star, 0, PARTS, 2)["members"]
    assert table["member"].to_pylist() == ["head", "trees:leaf=2", "trees"]
    assert table["divided"].to_pylist() == [True, False, False]


def test_the_most_similar_labelled_nodes_are_others_in_order(star: LabelledGraph) -> None:
    table = explanation_tables(star, 0, PARTS, 2)["given_nearest"]
    assert table.num_rows == NEAREST
    assert "a" not in table["node"].to_pylist()
    similarity = table["similarity"].to_pylist()
    assert similarity == sorted(similarity, reverse=True)
    first = {"b": "x", "c": "x"}
    for row in table.to_pylist():
        assert row["label"] == first.get(row["node"], "y")
