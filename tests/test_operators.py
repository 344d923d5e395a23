from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.graph import Graph
from kryograph.operators import (
    OPERATORS,
    Operator,
    edge_operator,
    from_adjacency,
    from_edge_index,
    operator,
)

Array = npt.NDArray[np.float64]

TOYS = {
    "path": toy.path(5),
    "cycle": toy.cycle(6),
    "complete": toy.complete(4),
    "star": toy.star(5),
    "two cliques": toy.two_cliques(4),
    "isolated": toy.isolated(3),
    "one node": toy.isolated(1),
    "disjoint": toy.disjoint(toy.path(3), toy.isolated(2), toy.star(4), toy.cycle(3)),
}


@pytest.fixture(params=list(TOYS))
def graph(request: pytest.FixtureRequest) -> Graph:
    return TOYS[request.param]


@st.composite
def weighted_graphs(draw: st.DrawFn) -> Graph:
    """Up to nine nodes, from no edge to all, with weights over four orders of magnitude."""
    n = draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    density = draw(st.sampled_from([0.0, 0.2, 0.5, 1.0]))
    pairs = np.argwhere(np.triu(rng.random((n, n)) < density, k=1)).T
    return Graph.from_edges(pairs, n, weights=10 ** rng.uniform(-2, 2, pairs.shape[1]))


def dense_formula(a: Array, name: str) -> Array:
    """The formulas of `OPERATORS`, computed one entry at a time."""
    n = len(a)
    loops = a + np.eye(n)
    degree, degree_with_loops = a.sum(axis=1), loops.sum(axis=1)
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if name == "sym":
                out[i, j] = loops[i, j] / np.sqrt(degree_with_loops[i] * degree_with_loops[j])
            elif name == "rw":
                out[i, j] = loops[i, j] / degree_with_loops[i]
            elif name == "laplacian":
                out[i, j] = (degree[i] if i == j else 0) - a[i, j]
            elif name == "normalised-laplacian":
                scaled = a[i, j] / np.sqrt(degree[i] * degree[j]) if a[i, j] else 0
                out[i, j] = float(i == j and degree[i] > 0) - scaled
            elif name == "affinity":
                out[i, j] = loops[i, j]
            else:
                mean = a[i, j] / degree[i] if a[i, j] else 0
                there = float(i == j and degree[i] > 0)
                out[i, j] = there - mean if name == "walk-laplacian" else mean
    return out


def dense(found: Operator) -> Array:
    matrix: Array = found.matrix.toarray()
    return matrix


# Said aloud


def test_there_are_seven() -> None:
    laplacians = ["laplacian", "normalised-laplacian", "affinity", "walk-laplacian"]
    assert list(OPERATORS) == ["sym", "rw", *laplacians, "neighbour-mean"]


def test_a_search_may_choose_the_two_operators_of_the_paper() -> None:
    assert [name for name, kind in OPERATORS.items() if kind.searched] == ["sym", "rw"]


@pytest.mark.parametrize("name", ["sym", "rw"])
def test_a_complete_graph_is_averaged(name: str) -> None:
    np.testing.assert_allclose(dense(operator(toy.complete(5), name)), np.full((5, 5), 0.2))


@pytest.mark.parametrize("name", ["sym", "rw"])
def test_a_cycle_is_averaged_over_three(name: str) -> None:
    third = np.array([[1, 1, 0, 1], [1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 1, 1]]) / 3
    np.testing.assert_allclose(dense(operator(toy.cycle(4), name)), third, rtol=1e-15)


def test_a_path_of_three() -> None:
    r = 1 / np.sqrt(6)
    said = {
        "sym": [[1 / 2, r, 0], [r, 1 / 3, r], [0, r, 1 / 2]],
        "rw": [[1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3], [0, 1 / 2, 1 / 2]],
        "laplacian": [[1, -1, 0], [-1, 2, -1], [0, -1, 1]],
        "normalised-laplacian": [
            [1, -np.sqrt(0.5), 0],
            [-np.sqrt(0.5), 1, -np.sqrt(0.5)],
            [0, -np.sqrt(0.5), 1],
        ],
        "affinity": [[1, 1, 0], [1, 1, 1], [0, 1, 1]],
        "walk-laplacian": [[1, -1, 0], [-1 / 2, 1, -1 / 2], [0, -1, 1]],
        "neighbour-mean": [[0, 1, 0], [1 / 2, 0, 1 / 2], [0, 1, 0]],
    }
    for name, matrix in said.items():
        np.testing.assert_allclose(
            dense(operator(toy.path(3), name)), matrix, rtol=1e-15, atol=1e-16, err_msg=name
        )


