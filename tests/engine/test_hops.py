from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from torch import Tensor

from kryograph.data import toy
from kryograph.engine.cost import gemm_cost, spmm_cost
from kryograph.engine.hops import FeatureRows, Hops
from kryograph.graph import Graph
from kryograph.operators import Operator, from_edge_index, operator
from kryograph.sparse import TORCH_KERNEL_COLUMNS, SparseMatrix
from tests.layers import MIXED, Case, cases, directed


def hops_of(graph: Graph | Operator, nodes: list[int], hops: int) -> Hops:
    L = graph if isinstance(graph, Operator) else operator(graph)
    return Hops(L, torch.tensor(nodes, dtype=torch.int64), hops, torch.float64)


@pytest.mark.parametrize(
    ("graph", "nodes", "order", "sizes"),
    [
        # From an end of a path each hop meets one node more.
        (toy.path(5), [0], [0, 1, 2, 3], [1, 2, 3, 4]),
        # From its middle, two.
        (toy.path(5), [2], [2, 1, 3, 0, 4], [1, 3, 5, 5]),
        # From both ends they meet in the middle.
        (toy.path(5), [4, 0], [4, 0, 1, 3, 2], [2, 4, 5, 5]),
        # The centre of a star is next to all, a leaf next to the centre only.
        (toy.star(5), [0], [0, 1, 2, 3, 4], [1, 5, 5, 5]),
        (toy.star(5), [3], [3, 0, 1, 2, 4], [1, 2, 5, 5]),
        # A complete graph is one hop wide.
        (toy.complete(4), [2], [2, 0, 1, 3], [1, 4, 4, 4]),
        # A node on its own is never left.
        (toy.isolated(3), [1], [1], [1, 1, 1, 1]),
        # Two cliques of three: the first, then the bridge's other end, then the rest.
        (toy.two_cliques(3), [0], None, [1, 3, 4, 6]),
        # In a graph of three pieces, only those that hold one of the nodes.
        (MIXED, [8], [8], [1, 1, 1, 1]),
        (MIXED, [10, 8], [10, 8, 9, 11, 12], [2, 3, 5, 5]),
    ],
)
def test_nodes_by_distance(
    graph: Graph, nodes: list[int], order: list[int] | None, sizes: list[int]
) -> None:
    found = hops_of(graph, nodes, 3)
    assert found.sizes == sizes
    if order is not None:
        assert found.order.tolist() == order
    assert found.nodes(0).tolist() == nodes
    assert found.nodes(3).tolist() == found.order.tolist()


def test_the_nodes_asked_for_keep_their_order() -> None:
    nodes = [11, 3, 8, 0]
    found = hops_of(MIXED, nodes, 2)
    assert found.nodes(0).tolist() == nodes
    assert sorted(found.order.tolist()) == sorted(set(found.order.tolist()))


def test_no_hops_stay_where_they_are() -> None:
    found = hops_of(toy.path(5), [3, 1], 0)
    assert found.sizes == [2]
    assert found.order.tolist() == [3, 1]


def test_no_nodes_reach_nothing() -> None:
    found = hops_of(toy.path(5), [], 2)
    assert found.sizes == [0, 0, 0]
    assert found.order.dtype == torch.int64


def test_a_one_way_edge_leads_back_to_its_sender() -> None:
    # 0 → 1 → 2: what node 2 receives comes from 1, and that from 0; node 0 receives nothing.
    L = from_edge_index(torch.tensor([[0, 1], [1, 2]]), None, 3)
    assert hops_of(L, [2], 2).order.tolist() == [2, 1, 0]
    assert hops_of(L, [0], 2).sizes == [1, 1, 1]


def check_steps(found: Hops, L: Operator, hops: int) -> None:
    """Each step is the submatrix, and leads from T_{k+1} to T_k without loss."""
    matrix = L.matrix.toarray()
    for k in range(hops):
        rows, columns = found.nodes(k).numpy(), found.nodes(k + 1).numpy()
        step = found.step(k)
        np.testing.assert_array_equal(step.to_dense().numpy(), matrix[np.ix_(rows, columns)])
        # A matrix counts as symmetric if it is but for rounding.
        turned = matrix[np.ix_(rows, columns)].T
        np.testing.assert_allclose(step.T.to_dense().numpy(), turned, rtol=1e-14)
        # Nothing that a row of T_k needs lies outside.
        elsewhere = np.setdiff1d(np.arange(L.n), columns)
        assert not matrix[np.ix_(rows, elsewhere)].any()
        assert found.nnz(k) == step.nnz == np.count_nonzero(matrix[rows])


@pytest.mark.parametrize("name", ["sym", "rw", "affinity"])
@pytest.mark.parametrize("nodes", [[0], [5, 12], [8], list(range(MIXED.n))])
@pytest.mark.parametrize("hops", [1, 2, 6])
def test_steps_are_submatrices(name: str, nodes: list[int], hops: int) -> None:
    L = operator(MIXED, name)
    check_steps(hops_of(L, nodes, hops), L, hops)


