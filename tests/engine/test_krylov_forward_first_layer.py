from __future__ import annotations

import pytest
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.autograd import gradcheck

from kryograph.data import synthetic_citations, toy
from kryograph.engine import krylov_forward as products
from kryograph.engine import machine
from kryograph.engine.hops import FeatureRows, Hops
from kryograph.engine.krylov_forward import (
    Blocks,
    FirstLayer,
    Horner,
    KeptBlocks,
    cheapest,
    first_layer_product,
)
from kryograph.nn.functional import NodeFeatures
from kryograph.operators import Operator, from_edge_index, operator
from kryograph.sparse import TORCH_KERNEL_COLUMNS, SparseMatrix
from tests.layers import directed

GRAPH = toy.disjoint(toy.path(12), toy.isolated(1), toy.star(5))
"""Eighteen nodes; along the path a few hops do not reach everything."""
NODES = torch.tensor([14, 3, 12, 4])
FORMS = [KeptBlocks, Horner, Blocks]
OPERATORS: dict[str, Operator] = {
    "sym": operator(GRAPH, "sym"),
    "rw": operator(GRAPH, "rw"),
    "one-way": from_edge_index(*directed(GRAPH.n, 25, seed=2), GRAPH.n, "rw"),
}

every_form = pytest.mark.parametrize("form", FORMS)
with_gradient = pytest.mark.parametrize("form", [KeptBlocks, Horner])
either = pytest.mark.parametrize("sparse", [False, True])
every_hop = pytest.mark.parametrize(("k", "order"), [(0, 1), (0, 4), (2, 1), (2, 3), (1, 20)])
narrow_or_wide = pytest.mark.parametrize(
    "hidden", [3, TORCH_KERNEL_COLUMNS - 1, TORCH_KERNEL_COLUMNS + 1]
)


def features(sparse: bool) -> NodeFeatures:
    words = sp.random_array((GRAPH.n, 5), density=0.4, rng=1, format="csr")
    if sparse:
        return SparseMatrix.from_scipy(words, dtype=torch.float64)
    return torch.from_numpy(words.toarray())