def test_the_hub_of_a_star_averages_all_and_a_leaf_two() -> None:
    matrix = dense(operator(toy.star(5), "rw"))
    np.testing.assert_allclose(matrix[0], np.full(5, 0.2))
    np.testing.assert_allclose(matrix[3], [0.5, 0, 0, 0.5, 0])
    symmetric = dense(operator(toy.star(5), "sym"))
    assert symmetric[0, 1] == pytest.approx(1 / np.sqrt(10), rel=1e-15)


@pytest.mark.parametrize("family", ["path", "cycle", "complete", "star", "two_cliques", "isolated"])
def test_the_laplacian_has_the_known_eigenvalues(family: str) -> None:
    matrix = dense(operator(getattr(toy, family)(5), "laplacian"))
    expected = toy.laplacian_spectrum(family, 5)
    np.testing.assert_allclose(np.linalg.eigvalsh(matrix), expected, atol=1e-12)


def test_the_bridge_between_cliques() -> None:
    matrix = dense(operator(toy.two_cliques(4), "rw"))
    np.testing.assert_allclose(matrix[3], [0.2, 0.2, 0.2, 0.2, 0.2, 0, 0, 0])
    np.testing.assert_allclose(matrix[0], [0.25] * 4 + [0] * 4)


def test_a_node_without_neighbours_keeps_its_features_and_has_zero_laplacians() -> None:
    graph = toy.disjoint(toy.path(2), toy.isolated(1))
    alone = {"sym": 1, "rw": 1, "affinity": 1, "laplacian": 0, "normalised-laplacian": 0}
    for name, value in alone.items():
        matrix = dense(operator(graph, name))
        assert matrix[2].tolist() == [0, 0, value], name
        assert matrix[:, 2].tolist() == [0, 0, value], name


def test_a_weight_counts_as_that_many_neighbours() -> None:
    graph = Graph.from_edges([[0], [1]], 2, weights=[3])
    np.testing.assert_allclose(dense(operator(graph, "rw")), [[0.25, 0.75], [0.75, 0.25]])
    assert dense(operator(graph, "laplacian")).tolist() == [[3, -3], [-3, 3]]


# Identities


