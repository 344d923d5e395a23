"""Lanczos against dense eigenvalues, where eigenvalues repeat and where the space ends early."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.graph import Graph
from kryograph.krylov.lanczos import Components, LanczosBasis, Weighted, lanczos, symmetric
from kryograph.operators import Operator, from_edge_index, operator
from kryograph.sparse import SparseMatrix
from tests.layers import MIXED, OPERATORS, WEIGHTED, dense, seeded

GRAPHS = {
    "cycle": toy.cycle(9),
    "two cliques": toy.two_cliques(5),
    "star": toy.star(7),
    "pieces": MIXED,
    "alone": toy.isolated(3),
    "weighted": WEIGHTED,
}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)


def noise(n: int, seed: int = 0) -> Tensor:
    return torch.randn(n, generator=seeded(seed), dtype=torch.float64)


def found_on(
    graph: Graph, steps: int, start: Tensor | None = None
) -> tuple[Operator, LanczosBasis]:
    L = operator(graph)
    start = noise(graph.n) if start is None else start
    return L, lanczos(L, start, steps, Components.of(L.matrix), tolerance=1e-9)


def nodes_of(parts: Components, part: int) -> np.ndarray:
    return np.flatnonzero(parts.indicator.to_dense()[part].numpy())


def distinct(values: np.ndarray) -> np.ndarray:
    values = np.sort(values)
    return values[np.r_[True, np.diff(values) > 1e-8]]


@every_graph
def test_ritz_values_are_the_distinct_eigenvalues_of_each_component(graph: Graph) -> None:
    L, basis = found_on(graph, graph.n + 2)
    for part in range(basis.components.count):
        nodes = nodes_of(basis.components, part)
        expected = distinct(np.linalg.eigvalsh(L.matrix.toarray()[np.ix_(nodes, nodes)]))
        grade = int(basis.steps[part])
        assert grade == expected.size
        ritz = torch.linalg.eigvalsh(basis.t[part, :grade, :grade]).numpy()
        np.testing.assert_allclose(ritz, expected, atol=1e-10)


@pytest.mark.parametrize(
    ("graph", "steps"),
    [
        (toy.complete(6), [2]),
        (toy.cycle(8), [5]),
        (toy.isolated(1), [1]),
        (toy.disjoint(toy.complete(4), toy.isolated(1), toy.complete(5)), [1, 2, 2]),
    ],
)
def test_how_many_steps_are_possible(graph: Graph, steps: list[int]) -> None:
    for tolerance in (1e-4, 1e-9):
        L = operator(graph)
        basis = lanczos(L, noise(graph.n), 12, Components.of(L.matrix), tolerance=tolerance)
        assert basis.steps.tolist() == steps
        assert torch.isfinite(basis.q).all()
        assert torch.isfinite(basis.t).all()


def test_an_eigenvector_as_start_ends_after_one_step() -> None:
    _, basis = found_on(toy.cycle(7), 5, torch.ones(7, dtype=torch.float64))
    assert basis.steps.tolist() == [1]
    assert basis.t[0, 0, 0].item() == pytest.approx(1.0)
    assert basis.t[0].abs().sum().item() == pytest.approx(1.0)


def test_a_component_where_the_start_is_zero_takes_no_step() -> None:
    start = torch.tensor([0.0, 0.0, 0.0, 1.0, 2.0], dtype=torch.float64)
    _, basis = found_on(toy.disjoint(toy.complete(3), toy.path(2)), 4, start)
    assert basis.steps.tolist() == [2, 0]
    assert (basis.q[:3] == 0).all()


def test_fewer_steps_than_the_grade_are_all_taken() -> None:
    _, basis = found_on(toy.cycle(30), 6)
    assert basis.steps.tolist() == [6]
    assert basis.q.shape == (30, 6)
    assert basis.t.shape == (1, 6, 6)


@every_graph
def test_columns_are_orthonormal_in_each_component(graph: Graph) -> None:
    _, basis = found_on(graph, 8)
    gram = basis.project(basis.q)
    for part, steps in enumerate(basis.steps.tolist()):
        expected = torch.diag((torch.arange(8) < steps).double())
        torch.testing.assert_close(gram[part], expected, rtol=0, atol=1e-12)


def test_columns_stay_orthogonal_when_ritz_values_have_converged() -> None:
    # Without re-orthogonalisation the inner products come to 1 here.
    diagonal = np.r_[np.linspace(0, 0.5, 199), 1.0]
    S = Operator("diagonal", sp.csr_array(sp.diags_array(diagonal)), symmetric=True)
    one = Components.of(sp.csr_array(np.ones((200, 200))))
    q = lanczos(S, noise(200), 100, one, tolerance=1e-12).q
    assert (q.T @ q - torch.eye(100)).abs().max() < 1e-12


@every_graph
def test_the_matrix_is_reproduced_on_the_krylov_space(graph: Graph) -> None:
    L, basis = found_on(graph, graph.n)
    # S^k b = Q T^k Qᵀ b, for any k once the space is invariant.
    b = noise(graph.n)[:, None]
    exact = b
    for k in range(5):
        power = torch.linalg.matrix_power(basis.t, k)
        torch.testing.assert_close(basis.expand(power @ basis.project(b)), exact)
        exact = L @ exact


def test_t_is_the_matrix_seen_in_the_basis() -> None:
    L, basis = found_on(toy.cycle(40), 10)
    torch.testing.assert_close(basis.project(L @ basis.q), basis.t)


@every_graph
def test_permuted_nodes_have_a_permuted_basis(graph: Graph) -> None:
    old = np.random.default_rng(1).permutation(graph.n)
    moved = Graph(sp.csr_array(graph.adjacency[old][:, old]), graph.features[old])
    start = noise(graph.n)
    _, plain = found_on(graph, 6, start)
    _, permuted = found_on(moved, 6, start[old])
    torch.testing.assert_close(permuted.q, plain.q[old], rtol=0, atol=1e-8)


# Gradients


def weights_of(graph: Graph) -> tuple[SparseMatrix, Tensor, Tensor]:
    """The pattern of S, a number for every edge, and which of them each entry has."""
    matrix = operator(graph).matrix
    entries = matrix.tocoo()
    low, high = np.minimum(entries.row, entries.col), np.maximum(entries.row, entries.col)
    pairs, which = np.unique(low * graph.n + high, return_inverse=True)
    numbers = torch.rand(pairs.size, generator=seeded(3), dtype=torch.float64) + 0.5
    pattern = SparseMatrix.from_scipy(matrix, dtype=torch.float64, symmetric=True)
    return pattern, numbers.requires_grad_(), torch.from_numpy(which)


def test_a_product_with_learned_entries_has_the_gradients_of_a_dense_one() -> None:
    pattern, numbers, which = weights_of(MIXED)
    x = torch.randn(MIXED.n, 3, generator=seeded(0), dtype=torch.float64, requires_grad=True)

    def product(values: Tensor, x: Tensor) -> Tensor:
        return Weighted(pattern, values[which]) @ x

    assert torch.equal(product(numbers, x), pattern.with_values(numbers[which]).to_dense() @ x)
    assert torch.autograd.gradcheck(product, (numbers, x))


@pytest.mark.parametrize("graph", [toy.path(7), toy.disjoint(toy.path(5), toy.isolated(1))])
def test_gradients_through_lanczos(graph: Graph) -> None:
    pattern, numbers, which = weights_of(graph)
    parts = Components.of(operator(graph).matrix)

    def spaces(values: Tensor) -> tuple[Tensor, Tensor]:
        basis = lanczos(Weighted(pattern, values[which]), noise(graph.n), 4, parts)
        return basis.q, basis.t

    assert torch.autograd.gradcheck(spaces, numbers)


def test_gradients_are_finite_where_a_space_is_exhausted() -> None:
    graph = toy.disjoint(toy.complete(4), toy.isolated(2))
    pattern, _, _ = weights_of(graph)
    values = pattern.values.clone().requires_grad_()
    basis = lanczos(Weighted(pattern, values), noise(6), 5, Components.of(pattern.to_scipy()))
    assert basis.steps.tolist() == [1, 1, 2]
    (basis.q.sum() + basis.t.sum()).backward()
    assert torch.isfinite(values.grad).all()
    assert values.grad.abs().sum() > 0


# Symmetric operators


@pytest.mark.parametrize("name", OPERATORS)
@every_graph
def test_an_operator_is_a_symmetric_one_seen_through_a_scale(graph: Graph, name: str) -> None:
    L = operator(graph, name)
    S, scale = symmetric(L)
    assert S.symmetric
    found = torch.from_numpy(S.matrix.toarray())
    if scale is not None:
        found = found * scale[None, :] / scale[:, None]
    expected = torch.from_numpy(L.matrix.toarray())
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)


def test_the_walk_becomes_the_symmetric_operator() -> None:
    S, scale = symmetric(operator(WEIGHTED, "rw"))
    assert scale is not None
    torch.testing.assert_close(
        torch.from_numpy(S.matrix.toarray()), dense(WEIGHTED, "sym"), check_dtype=False
    )


def test_one_way_edges_are_refused() -> None:
    L = from_edge_index(torch.tensor([[0, 1], [1, 2]]), None, 3, "rw")
    with pytest.raises(UsageError, match="one-way"):
        symmetric(L)


# Parts


def test_products_by_part_are_those_of_a_block_diagonal_matrix() -> None:
    parts = Components.of(MIXED.adjacency)
    assert parts.groups == ((1, 1), (1, 4), (1, 8))
    q, z = noise(13 * 2).view(13, 2), noise(13 * 3, seed=1).view(13, 3)
    c = parts.project(q, z)
    assert c.shape == (3, 2, 3)
    for part in range(3):
        nodes = nodes_of(parts, part)
        torch.testing.assert_close(c[part], q[nodes].T @ z[nodes])
        torch.testing.assert_close(parts.expand(q, c)[nodes], q[nodes] @ c[part])
    leaves = [each.clone().requires_grad_() for each in (q, z)]
    assert torch.autograd.gradcheck(parts.project, leaves)
    assert torch.autograd.gradcheck(parts.expand, (leaves[0], c.clone().requires_grad_()))


def test_sums_and_their_spread() -> None:
    parts = Components.of(toy.disjoint(toy.path(2), toy.isolated(1)).adjacency)
    values = torch.tensor([[1.0], [2.0], [5.0]], dtype=torch.float64)
    assert parts.sum(values).tolist() == [[5.0], [3.0]]
    assert parts.spread(parts.sum(values)).tolist() == [[3.0], [3.0], [5.0]]
