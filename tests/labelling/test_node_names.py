from __future__ import annotations

import pytest

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.graph import Graph
from kryograph.labelling.node_names import (
    MOST_NAMES_COMPARED,
    node_name,
    node_names,
    node_number,
)

NAMED = Graph(toy.path(3).adjacency, toy.path(3).features, ("ann", "bob", "7"))


def test_names_and_numbers_of_nodes() -> None:
    assert node_number(NAMED, "bob") == node_number(NAMED, 1) == 1
    assert node_number(NAMED, "7") == 2
    assert node_name(NAMED, 0) == "ann"
    assert node_names(NAMED) == ("ann", "bob", "7")


def test_numbers_are_names_where_there_are_none() -> None:
    assert node_number(toy.path(3), "2") == 2
    assert node_name(toy.path(3), 2) == "2"
    assert node_names(toy.path(3)) == ["0", "1", "2"]


def test_an_unknown_name_has_near_misses() -> None:
    with pytest.raises(UsageError, match=r"no node 'anna': did you mean 'ann'\?"):
        node_number(NAMED, "anna")
    with pytest.raises(UsageError, match=r"no node 'zebra'\."):
        node_number(NAMED, "zebra")


@pytest.mark.parametrize("node", ["3", "x", "-1", 3, -1])
def test_a_number_out_of_range_is_refused(node: str | int) -> None:
    with pytest.raises(UsageError, match="nodes are 0 to 2"):
        node_number(toy.path(3), node)


def test_of_very_many_names_only_some_are_compared() -> None:
    n = MOST_NAMES_COMPARED + 10
    names = (*(f"paper {i}" for i in range(n - 1)), "Author 1")
    many = toy.isolated(n)
    graph = Graph(many.adjacency, many.features, names)
    with pytest.raises(UsageError, match="did you mean 'Author 1'"):
        node_number(graph, "author1")