@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=40)
@given(graph=weighted_graphs())
def test_dense_formulas(name: str, graph: Graph) -> None:
    expected = dense_formula(graph.adjacency.toarray(), name)
    np.testing.assert_allclose(dense(operator(graph, name)), expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("name", OPERATORS)
def test_dense_formulas_on_toys(graph: Graph, name: str) -> None:
    expected = dense_formula(graph.adjacency.toarray(), name)
    np.testing.assert_allclose(dense(operator(graph, name)), expected, rtol=1e-14, atol=1e-15)


def test_the_laplacian_of_a_constant_is_zero(graph: Graph) -> None:
    assert np.abs(operator(graph, "laplacian") @ np.ones(graph.n)).max() == 0


def test_the_normalised_laplacian_of_the_root_degrees_is_zero(graph: Graph) -> None:
    roots = np.sqrt(graph.adjacency.sum(axis=1))
    product = operator(graph, "normalised-laplacian") @ roots
    np.testing.assert_allclose(product, np.zeros(graph.n), atol=1e-15)


def test_a_random_walk_keeps_constants(graph: Graph) -> None:
    np.testing.assert_allclose(
        operator(graph, "rw") @ np.ones(graph.n), np.ones(graph.n), rtol=1e-15
    )


def test_the_symmetric_operator_keeps_the_root_degrees(graph: Graph) -> None:
    roots = np.sqrt(graph.adjacency.sum(axis=1) + 1)
    np.testing.assert_allclose(operator(graph, "sym") @ roots, roots, rtol=1e-14)


@pytest.mark.parametrize("name", ["laplacian", "normalised-laplacian"])
def test_eigenvalue_zero_counts_components(graph: Graph, name: str) -> None:
    values = np.linalg.eigvalsh(dense(operator(graph, name)))
    assert np.count_nonzero(np.abs(values) < 1e-10) == connected_components(graph.adjacency)[0]
    assert values.min() > -1e-12


@pytest.mark.parametrize("name", ["sym", "rw"])
def test_eigenvalue_one_counts_components(graph: Graph, name: str) -> None:
    values = np.linalg.eigvals(dense(operator(graph, name))).real
    assert np.count_nonzero(np.abs(values - 1) < 1e-10) == connected_components(graph.adjacency)[0]


@settings(max_examples=40)
@given(graph=weighted_graphs())
def test_spectra_lie_where_they_should(graph: Graph) -> None:
    diffusion = np.linalg.eigvalsh(dense(operator(graph, "sym")))
    assert diffusion.min() > -1
    assert diffusion.max() == pytest.approx(1, abs=1e-12)
    walk = np.sort(np.linalg.eigvals(dense(operator(graph, "rw"))).real)
    np.testing.assert_allclose(walk, diffusion, atol=1e-9)
    laplacian = np.linalg.eigvalsh(dense(operator(graph, "normalised-laplacian")))
    assert laplacian.min() > -1e-12
    assert laplacian.max() < 2 + 1e-12


@pytest.mark.parametrize("name", OPERATORS)
def test_the_transpose_is_the_adjoint(graph: Graph, name: str) -> None:
    rng = np.random.default_rng(0)
    u, v = rng.standard_normal((2, graph.n))
    found = operator(graph, name)
    assert u @ (found @ v) == pytest.approx((found.T @ u) @ v, rel=1e-12, abs=1e-13)
    tu, tv = torch.from_numpy(u)[:, None], torch.from_numpy(v)[:, None]
    assert torch.allclose(tu.T @ (found @ tv), (found.T @ tu).T @ tv, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=40)
@given(graph=weighted_graphs())
def test_the_symmetric_flag_is_right(name: str, graph: Graph) -> None:
    matrix = dense_formula(graph.adjacency.toarray(), name)
    asymmetry = np.abs(matrix - matrix.T).max()
    assert operator(graph, name).symmetric == (asymmetry < 1e-14 * np.abs(matrix).max(initial=1))


def test_only_a_walk_on_an_irregular_graph_is_not_symmetric() -> None:
    irregular = {name: operator(toy.star(4), name).symmetric for name in OPERATORS}
    walks = ("rw", "walk-laplacian", "neighbour-mean")
    assert irregular == dict.fromkeys(OPERATORS, True) | dict.fromkeys(walks, False)
    assert operator(toy.cycle(5), "rw").symmetric
    assert operator(toy.isolated(3), "rw").symmetric


def test_a_directed_adjacency_is_not_symmetric() -> None:
    ring = sp.csr_array(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]))
    for name in OPERATORS:
        found = from_adjacency(ring, name)
        assert not found.symmetric, name
        np.testing.assert_array_equal((found.T @ np.eye(3)).T, dense(found))


def test_the_transpose_knows_its_name_and_goes_back() -> None:
    walk = operator(toy.star(4), "rw")
    assert (walk.name, walk.T.name, walk.T.T.name) == ("rw", "rwᵀ", "rw")
    np.testing.assert_array_equal(dense(walk.T), dense(walk).T)
    np.testing.assert_array_equal(dense(walk.T.T), dense(walk))
    symmetric = operator(toy.star(4), "sym")
    assert symmetric.T is symmetric


# NumPy and torch


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_numpy_and_torch_agree(graph: Graph, name: str, dtype: torch.dtype) -> None:
    x = torch.from_numpy(np.random.default_rng(1).standard_normal((graph.n, 3))).to(dtype)
    found = operator(graph, name)
    for side in (found, found.T):
        product = side @ x
        assert product.dtype == dtype
        expected = dense(side) @ x.double().numpy()
        # Sums of up to eight terms, rounded once more at the end in the narrow types.
        near = 8 * max(1, np.abs(expected).max()) * torch.finfo(dtype).eps
        np.testing.assert_allclose(product.double().numpy(), expected, rtol=0, atol=near)
        np.testing.assert_allclose(side @ x.double().numpy(), expected, rtol=1e-13, atol=1e-14)


def test_numpy_float32_and_vectors_are_taken() -> None:
    walk = operator(toy.path(3), "rw")
    np.testing.assert_allclose(walk @ np.array([1, 0, 0], dtype=np.float32), [1 / 2, 1 / 3, 0])
    product = walk @ torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    assert torch.allclose(product, torch.tensor([1 / 2, 1 / 3, 0], dtype=torch.float64))