@pytest.mark.parametrize("name", ["sym", "rw"])
def test_steps_of_one_way_edges_are_submatrices(name: str) -> None:
    pairs, weights = directed(12, 14, seed=3)
    L = from_edge_index(pairs, weights, 12, name)
    assert not L.symmetric
    found = hops_of(L, [7, 2], 5)
    assert found.sizes == [2, 4, 6, 7, 8, 8]
    check_steps(found, L, 5)


@settings(max_examples=50)
@given(case=cases())
def test_steps_of_random_graphs_are_submatrices(case: Case) -> None:
    found = Hops(case.L, case.nodes.training, 4, torch.float64)
    check_steps(found, case.L, 4)
    reached = np.zeros(case.L.n, dtype=bool)
    reached[case.nodes.training] = True
    for k in range(5):
        assert set(found.nodes(k).tolist()) == set(np.flatnonzero(reached))
        # One hop on are the nodes that a reached one hears of.
        reached |= (case.L.matrix.toarray()[reached] != 0).any(axis=0)


def test_where_nothing_new_is_reached_steps_are_the_same() -> None:
    found = hops_of(toy.complete(4), [2], 4)
    assert found.sizes == [1, 4, 4, 4, 4]
    assert found.step(1) is found.step(2) is found.step(3)
    assert found.step(0) is not found.step(1)


def test_only_a_step_onto_itself_is_symmetric() -> None:
    found = hops_of(toy.complete(4), [2], 2)
    assert found.step(1).T is found.step(1)
    assert found.step(0).T is not found.step(0)
    walk = hops_of(operator(toy.star(4), "rw"), [0], 2)
    assert walk.step(1).T is not walk.step(1)


def test_steps_share_one_matrix() -> None:
    found = hops_of(toy.path(9), [0], 5)
    values = {found.step(k)._matrix.values().data_ptr() for k in range(5)}
    assert len(values) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_steps_have_the_type_asked_for(dtype: torch.dtype) -> None:
    found = Hops(operator(toy.path(3)), torch.tensor([1]), 1, dtype)
    assert found.step(0).dtype == dtype


WORDS = sp.random_array((9, 6), density=0.4, rng=0, format="csr")
X = torch.from_numpy(WORDS.toarray())
ORDER = torch.tensor([4, 0, 8, 2, 3])

either = pytest.mark.parametrize("sparse", [False, True])


def features(sparse: bool, order: Tensor = ORDER) -> FeatureRows:
    return FeatureRows(SparseMatrix.from_scipy(WORDS, dtype=torch.float64) if sparse else X, order)


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@either
@pytest.mark.parametrize("rows", [0, 1, 3, 5])
@pytest.mark.parametrize("columns", [1, TORCH_KERNEL_COLUMNS - 1, TORCH_KERNEL_COLUMNS])
def test_products_take_the_first_rows_in_that_order(sparse: bool, rows: int, columns: int) -> None:
    found, weight, y = features(sparse), random(6, columns), random(rows, columns)
    first = X[ORDER[:rows]]
    torch.testing.assert_close(found.product(rows, weight), first @ weight, rtol=0, atol=1e-13)
    torch.testing.assert_close(found.transposed(y), first.T @ y, rtol=0, atol=1e-13)
    # Once more, from what is kept.
    torch.testing.assert_close(found.product(rows, weight), first @ weight, rtol=0, atol=1e-13)


@either
def test_all_rows_dense(sparse: bool) -> None:
    assert torch.equal(features(sparse).dense(), X[ORDER])
    assert features(sparse).width == 6


@either
def test_all_rows_in_their_order_are_not_copied(sparse: bool) -> None:
    x = SparseMatrix.from_scipy(WORDS, dtype=torch.float64) if sparse else X
    assert FeatureRows(x, torch.arange(9)).x is x
    assert FeatureRows(x, torch.arange(8)).x is not x
    backwards = FeatureRows(x, torch.arange(9).flip(0))
    assert torch.equal(backwards.dense(), X.flip(0))


def test_a_sparse_product_costs_its_entries_and_a_dense_one_its_size() -> None:
    entries = int((X[ORDER[:3]] != 0).sum())
    assert 0 < entries < 18
    assert features(True).cost(3, 7) == spmm_cost(entries, 3, 7)
    assert features(False).cost(3, 7) == gemm_cost(3, 6, 7)


def test_hops_of_all_nodes_in_order_use_the_matrix_of_the_operator() -> None:
    L = operator(toy.cycle(5))
    hops = Hops(L, torch.arange(5), 2, torch.float64)
    assert hops.step(0).values.data_ptr() == L.tensor(torch.float64).values.data_ptr()
    turned = Hops(L, torch.tensor([1, 0, 2, 3, 4]), 2, torch.float64)
    assert turned.step(0).values.data_ptr() != hops.step(0).values.data_ptr()


def test_release_gives_memory_back_and_steps_are_made_again() -> None:
    L = operator(toy.path(6))
    hops = Hops(L, torch.tensor([2]), 2, torch.float64)
    before = hops.step(0).to_dense()
    hops.release()
    assert torch.equal(hops.step(0).to_dense(), before)
    rows = FeatureRows(torch.arange(12.0).view(6, 2), hops.order)
    x = rows.x
    rows.release()
    assert torch.equal(rows.x, x)
