r"""Lanczos: an orthonormal basis of a Krylov space, and a symmetric matrix seen in it.

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
from typing import Protocol

import torch
from torch import Tensor

from kryograph.krylov.parts import Parts

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
    parts: Parts
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
    S: Multiplies, start: Tensor, steps: int, parts: Parts, *, tolerance: float = BREAKDOWN
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
    >>> lanczos(L, start, 4, Parts.of(L.matrix)).steps.tolist()
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


def _unit(w: Tensor, parts: Parts, floor: Tensor) -> tuple[Tensor, Tensor]:
    """w at length one in each part, and its length; zeros where the length is not above a floor."""
    square = parts.sum(w * w)
    alive = square > floor**2
    # The root of zero has no gradient, not even one that is multiplied by zero afterwards.
    length = torch.where(alive, square, 1.0).sqrt()
    return w * parts.spread(alive / length), length * alive