def test_the_torch_matrix_is_made_once_per_type() -> None:
    found = operator(toy.path(3), "rw")
    single, double = found.tensor(torch.float32), found.tensor(torch.float64)
    assert found.tensor(torch.float32) is single
    assert found.tensor(torch.float32, torch.device("cpu")) is single
    assert (single.dtype, double.dtype) == (torch.float32, torch.float64)
    np.testing.assert_array_equal(double.to_dense().numpy(), dense(found))


def test_the_gradient_is_the_transpose() -> None:
    walk = operator(toy.star(4), "rw")
    x = torch.zeros(4, 1, dtype=torch.float64, requires_grad=True)
    (walk @ x)[1].sum().backward()
    assert x.grad is not None
    assert x.grad.ravel().tolist() == [0.5, 0.5, 0, 0]


def test_the_adjacency_is_left_as_it_was() -> None:
    graph = toy.path(4)
    before = graph.adjacency.toarray()
    for name in OPERATORS:
        operator(graph, name).matrix.data[:] = 99
    np.testing.assert_array_equal(graph.adjacency.toarray(), before)


# Names


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("symm", "'sym'"),
        ("SYM", "'sym'"),
        ("laplacan", "'laplacian'"),
        ("afinity", "'affinity'"),
        ("normalized-laplacian", "'normalised-laplacian'"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(
        UsageError, match=rf"^Unknown operator '{name}': did you mean.*{near}.*\? There are"
    ):
        operator(toy.path(3), name)


def test_an_unknown_name_far_from_all_lists_all() -> None:
    listed = rf"'zzz'. There are: {', '.join(OPERATORS)}\.$"
    with pytest.raises(UsageError, match=listed):
        operator(toy.path(3), "zzz")


# Edge lists in PyTorch Geometric's form


@st.composite
def edge_indices(draw: st.DrawFn) -> tuple[int, torch.Tensor, torch.Tensor]:
    """Directed weighted edges, some repeated, no loops."""
    n = draw(st.integers(2, 8))
    edges = draw(st.integers(0, 25))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    source = torch.randint(n, (edges,), generator=generator)
    target = (source + torch.randint(1, n, (edges,), generator=generator)) % n
    weight = torch.rand(edges, generator=generator, dtype=torch.float64) + 0.1
    return n, torch.stack([source, target]), weight


def normalised_by_pyg(edge_index: torch.Tensor, weight: torch.Tensor | None, n: int) -> Array:
    """What GCNConv multiplies by: A[target, source], repeated edges added up."""
    pairs, values = gcn_norm(edge_index, weight, num_nodes=n, dtype=torch.float64)
    out = torch.zeros(n, n, dtype=torch.float64)
    out.index_put_((pairs[1], pairs[0]), values, accumulate=True)
    found: Array = out.numpy()
    return found


@settings(max_examples=60)
@given(edges=edge_indices())
def test_a_directed_weighted_edge_list_is_normalised_as_pyg_does(
    edges: tuple[int, torch.Tensor, torch.Tensor],
) -> None:
    n, edge_index, weight = edges
    for w in (weight, None):
        expected = normalised_by_pyg(edge_index, w, n)
        found = dense(from_edge_index(edge_index, w, n))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_repeated_edges_add_up_and_loops_give_way() -> None:
    edge_index = torch.tensor([[0, 0, 1], [1, 1, 1]])
    found = from_edge_index(edge_index, torch.tensor([1.0, 2.0, 5.0]), 2, "affinity")
    assert dense(found).tolist() == [[1, 0], [3, 1]]
    walk = from_edge_index(edge_index, None, 2, "rw")
    np.testing.assert_allclose(dense(walk), [[1, 0], [2 / 3, 1 / 3]])
    np.testing.assert_allclose(dense(walk.T), [[1, 2 / 3], [0, 1 / 3]])


def test_loops_without_weights_are_pygs() -> None:
    edge_index = torch.tensor([[0, 1, 2, 2, 1], [1, 0, 2, 2, 2]])
    expected = normalised_by_pyg(edge_index, None, 4)
    np.testing.assert_allclose(dense(from_edge_index(edge_index, None, 4)), expected, rtol=1e-14)


def test_an_edge_goes_from_row_zero_to_row_one() -> None:
    received = from_edge_index(torch.tensor([[0], [2]]), None, 3, "affinity") @ np.eye(3)[:, [0]]
    assert received.ravel().tolist() == [1, 0, 1]


@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=20)
@given(graph=weighted_graphs())
def test_an_undirected_edge_list_gives_the_operator_of_the_graph(name: str, graph: Graph) -> None:
    both = graph.adjacency.tocoo()
    edge_index = torch.from_numpy(np.stack([both.row, both.col]).astype(np.int64))
    found = from_edge_index(edge_index, torch.from_numpy(both.data.copy()), graph.n, name)
    expected = operator(graph, name)
    assert found.name == name
    assert found.symmetric == expected.symmetric
    np.testing.assert_allclose(dense(found), dense(expected), rtol=1e-14, atol=1e-15)


