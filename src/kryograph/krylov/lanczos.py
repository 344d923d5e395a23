r"""Parts: the components of a graph, and sums over each of them by constant sparse products.

A sparse symmetric matrix whose entries have gradients, and an operator made symmetric.

Lanczos: an orthonormal basis of a Krylov space, and a symmetric matrix seen in it.

.. math::
    \beta_j q_{j+1} = S q_j - \alpha_j q_j - \beta_{j-1} q_{j-1}, \quad
    Q = [q_1, \dots, q_K], \quad T = Q^T S Q

Each component of the graph has a Krylov space of its own: one start vector is cut into its parts,
and the steps are taken in all of them at once. A single space would waste its dimensions on the
eigenvalue 1, which every component has, and carry features from one component to another.

This differs from the textbook in that (1) every new vector is made orthogonal to all before it,
twice; (2) where a space is exhausted, the remaining vectors are zero and `Basis.steps` says how
many there are; (3) T is what the recurrence says, with gradients with respect to S.
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


@dataclass(frozen=True, eq=False)
class Components:
    """Sets of nodes that no entry of a matrix connects, in the order of their size.

    Attributes:
        indicator: P × N; row p has ones at the nodes of part p.
        order: All nodes, part by part.
        place: Where each node is in that order.
        groups: How many parts there are of each size, and the size.

    >>> two = Components.of(sp.csr_array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))
    >>> two.groups, two.order.tolist()
    (((1, 1), (1, 2)), [1, 0, 2])
    """

    indicator: SparseMatrix
    order: Tensor
    place: Tensor
    groups: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, matrix: sp.csr_array, device: torch.device | str = "cpu") -> Components:
        """The components of a matrix."""
        n = matrix.shape[0]
        count, found = sp.csgraph.connected_components(matrix, directed=False)
        sizes = np.bincount(found, minlength=count)
        # Parts of one size lie side by side, so that they are a batch without padding.
        rank = np.empty(count, dtype=np.int64)
        rank[np.argsort(sizes, kind="stable")] = np.arange(count)
        part = rank[found]
        ones = sp.csr_array((np.ones(n), (part, np.arange(n))), shape=(count, n))
        size, times = np.unique(sizes, return_counts=True)
        order = np.argsort(part, kind="stable")
        return cls(
            SparseMatrix.from_scipy(ones, dtype=torch.float64, device=device),
            torch.from_numpy(order).to(device),
            torch.from_numpy(np.argsort(order)).to(device),
            tuple(zip(times.tolist(), size.tolist(), strict=True)),
        )

    @property
    def count(self) -> int:
        """P, the number of parts."""
        return self.indicator.shape[0]

    def sum(self, values: Tensor) -> Tensor:
        """The sum of the nodes' rows in each part, in float64: N × d → P × d."""
        return self.indicator @ values

    def spread(self, values: Tensor) -> Tensor:
        """Each part's row for all of its nodes: P × d → N × d."""
        return self.indicator.T @ values

    def project(self, q: Tensor, z: Tensor) -> Tensor:
        """Qᵀ Z in each part: (N × K), (N × d) → P × K × d."""
        pairs = zip(self._batches(q), self._batches(z), strict=True)
        return torch.cat([one.mT @ other for one, other in pairs])

    def expand(self, q: Tensor, c: Tensor) -> Tensor:
        """Q C in each part: (N × K), (P × K × d) → N × d."""
        counts = [count for count, _ in self.groups]
        pairs = zip(self._batches(q), torch.split(c, counts), strict=True)
        return self._moved(torch.cat([(one @ other).flatten(0, 1) for one, other in pairs]), False)

    def _batches(self, x: Tensor) -> list[Tensor]:
        lengths = [count * size for count, size in self.groups]
        pieces = torch.split(self._moved(x, True), lengths)
        shapes = zip(pieces, self.groups, strict=True)
        return [piece.view(count, size, -1) for piece, (count, size) in shapes]

    def _moved(self, x: Tensor, there: bool) -> Tensor:
        if self.count == 1:
            return x
        pair = (self.order, self.place) if there else (self.place, self.order)
        moved: Tensor = _Permuted.apply(x, *pair)  # type: ignore[no-untyped-call]
        return moved


