from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.graph import NO_NODES, UNKNOWN, Graph, Split, Task, digest
from kryograph.merging import Cleaning

TRIANGLE = sp.csr_array(np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]))


@st.composite
def edge_lists(draw: st.DrawFn) -> tuple[int, list[tuple[int, int, float]]]:
    """One to seven nodes and up to twenty weighted pairs, loops and repetitions among them."""
    n = draw(st.integers(1, 7))
    node = st.integers(0, n - 1)
    weight = st.sampled_from([0.25, 0.5, 1.0, 3.0])
    return n, draw(st.lists(st.tuples(node, node, weight), max_size=20))


# Cleaning at the door


@given(given_edges=edge_lists())
def test_edges_become_symmetric_and_keep_their_largest_weight(
    given_edges: tuple[int, list[tuple[int, int, float]]],
) -> None:
    n, edges = given_edges
    expected = np.zeros((n, n))
    for i, j, weight in edges:
        if i != j:
            expected[i, j] = expected[j, i] = max(expected[i, j], weight)
    pairs = np.array([(i, j) for i, j, _ in edges], dtype=np.int64).reshape(-1, 2).T
    graph = Graph.from_edges(pairs, n, weights=[w for _, _, w in edges])
    np.testing.assert_array_equal(graph.adjacency.toarray(), expected)
    assert graph.adjacency.has_sorted_indices
    assert graph.edges == np.count_nonzero(np.triu(expected))
    directed = [(i, j) for i, j, _ in edges if i != j]
    assert graph.cleaning == Cleaning(
        loops=sum(i == j for i, j, _ in edges),
        repeated=len(directed) - len(set(directed)),
        one_way=sum((j, i) not in directed for i, j in set(directed)),
    )


def test_loops_go_repetitions_merge_and_one_way_edges_go_both_ways() -> None:
    edges = [[0, 0, 0, 1, 2, 2, 3], [1, 1, 1, 0, 2, 2, 2]]
    graph = Graph.from_edges(edges, 4, weights=[1, 5, 2, 4, 9, 9, 0.5])
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 5
    expected[2, 3] = expected[3, 2] = 0.5
    np.testing.assert_array_equal(graph.adjacency.toarray(), expected)
    assert graph.cleaning == Cleaning(loops=2, repeated=2, one_way=1)
    said = "2 self-loops removed, 2 repeated edges merged, 1 one-way edge made two-way"
    assert str(graph.cleaning) == said


def test_cleaning_says_only_what_was_done() -> None:
    assert str(Cleaning()) == ""
    assert str(Cleaning(repeated=1)) == "1 repeated edge merged"
    assert str(Cleaning(loops=1234)) == "1,234 self-loops removed"
    assert str(Graph.from_edges([[0, 1], [1, 0]], 2).cleaning) == ""
    assert str(toy.path(4).cleaning) == "3 one-way edges made two-way"


def test_edges_without_weights_weigh_one() -> None:
    graph = Graph.from_edges([[0, 1, 2, 0], [1, 0, 1, 1]], 3)
    assert graph.adjacency.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert graph.adjacency.dtype == np.float64


# Edge cases


@pytest.mark.parametrize("nothing", [[], [[], []], np.zeros((0, 2), dtype=np.int64)])
def test_a_graph_may_have_no_edges(nothing: Any) -> None:
    graph = Graph.from_edges(nothing, 3)
    assert (graph.n, graph.edges) == (3, 0)
    np.testing.assert_array_equal(graph.adjacency.toarray(), np.zeros((3, 3)))


def test_a_graph_may_have_one_node() -> None:
    graph = Graph.from_edges([[0], [0]], 1, features=[[2.5]])
    assert (graph.n, graph.edges, graph.cleaning.loops) == (1, 0, 1)
    assert np.asarray(graph.features).tolist() == [[2.5]]


def test_repr_counts() -> None:
    assert repr(toy.cycle(1000)) == "Graph(1,000 nodes, 1,000 edges, 1,000 sparse features)"
    dense = Graph.from_edges([[0], [1]], 2, features=[[1.0], [2.0]])
    assert repr(dense) == "Graph(2 nodes, 1 edges, 1 dense features)"


# Features


def test_without_features_each_node_has_a_column_of_its_own() -> None:
    features = Graph.from_edges([[0], [1]], 3).features
    assert isinstance(features, sp.csr_array)
    np.testing.assert_array_equal(features.toarray(), np.eye(3))


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, sp.coo_array, sp.csc_matrix])
def test_sparse_features_stay_sparse(kind: Any) -> None:
    words = np.array([[0, 2], [0, 0], [3, 1]])
    features = Graph.from_edges([[0], [1]], 3, features=kind(words)).features
    assert isinstance(features, sp.csr_array)
    assert features.dtype == np.float64
    assert features.nnz == 3
    np.testing.assert_array_equal(features.toarray(), words)