def test_an_edge_list_may_be_empty() -> None:
    found = from_edge_index(torch.empty(2, 0, dtype=torch.int64), None, 3)
    np.testing.assert_array_equal(dense(found), np.eye(3))


def test_gradients_of_edge_weights_are_refused_not_lost() -> None:
    weight = torch.ones(1, requires_grad=True)
    with pytest.raises(UsageError, match="edge weights are not available: detach them"):
        from_edge_index(torch.tensor([[0], [1]]), weight, 2)
    detached = from_edge_index(torch.tensor([[0], [1]]), weight.detach(), 2, "affinity")
    assert dense(detached).tolist() == [[1, 0], [1, 1]]


@pytest.mark.parametrize(
    ("edges", "weight", "sentence"),
    [
        ([[0], [1]], torch.ones(2), r"There are 1 edges, but weights of shape \(2,\)"),
        ([[0], [3]], None, "names a node outside 0 to 2"),
        ([[0], [-1]], None, "names a node outside 0 to 2"),
        ([[0], [1], [2]], None, r"must be 2 × E; it is \(3, 1\)"),
    ],
)
def test_a_bad_edge_index_is_refused(
    edges: list[list[int]], weight: torch.Tensor | None, sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        from_edge_index(torch.tensor(edges), weight, 3)


def test_whole_numbers_are_diffused_as_real_ones() -> None:
    found = operator(toy.path(2)) @ torch.tensor([[1], [0]])
    assert found.tolist() == [[0.5], [0.5]]


# With gradients


@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=20)
@given(edges=edge_indices())
def test_entries_with_gradients_are_those_without(
    name: str, edges: tuple[int, torch.Tensor, torch.Tensor]
) -> None:
    n, edge_index, weight = edges
    for w in (weight, None):
        found = edge_operator(edge_index, w, n, name) @ torch.eye(n, dtype=torch.float64)
        expected = dense(from_edge_index(edge_index, w, n, name))
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-14)


def test_entries_with_gradients_take_features_of_any_precision() -> None:
    found = edge_operator(torch.tensor([[0], [1]]), None, 2, "rw")
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        product = found @ torch.tensor([[4.0], [2.0]], dtype=dtype)
        assert product.dtype == dtype
        assert product.tolist() == [[4.0], [3.0]]


def test_bad_edges_are_refused_with_gradients_too() -> None:
    with pytest.raises(UsageError, match="names a node outside 0 to 2"):
        edge_operator(torch.tensor([[0], [3]]), None, 3)
    with pytest.raises(UsageError, match="must be positive and finite"):
        edge_operator(torch.tensor([[0], [1]]), torch.zeros(1, requires_grad=True), 3)


# As edges


def test_edges_of_an_operator_by_hand() -> None:
    # Node 0 sends to node 1, which receives half; both keep their loops.
    one_way = from_edge_index(torch.tensor([[0], [1]]), None, 2, "rw")
    assert one_way.edge_index().tolist() == [[0, 0, 1], [0, 1, 1]]
    assert one_way.edge_index().dtype == torch.int64


def test_edges_carry_the_entries_in_their_order(graph: Graph) -> None:
    for name in OPERATORS:
        found = operator(graph, name)
        sends, receives = found.edge_index()
        x = torch.randn(graph.n, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        weight = torch.from_numpy(found.matrix.data)[:, None]
        summed = torch.zeros_like(x).index_add_(0, receives, weight * x[sends])
        assert torch.allclose(summed, found @ x, rtol=1e-13, atol=1e-14)