def random(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def product(
    form: type[FirstLayer], name: str, sparse: bool, k: int, order: int, hidden: int, spare: int = 0
) -> FirstLayer:
    hops = Hops(OPERATORS[name], NODES, k + order - 1 + spare, torch.float64)
    return form(FeatureRows(features(sparse), hops.order), hops, k, order, hidden)


def krylov_matrix(name: str, of: FirstLayer) -> Tensor:
    """K_m(L, X)[T_k], from dense powers of L."""
    matrix, x = torch.from_numpy(OPERATORS[name].matrix.toarray()), features(False)
    blocks = [torch.linalg.matrix_power(matrix, j) @ x for j in range(of.order)]
    return torch.cat(blocks, dim=1)[of.hops.nodes(of.k)]


def check(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@every_form
@pytest.mark.parametrize("name", OPERATORS)
@either
@every_hop
@narrow_or_wide
def test_every_form_is_the_dense_product(
    form: type[FirstLayer], name: str, sparse: bool, k: int, order: int, hidden: int
) -> None:
    found, weight = product(form, name, sparse, k, order, hidden), random(order * 5, hidden)
    check(found.forward(weight), krylov_matrix(name, found) @ weight)
    # A second call must not see what the first has left.
    check(found.forward(2 * weight), krylov_matrix(name, found) @ (2 * weight))


@with_gradient
@pytest.mark.parametrize("name", OPERATORS)
@either
@every_hop
@narrow_or_wide
def test_the_gradient_is_the_dense_transpose(
    form: type[FirstLayer], name: str, sparse: bool, k: int, order: int, hidden: int
) -> None:
    found = product(form, name, sparse, k, order, hidden)
    gradient = random(found.rows, hidden, seed=1)
    untouched = gradient.clone()
    check(found.backward(gradient), krylov_matrix(name, found).T @ gradient)
    assert torch.equal(gradient, untouched)


def test_the_hops_that_are_compared_are_not_the_whole_graph() -> None:
    # Else any rows would do. A leaf, two nodes of the path, a node on its own; then the star's
    # centre and one node more at each side of the path; then the other leaves …
    assert product(KeptBlocks, "sym", False, 2, 3, 3).hops.sizes == [4, 7, 12, 14, 15]


@every_form
@either
def test_features_of_farther_nodes_change_nothing(form: type[FirstLayer], sparse: bool) -> None:
    found, weight = product(form, "rw", sparse, 1, 3, 4, spare=2), random(15, 4)
    assert found.hops.sizes[-1] > found.hops.sizes[3]
    check(found.forward(weight), krylov_matrix("rw", found) @ weight)


def test_blocks_that_are_not_kept_have_no_gradient() -> None:
    with pytest.raises(NotImplementedError, match="have no gradient"):
        product(Blocks, "sym", False, 0, 2, 3).backward(torch.ones(4, 3).double())


# Gradients


@with_gradient
@either
@pytest.mark.parametrize("hidden", [2, TORCH_KERNEL_COLUMNS])
def test_derivatives_of_the_product(form: type[FirstLayer], sparse: bool, hidden: int) -> None:
    found = product(form, "rw", sparse, 1, 2, hidden)
    weight = random(10, hidden).requires_grad_()
    few = slice(None) if hidden == 2 else slice(0, 60, 20)  # a whole Jacobian would take long
    assert gradcheck(
        lambda w: first_layer_product(found, w)[:2, few], (weight,), fast_mode=hidden > 2
    )


@with_gradient
def test_a_known_value_is_taken_as_it_is_and_has_the_same_gradient(form: type[FirstLayer]) -> None:
    found, weight = product(form, "sym", True, 1, 3, 2), random(15, 2).requires_grad_()
    upstream = random(found.rows, 2, seed=1)
    first_layer_product(found, weight).backward(upstream)
    expected, weight.grad = weight.grad, None
    known = torch.full((found.rows, 2), 7.0, dtype=torch.float64)
    again = first_layer_product(found, weight, known)
    assert torch.equal(again, known)
    again.backward(upstream)
    assert torch.equal(weight.grad, expected)


# Which form is chosen


def chosen(
    x: NodeFeatures, nodes: Tensor, order: int, hidden: int, *forms: type[FirstLayer]
) -> FirstLayer:
    graph = synthetic_citations(n=2000, classes=3, words=20).graph
    hops = Hops(operator(graph), nodes, order - 1, torch.float32)
    features = FeatureRows(x, hops.order)
    return cheapest(form(features, hops, 0, order, hidden) for form in forms)


def bag_of_words(width: int) -> SparseMatrix:
    """Two thousand documents of ten words each."""
    return SparseMatrix.from_scipy(
        sp.random_array((2000, width), density=10 / width, rng=0, format="csr")
    )


def test_few_rows_of_dense_features_are_kept() -> None:
    found = chosen(torch.ones(2000, 64), torch.arange(20), 4, 64, KeptBlocks, Horner)
    assert isinstance(found, KeptBlocks)


def test_many_rows_of_wide_sparse_features_are_not() -> None:
    found = chosen(bag_of_words(5000), torch.arange(2000), 4, 16, KeptBlocks, Horner)
    assert isinstance(found, Horner)


def test_all_rows_of_narrow_dense_features_go_block_by_block() -> None:
    found = chosen(torch.ones(2000, 8), torch.arange(2000), 4, 512, Blocks, Horner)
    assert isinstance(found, Blocks)


def test_blocks_that_need_too_much_memory_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = (torch.ones(2000, 64), torch.arange(20), 4, 64)
    kept = chosen(*arguments, KeptBlocks).cost().kept
    assert kept == 20 * 4 * 64 * 4
    monkeypatch.setattr(products, "MOST_KEPT", kept)
    assert isinstance(chosen(*arguments, KeptBlocks, Horner), KeptBlocks)
    monkeypatch.setattr(products, "MOST_KEPT", kept - 1)
    assert isinstance(chosen(*arguments, KeptBlocks, Horner), Horner)
    # Where there is no other form, it has to be that one.
    assert isinstance(chosen(*arguments, KeptBlocks), KeptBlocks)


def test_the_choice_asks_no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(*arguments: object) -> None:
        raise AssertionError("the last digit of a result must not depend on how busy a machine is")

    monkeypatch.setattr(machine, "measure_rates", measured)
    monkeypatch.setattr(machine, "_measure", measured)
    monkeypatch.setattr(torch, "get_num_threads", measured)
    assert not any(value is machine for value in vars(products).values())
    few = chosen(torch.ones(2000, 64), torch.arange(20), 4, 64, KeptBlocks, Horner)
    many = chosen(bag_of_words(5000), torch.arange(2000), 4, 16, KeptBlocks, Horner)
    assert (type(few), type(many)) == (KeptBlocks, Horner)