def test_sparse_features_add_up_entries_that_are_listed_twice() -> None:
    entries = (np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2, 2]))
    twice = sp.csr_array(entries, shape=(2, 2))
    assert twice.nnz == 2
    features = Graph.from_edges([[0], [1]], 2, features=twice).features
    assert isinstance(features, sp.csr_array)
    assert features.nnz == 1
    assert features.toarray().tolist() == [[0, 3], [0, 0]]
    assert twice.nnz == 2


@pytest.mark.parametrize(
    ("given_type", "kept"),
    [(np.float32, np.float32), (np.float64, np.float64), (np.int64, np.float64), (bool, float)],
)
def test_dense_features_stay_dense_and_become_floating(given_type: Any, kept: Any) -> None:
    rows = np.array([[0, 1], [1, 1]], dtype=given_type)
    features = Graph.from_edges([[0], [1]], 2, features=rows).features
    assert isinstance(features, np.ndarray)
    assert features.dtype == kept
    assert features.tolist() == [[0, 1], [1, 1]]


# Immutability


def test_fields_cannot_be_assigned() -> None:
    graph = toy.path(3)
    split = Split("s", train=np.array([0]), validation=np.array([1]), test=np.array([2]))
    task = Task(graph, split, np.array([0, 1, -1]), ("a", "b"))
    for thing, field in [(graph, "features"), (split, "train"), (task, "labels")]:
        with pytest.raises(FrozenInstanceError):
            setattr(thing, field, np.zeros(3))


def test_arrays_cannot_be_written() -> None:
    sparse = Graph.from_edges([[0], [1]], 2)
    dense = Graph.from_edges([[0], [1]], 2, features=np.eye(2))
    split = Split("s", train=np.array([0]), validation=np.array([1]), test=np.array([2]))
    task = Task(toy.path(3), split, np.array([0, 1, -1]), ("a", "b"))
    assert isinstance(sparse.features, sp.csr_array)
    arrays = [dense.features, split.train, split.validation, split.test, task.labels]
    for matrix in (sparse.adjacency, sparse.features):
        arrays += [matrix.data, matrix.indices, matrix.indptr]
    for array in arrays:
        before = array.tolist()
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 7
        assert array.tolist() == before


@pytest.mark.filterwarnings("ignore:Changing the sparsity structure")
@pytest.mark.parametrize("entry", [(0, 1), (0, 2)])
def test_no_edge_can_be_changed_or_added(entry: tuple[int, int]) -> None:
    graph = toy.path(3)
    with pytest.raises(ValueError, match="read-only"):
        graph.adjacency[entry] = 4.0
    assert graph.adjacency.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


def test_what_was_given_can_change_afterwards_and_the_graph_does_not() -> None:
    pairs, weights, rows = np.array([[0], [1]]), np.array([2.0]), np.ones((2, 1))
    words = sp.csr_array(np.eye(2))
    dense = Graph.from_edges(pairs, 2, weights=weights, features=rows)
    sparse = Graph.from_edges(pairs, 2, features=words)
    pairs[:], weights[:], rows[:] = 0, 9.0, 9.0
    words.data[:] = 9.0
    assert dense.adjacency.toarray().tolist() == [[0, 2], [2, 0]]
    assert np.asarray(dense.features).tolist() == [[1], [1]]
    np.testing.assert_array_equal(sp.csr_array(sparse.features).toarray(), np.eye(2))


def test_given_labels_and_nodes_are_copied() -> None:
    nodes, labels = np.array([0]), np.array([1, -1])
    split = Split("s", train=nodes, validation=np.array([], dtype=int), test=np.array([1]))
    task = Task(toy.path(2), split, labels, ("a", "b"))
    nodes[0], labels[0] = 1, 0
    assert split.train.tolist() == [0]
    assert task.labels.tolist() == [1, -1]


# What is refused