class _Permuted(torch.autograd.Function):
    """Rows in another order. torch's own gradient would add them up one by one."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(order, inverse)
        return x[order]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        order, inverse = ctx.saved_tensors
        back: Tensor = _Permuted.apply(gradient, inverse, order)  # type: ignore[no-untyped-call]
        return back, None, None


class Weighted:
    """Entries in the places of a symmetric pattern: A X, with gradients for both.

    Args:
        pattern: Where the entries are.
        values: The entries, row by row; (i, j) and (j, i) must be equal.
    """

    def __init__(self, pattern: SparseMatrix, values: Tensor) -> None:
        self.pattern, self.values = pattern, values

    def __matmul__(self, x: Tensor, /) -> Tensor:
        # Mixed precision stops here: there is no sparse kernel below float32.
        exact = x.to(torch.float64 if x.dtype == torch.float64 else torch.float32)
        product: Tensor = _WeightedProduct.apply(  # type: ignore[no-untyped-call]
            self.values.to(exact.dtype), exact, self.pattern
        )
        return product.to(x.dtype)


class _WeightedProduct(torch.autograd.Function):
    """A X; the gradient of entry (i, j) is the product of row i of dY with row j of X."""

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
        return (
            _sampled(matrix, gradient, x) if for_values else None,
            matrix.product(gradient) if for_x else None,
            None,
        )


def _sampled(pattern: SparseMatrix, left: Tensor, right: Tensor) -> Tensor:
    """The entries of left rightᵀ in the places of a pattern; no other is computed."""
    found = torch.sparse.sampled_addmm(
        pattern._matrix, left.contiguous(), right.contiguous().mT, beta=0.0
    )
    values: Tensor = found.values()
    return values


def symmetric(L: Operator) -> tuple[Operator, Tensor | None]:
    """S and c with L = diag(c)⁻¹ S diag(c); c is None where L is symmetric as it is.

    D̃⁻¹ Ã is D̃^{-1/2} Ã D̃^{-1/2} seen through D̃^{1/2}, and its diagonal is D̃⁻¹.
    """
    if L.symmetric:
        return L, None
    diagonal = L.matrix.diagonal()
    if (diagonal > 0).all():
        scale = diagonal**-0.5
        turned = sp.csr_array(sp.diags_array(scale) @ L.matrix @ sp.diags_array(1 / scale))
        gap = abs(turned - turned.T)
        if gap.max() <= 1e-12:
            # Equal to the last digit, so that the transpose is the matrix itself.
            even = sp.csr_array((turned + turned.T) / 2)
            even.sort_indices()
            return Operator(f"symmetric {L.name}", even, symmetric=True), torch.from_numpy(scale)
    raise UsageError("Lanczos needs a graph without one-way edges, and the operator sym or rw.")


BREAKDOWN = 1e-4
"""β below this share of the largest ‖S q‖ so far ends a space; LanczosNet's code has it, too."""


class Multiplies(Protocol):
    """A symmetric matrix, as far as it is needed here."""

    def __matmul__(self, x: Tensor, /) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class Basis:
    """What Lanczos found.

    Attributes:
        q: N × K; in each part orthonormal columns, then zeros.
        t: P × K × K, tridiagonal, then zeros.
        steps: How many steps were possible in each part: the grade, if less than K.
        parts: The parts.
    """

    q: Tensor
    t: Tensor
    steps: Tensor
    parts: Components
    _powers: dict[tuple[int, ...], Tensor] = field(default_factory=dict, repr=False)

    @cached_property
    def ritz(self) -> tuple[Tensor, Tensor]:
        """Eigenvalues (P × K) and eigenvectors (P × K × K) of T. Not for gradients.

        Beyond the grade T is zero, and so are the further eigenvalues.
        """
        values, vectors = torch.linalg.eigh(self.t.detach())
        return values, vectors

    def powers(self, exponents: tuple[int, ...]) -> Tensor:
        """T^t for each exponent: P × E × K × K. All layers of a network share them."""
        if exponents not in self._powers:
            made = [torch.linalg.matrix_power(self.t, t) for t in exponents]
            self._powers[exponents] = torch.stack(made, dim=1)
        return self._powers[exponents]

    def project(self, z: Tensor) -> Tensor:
        """Qᵀ Z in each part: N × d → P × K × d."""
        return self.parts.project(self.q.to(z.dtype), z)

    def expand(self, c: Tensor) -> Tensor:
        """Q C in each part: P × K × d → N × d."""
        return self.parts.expand(self.q.to(c.dtype), c)


def lanczos(
    S: Multiplies, start: Tensor, steps: int, parts: Components, *, tolerance: float = BREAKDOWN
) -> Basis:
    """K steps of Lanczos in every part of the graph at once.

    Args:
        S: Symmetric; multiplies float64.
        start: N numbers, in float64. A part where they are zero takes no step.
        steps: K.
        parts: What S does not connect.
        tolerance: Below which β, relative to S, counts as zero.

    >>> import scipy.sparse as sp
    >>> from kryograph.data import toy
    >>> from kryograph.operators import operator
    >>> L = operator(toy.complete(5))
    >>> start = torch.arange(5, dtype=torch.float64)
    >>> lanczos(L, start, 4, Components.of(L.matrix)).steps.tolist()
    [2]
    """
    column, norm = _unit(start[:, None], parts, start.new_zeros(parts.count, 1))
    columns, norms, diagonal = [column], [norm], []
    size = torch.zeros_like(norm)
    for step in range(steps):
        w = S @ columns[-1]
        diagonal.append(parts.sum(columns[-1] * w))
        if step == steps - 1:
            break
        with torch.no_grad():
            size = torch.maximum(size, parts.sum(w * w).sqrt())
        earlier = torch.cat(columns, dim=1)
        for _ in range(2):
            w = w - (earlier * parts.spread(parts.sum(earlier * w))).sum(dim=1, keepdim=True)
        column, norm = _unit(w, parts, tolerance * size)
        columns.append(column)
        norms.append(norm)
    alpha, beta = torch.cat(diagonal, dim=1), torch.cat(norms, dim=1)
    off = torch.diag_embed(beta[:, 1:], offset=1)
    t = torch.diag_embed(alpha) + off + off.mT
    return Basis(torch.cat(columns, dim=1), t, (beta > 0).sum(dim=1), parts)


def _unit(w: Tensor, parts: Components, floor: Tensor) -> tuple[Tensor, Tensor]:
    """w at length one in each part, and its length; zeros where the length is not above a floor."""
    square = parts.sum(w * w)
    alive = square > floor**2
    # The root of zero has no gradient, not even one that is multiplied by zero afterwards.
    length = torch.where(alive, square, 1.0).sqrt()
    return w * parts.spread(alive / length), length * alive
