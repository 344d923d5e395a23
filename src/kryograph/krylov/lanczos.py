r"""Lanczos in every connected component at once, with gradients with respect to the matrix.

.. math::
    \beta_j q_{j+1} = S q_j - \alpha_j q_j - \beta_{j-1} q_{j-1}, \quad
    Q = [q_1, \dots, q_K], \quad T = Q^T S Q

Each component of the graph has a Krylov space of its own: the start vector is restricted to every
component, and a step is taken in all of them at once. A single space would waste its dimensions on
the eigenvalue 1, which every component has, and carry features from one component to another.

This differs from the textbook in three points. (1) Every new vector is orthogonalised against all
earlier ones, twice. (2) When a space is exhausted, its remaining vectors are zero, and
`steps` holds their number. (3) T is computed from the coefficients of the recurrence, with
gradients with respect to S.

`Weighted` is a symmetric sparse matrix whose entries have gradients, and `symmetric` makes an
operator symmetric by a similarity transformation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from kryograph.errors import UsageError
from kryograph.operators import Operator
from kryograph.sparse import SparseMatrix

BREAKDOWN = 1e-4
"""Fraction of the largest ‖S q‖ so far below which β ends a space, as in LanczosNet's code."""


class Multiplies(Protocol):
    """A symmetric matrix that can be multiplied by a tensor."""

    def __matmul__(self, x: Tensor, /) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class Components:
    """The P connected components of a matrix, sorted by size.

    `indicator` is P × N; row p has ones at the nodes of component p. `order` lists all nodes,
    component by component, and `position` is the index of each node in it. `groups` has, for each
    size, the number of components of this size, and the size.

    >>> two = Components.of(sp.csr_array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))
    >>> two.groups, two.order.tolist()
    (((1, 1), (1, 2)), [1, 0, 2])
    """

    indicator: SparseMatrix
    order: Tensor
    position: Tensor
    groups: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, matrix: sp.csr_array, device: torch.device | str = "cpu") -> Components:
        """Find the components of a matrix; directions of entries are ignored."""
        n = matrix.shape[0]
        count, component_of = sp.csgraph.connected_components(matrix, directed=False)
        sizes = np.bincount(component_of, minlength=count)
        # Components of one size are adjacent, so that they form a batch without padding.
        rank = np.empty(count, dtype=np.int64)
        rank[np.argsort(sizes, kind="stable")] = np.arange(count)
        component = rank[component_of]
        ones = sp.csr_array((np.ones(n), (component, np.arange(n))), shape=(count, n))
        size, times = np.unique(sizes, return_counts=True)
        order = np.argsort(component, kind="stable")
        return cls(
            SparseMatrix.from_scipy(ones, dtype=torch.float64, device=device),
            torch.from_numpy(order).to(device),
            torch.from_numpy(np.argsort(order)).to(device),
            tuple(zip(times.tolist(), size.tolist(), strict=True)),
        )

    @property
    def count(self) -> int:
        """The number P of components."""
        return self.indicator.shape[0]

    def sum(self, values: Tensor) -> Tensor:
        """Sum the rows of the nodes of each component, in float64: N × d → P × d."""
        return self.indicator @ values

    def spread(self, values: Tensor) -> Tensor:
        """Copy the row of each component to all of its nodes: P × d → N × d."""
        return self.indicator.T @ values

    def project(self, q: Tensor, z: Tensor) -> Tensor:
        """Compute Qᵀ Z in each component: (N × K), (N × d) → P × K × d."""
        pairs = zip(self._batches(q), self._batches(z), strict=True)
        return torch.cat([one.mT @ other for one, other in pairs])

    def expand(self, q: Tensor, c: Tensor) -> Tensor:
        """Compute Q C in each component: (N × K), (P × K × d) → N × d."""
        counts = [count for count, _ in self.groups]
        pairs = zip(self._batches(q), torch.split(c, counts), strict=True)
        product = torch.cat([(one @ other).flatten(0, 1) for one, other in pairs])
        return self._permute(product, self.position, self.order)

    def _batches(self, x: Tensor) -> list[Tensor]:
        """Arrange the rows of the nodes as one batch per size of a component."""
        lengths = [count * size for count, size in self.groups]
        pieces = torch.split(self._permute(x, self.order, self.position), lengths)
        shapes = zip(pieces, self.groups, strict=True)
        return [piece.view(count, size, -1) for piece, (count, size) in shapes]

    def _permute(self, x: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
        if self.count == 1:
            return x
        permuted: Tensor = _Permuted.apply(x, order, inverse)  # type: ignore[no-untyped-call]
        return permuted


class _Permuted(torch.autograd.Function):
    """Rows in another order. The gradient of torch's indexing would add up rows one by one."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(order, inverse)
        return x[order]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        order, inverse = ctx.saved_tensors
        for_x: Tensor = _Permuted.apply(gradient, inverse, order)  # type: ignore[no-untyped-call]
        return for_x, None, None


@dataclass(frozen=True, eq=False)
class LanczosBasis:
    """The result of `lanczos`: Q (N × K) and T (P × K × K) of every component.

    In each component, orthonormal columns and a tridiagonal matrix are followed by zeros. `steps`
    (P) are the numbers of steps made: the grade, if less than K.
    """

    q: Tensor
    t: Tensor
    steps: Tensor
    components: Components
    _powers: dict[tuple[int, ...], Tensor] = field(default_factory=dict, repr=False)

    @cached_property
    def ritz(self) -> tuple[Tensor, Tensor]:
        """Eigenvalues (P × K) and eigenvectors (P × K × K) of T, without gradients.

        Rows and columns of T beyond the grade are zero, and add eigenvalues that are zero.
        """
        values, vectors = torch.linalg.eigh(self.t.detach())
        return values, vectors

    def powers(self, exponents: tuple[int, ...]) -> Tensor:
        """Compute T^t for E exponents t, P × E × K × K, once for all layers of a network."""
        if exponents not in self._powers:
            powers = [torch.linalg.matrix_power(self.t, t) for t in exponents]
            self._powers[exponents] = torch.stack(powers, dim=1)
        return self._powers[exponents]

    def project(self, z: Tensor) -> Tensor:
        """Compute Qᵀ Z in each component: N × d → P × K × d."""
        return self.components.project(self.q.to(z.dtype), z)

    def expand(self, c: Tensor) -> Tensor:
        """Compute Q C in each component: P × K × d → N × d."""
        return self.components.expand(self.q.to(c.dtype), c)


def lanczos(
    S: Multiplies,
    start: Tensor,
    steps: int,
    components: Components,
    *,
    tolerance: float = BREAKDOWN,
) -> LanczosBasis:
    """Make K steps of Lanczos in every connected component of a symmetric S at once.

    A component where the start vector (N, float64) is zero makes no step. β counts as zero below
    the tolerance, which is relative to S.

    >>> import scipy.sparse as sp
    >>> from kryograph.data import toy
    >>> from kryograph.operators import operator
    >>> L = operator(toy.complete(5))
    >>> start = torch.arange(5, dtype=torch.float64)
    >>> lanczos(L, start, 4, Components.of(L.matrix)).steps.tolist()
    [2]
    """
    column, norm = _unit(start[:, None], components, start.new_zeros(components.count, 1))
    columns, norms, diagonal = [column], [norm], []
    size = torch.zeros_like(norm)
    for step in range(steps):
        w = S @ columns[-1]
        diagonal.append(components.sum(columns[-1] * w))
        if step == steps - 1:
            break
        with torch.no_grad():
            size = torch.maximum(size, components.sum(w * w).sqrt())
        earlier = torch.cat(columns, dim=1)
        for _ in range(2):
            w = w - (earlier * components.spread(components.sum(earlier * w))).sum(
                dim=1, keepdim=True
            )
        column, norm = _unit(w, components, tolerance * size)
        columns.append(column)
        norms.append(norm)
    alpha, beta = torch.cat(diagonal, dim=1), torch.cat(norms, dim=1)
    off = torch.diag_embed(beta[:, 1:], offset=1)
    t = torch.diag_embed(alpha) + off + off.mT
    return LanczosBasis(torch.cat(columns, dim=1), t, (beta > 0).sum(dim=1), components)


def _unit(w: Tensor, components: Components, floor: Tensor) -> tuple[Tensor, Tensor]:
    """Scale w to length one in each component; also the lengths, zero where not above `floor`."""
    square = components.sum(w * w)
    alive = square > floor**2
    # The gradient of the root of zero is infinite, and NaN when it is multiplied by zero.
    length = torch.where(alive, square, 1.0).sqrt()
    return w * components.spread(alive / length), length * alive


class Weighted:
    """A symmetric sparse matrix A; products A X have gradients for its entries and for X.

    Its nonzero entries are at the places of those of `pattern`. `values` holds them in the same
    order; those of (i, j) and (j, i) must be equal.
    """

    def __init__(self, pattern: SparseMatrix, values: Tensor) -> None:
        self.pattern, self.values = pattern, values

    def __matmul__(self, x: Tensor, /) -> Tensor:
        # bfloat16 is multiplied in float32, because no sparse kernel takes bfloat16.
        exact = x.to(torch.float64 if x.dtype == torch.float64 else torch.float32)
        product: Tensor = _WeightedProduct.apply(  # type: ignore[no-untyped-call]
            self.values.to(exact.dtype), exact, self.pattern
        )
        return product.to(x.dtype)


class _WeightedProduct(torch.autograd.Function):
    """Product A X. The gradient of A_ij is the inner product of row i of dY and row j of X."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, x: Tensor, pattern: SparseMatrix) -> Tensor:
        ctx.save_for_backward(values, x)
        ctx.pattern = pattern
        return pattern.with_values(values).product(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        values, x = ctx.saved_tensors
        for_values, for_x, _ = ctx.needs_input_grad
        matrix = ctx.pattern.with_values(values)
        of_values = None
        if for_values:  # only those entries of dY Xᵀ that belong to the sparsity pattern
            dy, x = gradient.contiguous(), x.contiguous()
            of_values = torch.sparse.sampled_addmm(matrix._matrix, dy, x.mT, beta=0.0).values()
        return of_values, matrix.product(gradient) if for_x else None, None


def symmetric(L: Operator) -> tuple[Operator, Tensor | None]:
    """Find a symmetric S and c with L = diag(c)⁻¹ S diag(c); c is None if L is symmetric.

    For L = D̃⁻¹ Ã, S is D̃^{-1/2} Ã D̃^{-1/2} and c is D̃^{1/2}; the diagonal of L is D̃⁻¹.

    Raises:
        UsageError: If there is no such S, because the graph is directed or L is a Laplacian.
    """
    if L.symmetric:
        return L, None
    diagonal = L.matrix.diagonal()
    if (diagonal > 0).all():
        scale = diagonal**-0.5
        similar = sp.csr_array(sp.diags_array(scale) @ L.matrix @ sp.diags_array(1 / scale))
        gap = abs(similar - similar.T)
        if gap.max() <= 1e-12:
            # The mean is exactly symmetric, so that the matrix is its own transpose.
            exact = sp.csr_array((similar + similar.T) / 2)
            exact.sort_indices()
            return Operator(f"symmetric {L.name}", exact, symmetric=True), torch.from_numpy(scale)
    raise UsageError("Lanczos needs a graph without one-way edges and the operator sym or rw.")