@pytest.mark.parametrize(
    ("adjacency", "features", "message"),
    [
        (sp.csr_array((0, 0)), np.eye(1), r"^The graph has no nodes\.$"),
        (sp.csr_array((2, 3)), np.eye(2), r"^The adjacency must be square; it is \(2, 3\)\.$"),
        (-1 * TRIANGLE, np.eye(3), r"^Edge weights must be positive and finite\.$"),
        (np.inf * TRIANGLE, np.eye(3), r"^Edge weights must be positive and finite\.$"),
        (np.nan * TRIANGLE, np.eye(3), r"^Edge weights must be positive and finite\.$"),
        (sp.csr_array(np.eye(2)), np.eye(2), r"must have no self-loops; use Graph\.from_edges\.$"),
        (
            sp.csr_array(np.triu(TRIANGLE.toarray())),
            np.eye(3),
            r"must be symmetric; use Graph\.from_edges\.$",
        ),
        (
            sp.csr_array(np.array([[0.0, 1.0], [2.0, 0.0]])),
            np.eye(2),
            r"^The adjacency must be symmetric; use Graph\.from_edges\.$",
        ),
        (TRIANGLE, np.eye(2), r"^There are 3 nodes, but features of shape \(2, 2\)\.$"),
        (TRIANGLE, np.ones(3), r"^There are 3 nodes, but features of shape \(3,\)\.$"),
        (
            TRIANGLE,
            np.array([[1.0], [2.0], [np.nan]]),
            r"^The features of node 2 are not all finite\.$",
        ),
        (
            TRIANGLE,
            sp.csr_array(np.array([[1.0, 0.0], [0.0, 0.0], [0.0, np.inf]])),
            r"^The features of node 2 are not all finite\.$",
        ),
    ],
)
def test_the_constructor_refuses(adjacency: Any, features: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        Graph(adjacency=adjacency.copy(), features=features)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0, "edges": []}, r"^The graph has no nodes\.$"),
        (
            {"edges": [[0, 1], [1, 2], [2, 0]]},
            r"^Edges must be 2 × E node numbers; got shape \(3, 2\)\.$",
        ),
        ({"edges": [0, 1]}, r"^Edges must be 2 × E node numbers; got shape \(2,\)\.$"),
        ({"edges": [[0, 1], [1, 3]]}, r"^Edge 1 joins 1 and 3, but nodes are 0 to 2\.$"),
        ({"edges": [[-1], [1]]}, r"^Edge 0 joins -1 and 1, but nodes are 0 to 2\.$"),
        ({"weights": [1.0]}, r"^There are 2 edges, but weights of shape \(1,\)\.$"),
        ({"weights": [[1.0], [1.0]]}, r"^There are 2 edges, but weights of shape \(2, 1\)\.$"),
        ({"weights": [1, 0]}, r"^Edge 1 has weight 0\.0: weights must be positive\.$"),
        ({"weights": [-2, 1]}, r"^Edge 0 has weight -2\.0: weights must be positive\.$"),
        ({"weights": [1, np.nan]}, r"^Edge 1 has weight nan: weights must be positive\.$"),
        ({"weights": [np.inf, 1]}, r"^Edge 0 has weight inf: weights must be positive\.$"),
        ({"features": [[1.0], [2.0]]}, r"^There are 3 nodes, but features of shape \(2, 1\)\.$"),
        (
            {"features": [[1.0, np.nan], [1.0, 1.0], [np.inf, 1.0]]},
            r"^The features of node 0 are not all finite\.$",
        ),
        ({"names": ["a", "b"]}, r"^There are 3 nodes, but 2 names\.$"),
    ],
)
def test_from_edges_refuses(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Graph.from_edges(**{"edges": [[0, 1], [1, 2]], "n": 3} | arguments)


def test_names_are_kept_in_order() -> None:
    assert Graph.from_edges([], 2, names=["b", "a"]).names == ("b", "a")
    assert Graph.from_edges([], 2).names is None


# Fingerprints


def test_equal_graphs_have_equal_fingerprints() -> None:
    first = Graph.from_edges([[0, 1], [1, 2]], 3, weights=[1, 2], names=["a", "b", "c"])
    again = Graph.from_edges([[2, 1, 0, 0], [1, 2, 1, 0]], 3, weights=[2, 1, 1, 8])
    assert first.fingerprint == again.fingerprint
    assert len(first.fingerprint) == 16
    assert set(first.fingerprint) <= set("0123456789abcdef")


def test_the_order_of_sparse_entries_does_not_change_the_fingerprint() -> None:
    both = [
        sp.csr_array((np.array(values), np.array(columns), np.array([0, 2, 3])), shape=(2, 3))
        for values, columns in [([1.0, 2.0, 3.0], [2, 0, 1]), ([2.0, 1.0, 3.0], [0, 2, 1])]
    ]
    first, again = (Graph.from_edges([[0], [1]], 2, features=words) for words in both)
    assert first.fingerprint == again.fingerprint


def test_different_graphs_have_different_fingerprints() -> None:
    edges, rows = [[0, 1], [1, 2]], np.arange(6.0).reshape(3, 2)
    graphs = [
        Graph.from_edges(edges, 3),
        Graph.from_edges(edges, 4),
        Graph.from_edges([[0, 0], [1, 2]], 3),
        Graph.from_edges(edges, 3, weights=[1, 2]),
        Graph.from_edges(edges, 3, weights=[2, 1]),
        Graph.from_edges(edges, 3, features=rows),
        Graph.from_edges(edges, 3, features=rows + 1e-12),
        Graph.from_edges(edges, 3, features=sp.csr_array((3, 1))),
        Graph.from_edges(edges, 3, features=sp.csr_array((3, 2))),
    ]
    assert len({graph.fingerprint for graph in graphs}) == len(graphs)


def test_a_digest_tells_types_and_shapes_apart() -> None:
    array = np.arange(4)
    assert digest(array) == digest(np.arange(4))
    others = [array.reshape(2, 2), array.astype(np.int32), array + 1, array[:3]]
    assert len({digest(array), *(digest(other) for other in others)}) == 5
    assert digest(array[:2], array[2:]) != digest(array[:1], array[1:])


# Split


@given(nodes=st.permutations(range(9)), cuts=st.tuples(st.integers(1, 5), st.integers(0, 4)))
def test_a_split_sorts_its_parts_and_its_digest_ignores_order_and_name(
    nodes: list[int], cuts: tuple[int, int]
) -> None:
    t, v = cuts
    parts = [np.array(part) for part in (nodes[:t], nodes[t : t + v], nodes[t + v :])]
    split = Split("one", *parts)
    other = Split("other", *(part[::-1] for part in parts))
    assert split.digest == other.digest
    for found, part in zip((split.train, split.validation, split.test), parts, strict=True):
        assert found.tolist() == sorted(part.tolist())


def test_different_splits_have_different_digests() -> None:
    splits = [
        Split("s", train=[0], validation=[1], test=[2]),
        Split("s", train=[0], validation=[2], test=[1]),
        Split("s", train=[0, 1], validation=[], test=[2]),
        Split("s", train=[0], validation=[1], test=[3]),
    ]
    assert len({split.digest for split in splits}) == 4
    assert repr(splits[2]) == "Split('s', 2 / 0 / 1)"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([0, 0], [1], [2]), r"^Split 'mine' lists a train node twice\.$"),
        (([0], [1, 3, 1], [2]), r"^Split 'mine' lists a validation node twice\.$"),
        (([0], [1], [2, 2]), r"^Split 'mine' lists a test node twice\.$"),
        (([-1, 0], [1], [2]), r"^Split 'mine' has the train node -1\.$"),
        (([0], [-2], [2]), r"^Split 'mine' has the validation node -2\.$"),
        (([0], [1], [2, -7]), r"^Split 'mine' has the test node -7\.$"),
        (([], [1], [2]), r"^Split 'mine' has no training node\.$"),
        (([0, 1], [1], [2]), r"^Split 'mine': train, validation and test overlap\.$"),
        (([0], [1], [0]), r"^Split 'mine': train, validation and test overlap\.$"),
        (([0], [1], [2, 1]), r"^Split 'mine': train, validation and test overlap\.$"),
    ],
)
def test_a_split_refuses(parts: tuple[Any, Any, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Split("mine", *parts)


# Task


SPLIT = Split("mine", train=np.array([0, 1]), validation=np.array([2, 3]), test=np.array([4]))


def task(labels: list[int], split: Split = SPLIT) -> Task:
    """On a path of six nodes: two train, two validate, one tests, one is for nothing."""
    return Task(toy.path(6), split, np.array(labels), ("a", "b"))


def test_a_task_holds_the_labels_it_was_given() -> None:
    full = task([0, 1, 1, 0, UNKNOWN, UNKNOWN])
    assert full.has_validation
    assert full.labels.tolist() == [0, 1, 1, 0, -1, -1]


def test_validation_labels_may_be_hidden() -> None:
    assert not task([0, 1, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN]).has_validation


def test_a_task_may_have_no_validation_nodes() -> None:
    split = Split("mine", train=np.array([0, 1]), validation=np.array([]), test=np.array([4]))
    assert not task([0, 1, -1, -1, -1, -1], split).has_validation


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1, 1, 0, 1, -1], r"^A task may hold the labels of training and validation nodes o"),
        ([0, 1, 1, 0, -1, 0], r"^A task may hold the labels of training and validation nodes o"),
        ([0, -1, 1, 0, -1, -1], r"^Split 'mine' trains on a node without a label\.$"),
        ([0, 1, 1, -1, -1, -1], r"^Split 'mine' validates on a node without a label\.$"),
        ([0, 1, -1, 0, -1, -1], r"^Split 'mine' validates on a node without a label\.$"),
        ([0, 2, 1, 0, -1, -1], r"^Labels must lie between -1 \(unknown\) and 1\.$"),
        ([0, -2, 1, 0, -1, -1], r"^Labels must lie between -1 \(unknown\) and 1\.$"),
        ([0, 1, 1, 0, -1], r"^There are 6 nodes, but labels of shape \(5,\)\.$"),
    ],
)
def test_a_task_refuses(labels: list[int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        task(labels)


@pytest.mark.parametrize("part", ["train", "validation", "test"])
def test_a_task_refuses_nodes_beyond_the_graph(part: str) -> None:
    parts = {"train": [0, 1], "validation": [2], "test": [4]}
    parts[part] = [*parts[part], 6]
    split = Split("mine", **{name: np.array(nodes) for name, nodes in parts.items()})
    with pytest.raises(UsageError, match=r"^Split 'mine' names nodes beyond the graph's 6\.$"):
        task([0, 1, 1, -1, -1, -1], split)


def test_node_numbers_must_be_whole() -> None:
    with pytest.raises(UsageError, match="Edges must be whole numbers; got float64"):
        Graph.from_edges([[0.7], [1.9]], 3)


def test_a_mask_is_read_as_a_mask() -> None:
    split = Split("m", train=np.array([False, True, True]), validation=[], test=[0])
    assert split.train.tolist() == [1, 2]


def test_the_fingerprint_does_not_see_how_a_matrix_is_stored() -> None:
    stored = sp.csr_array(([1.0, 0.0, 2.0], ([0, 1, 2], [0, 0, 0])), shape=(3, 2))
    plain = sp.csr_array([[1.0, 0.0], [0.0, 0.0], [2.0, 0.0]])
    graphs = [Graph.from_edges([[0], [1]], 3, features=features) for features in (stored, plain)]
    assert stored.nnz == 3
    assert graphs[0].fingerprint == graphs[1].fingerprint


def test_the_caller_keeps_its_arrays() -> None:
    features = np.zeros((2, 1))
    graph = Graph(sp.csr_matrix([[0.0, 1.0], [1.0, 0.0]]), features)
    features[0, 0] = 5
    assert graph.features.tolist() == [[0.0], [0.0]]


def test_a_labelled_task_trains_on_every_known_label() -> None:
    graph = Graph.from_edges([[0, 1], [1, 2]], n=3)
    task = Task.labelled(graph, [1, UNKNOWN, 0], ("a", "b"))
    assert task.split.train.tolist() == [0, 2]
    assert task.split.validation.size == task.split.test.size == 0
    assert task.labels.tolist() == [1, UNKNOWN, 0]
    assert not task.has_validation


def test_a_labelled_task_needs_a_label() -> None:
    with pytest.raises(UsageError, match="no training node"):
        Task.labelled(Graph.from_edges([[0], [1]], n=2), [UNKNOWN, UNKNOWN], ("a", "b"))


def test_the_empty_set_of_nodes_cannot_be_written_to() -> None:
    assert NO_NODES.dtype == np.int64
    assert not NO_NODES.flags.writeable


def test_from_edges_keeps_indices_of_32_bits() -> None:
    graph = Graph.from_edges([[0, 1, 2], [1, 2, 0]], n=3)
    assert (graph.adjacency.indices.dtype, graph.adjacency.indptr.dtype) == (np.int32, np.int32)
    assert graph.adjacency.data.dtype == np.float64


def test_features_that_nobody_can_change_are_not_copied() -> None:
    x = np.ones((3, 2), dtype=np.float32)
    assert not np.shares_memory(Graph.from_edges([[0], [1]], n=3, features=x).features, x)
    x.setflags(write=False)
    assert Graph.from_edges([[0], [1]], n=3, features=x).features is x
    part = np.ones((6, 2), dtype=np.float32)[:3]  # its owner could change it
    part.setflags(write=False)
    assert not np.shares_memory(Graph.from_edges([[0], [1]], n=3, features=part).features, part)


def test_digest_with_widen_does_not_depend_on_types() -> None:
    narrow = (np.arange(5, dtype=np.int32), np.linspace(0, 1, 5).astype(np.float32))
    wide = (narrow[0].astype(np.int64), narrow[1].astype(np.float64))
    assert digest(*narrow, widen=True) == digest(*wide, widen=True) == digest(*wide)
    assert digest(*narrow) != digest(*wide)
    assert digest(np.empty(0)) != digest(np.empty((0, 2)))
