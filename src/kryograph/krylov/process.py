r"""Block Arnoldi and block Lanczos, one step at a time, for any of the block inner products.

.. math::
    L V_j = \sum_{i \le j+1} V_i H_{ij}, \quad X = V_1 B, \quad
    \langle V_i, V_j \rangle = \delta_{ij} I

For a symmetric L, H is block tridiagonal and symmetric, and the sum has three terms.

This differs from the textbook in three points. (1) A new block is orthogonalised against all
earlier blocks twice, and its columns are made orthonormal in between, so that short directions are
orthogonal to the earlier blocks too. (2) Directions that are too short are dropped (deflation), so
that later blocks are narrower. (3) The Lanczos process can omit the second orthogonalisation as
long as a bound says that it is not needed.
"""

from __future__ import annotations

from enum import Enum

import torch
from torch import Tensor

from kryograph.errors import UsageError
from kryograph.krylov.inner_products import BlockInnerProduct, gram
from kryograph.krylov.inputs import Pair

EPS = torch.finfo(torch.float64).eps
ONE_CHOLESKY_CONDITION = 10.0
"""Condition number up to which one Cholesky factor gives columns orthonormal to 1e-14."""
CHOLESKY_CONDITION = 1e4
"""Condition number beyond which XᵀX has lost the digits that decide on a rank."""
SEMI_ORTHOGONAL = EPS**0.5
"""Loss of orthogonality up to which the projection H is exact to rounding (Simon 1984)."""


class End(Enum):
    """Why a Krylov space stopped growing."""

    INVARIANT = "L maps the space into itself"
    STEPS = "the requested number of steps was made"
    ZERO = "X is zero"


class Growth:
    """A Krylov space that grows by one block with each `step`, in the batch form of a product.

    A direction of X counts as zero if it is shorter than the tolerance times its column, a
    direction of L V if it is shorter than the tolerance times L. If L is `symmetric`, recurrences
    have three terms; with `partly`, which is cheaper, the basis is then orthonormal to 1e-8 only.

    Attributes:
        blocks: V_1, V_2, …, each B × n × r; the next step multiplies the last one by L.
        h: H, B × rows × columns: one column block per step, one row block per block of V.
        start: The matrix B with X = V_1 B, as a batch B × r_1 × r.
        ranks: Number of directions that each block adds.
        end: Why the space cannot grow any more; None as long as it can.
    """

    def __init__(
        self,
        pair: Pair,
        product: BlockInnerProduct,
        tolerance: float,
        *,
        symmetric: bool,
        partly: bool = False,
    ) -> None:
        self.pair, self.product, self.tolerance = pair, product, tolerance
        self.symmetric = symmetric
        self._loss = OrthogonalityLoss() if symmetric and partly else None
        self._repeat_next = False
        self._size = pair.largest
        self._alive: list[Tensor] = []
        self.blocks: list[Tensor] = []
        self.ranks: list[int] = []
        self.end: End | None = None
        x = product.as_batch(pair.x)
        # The columns are scaled to length one: X and X diag(c) span the same spaces.
        lengths = torch.linalg.vector_norm(x, dim=1, keepdim=True)
        _check_finite(lengths, "X")
        block, r = orthonormalise(x / torch.where(lengths > 0, lengths, 1.0), tolerance)
        self.start = r * lengths
        self.h = x.new_zeros(x.shape[0], block.shape[-1], 0)
        self._keep(block, r, End.ZERO)

    @property
    def steps(self) -> int:
        """Number of steps made so far."""
        return len(self.blocks) - (self.end is None)

    @property
    def projected(self) -> Tensor:
        """H without its last row block, which leads out of the space: B × k × k."""
        return self.h[:, : self.h.shape[2]]

    @property
    def alive(self) -> Tensor:
        """Whether each column of H belongs to a direction, B × k; False for dropped vectors."""
        return torch.cat(self._alive[: self.steps], dim=1)

    @property
    def used(self) -> list[Tensor]:
        """The blocks that have been multiplied by L."""
        return self.blocks[: self.steps]

    def step(self) -> None:
        """Multiply the last block by L and append the new directions as a block."""
        v = self.blocks[-1]
        w = self.product.as_batch(self.pair.times(self.product.from_batch(v, self.pair.x.shape[1])))
        column = self._subtract_two(w) if self.symmetric else self._subtract_all(w)
        self._measure(column)
        block, r = orthonormalise(w, self.tolerance * self._size)
        if r.shape[1] and r.any() and self._needs_second_pass(column[-1], r):
            corrections = self._subtract_all(block)
            # A direction that loses half its length in the second pass was rounding error.
            block, second = orthonormalise(block, 0.5)
            if not self.symmetric:
                column = [c + a @ r for c, a in zip(column, corrections, strict=True)]
            r = second @ r
        rows, columns = self.h.shape[1:]
        width = v.shape[-1]
        h = self.h.new_zeros(len(v), rows + r.shape[1], columns + width)
        h[:, :rows, :columns] = self.h
        entries = torch.cat([*column, r], dim=1)
        h[:, h.shape[1] - entries.shape[1] :, columns:] = entries
        self.h = h
        self._measure([*column, r])
        # The minimal polynomial of L has degree n at most, so no space has more than n directions
        # per batch entry. Rounding can hide that: a block of the global product has n·r numbers.
        if columns + width >= self.pair.x.shape[0]:
            r = r[:, :0]
        self._keep(block, r, End.INVARIANT)

    def _keep(self, block: Tensor, r: Tensor, otherwise: End) -> None:
        """Append a block, or end the space for the reason `otherwise` if it has no directions."""
        alive = (r != 0).any(dim=-1)
        if alive.any():
            self.blocks.append(block)
            self.ranks.append(int(alive.sum()))
            self._alive.append(alive)
            return
        self.end = otherwise
        self.h = self.h[:, : sum(v.shape[-1] for v in self.blocks)]

    def _measure(self, column: list[Tensor]) -> None:
        """Update the lower bound of the norm of L by the lengths of the columns of L V."""
        lengths = torch.linalg.vector_norm(torch.cat(column, dim=1), dim=1)
        _check_finite(lengths, "L")
        self._size = max(self._size, float(lengths.max()))

    def _subtract_two(self, w: Tensor) -> list[Tensor]:
        """Orthogonalise W in place against the last two blocks; return the coefficients."""
        v, column = self.blocks[-1], []
        if len(self.blocks) > 1:
            previous = self.blocks[-2]
            r = self.h[:, -v.shape[-1] :, -previous.shape[-1] :].mT
            w.baddbmm_(previous, r, alpha=-1)
            column.append(r)
        a = gram(v, w)
        a = (a + a.mT) / 2
        w.baddbmm_(v, a, alpha=-1)
        return [*column, a]

    def _subtract_all(self, w: Tensor) -> list[Tensor]:
        """Orthogonalise W in place against all blocks; return the coefficients."""
        coefficients = []
        for block in self.blocks:
            c = gram(block, w)
            w.baddbmm_(block, c, alpha=-1)
            coefficients.append(c)
        return coefficients

    def _needs_second_pass(self, a: Tensor, r: Tensor) -> bool:
        """Whether to orthogonalise a second time; always for two blocks in a row."""
        if self._loss is None:
            return True
        lost = self._loss.after(a, r, self._size) > SEMI_ORTHOGONAL
        needed = lost or self._repeat_next
        self._repeat_next = lost and not self._repeat_next
        if needed:
            self._loss.reset()
        return needed


def _check_finite(lengths: Tensor, name: str) -> None:
    if not torch.isfinite(lengths).all():
        raise UsageError(
            f"The entries of {name} are so large that their squares overflow: scale it down."
        )


def orthonormalise(w: Tensor, floor: float) -> tuple[Tensor, Tensor]:
    """Factorise W = Q R with orthonormal columns of Q, dropping directions shorter than `floor`.

    W is B × n × r, where B or r is 1, and may be overwritten. If a single matrix has fewer
    directions than columns, Q is narrower than W. In a batch of several vectors, those that are too
    short become zero.
    """
    if w.shape[-1] == 1:
        length = gram(w, w).sqrt()
        alive = length > floor
        if w.shape[0] == 1 and not alive:
            return w[..., :0], length[:, :0]
        return w.mul_(alive / torch.where(alive, length, 1.0)), length * alive
    return _by_cholesky(w, floor)


def _by_cholesky(w: Tensor, floor: float) -> tuple[Tensor, Tensor]:
    """Factorise by Wᵀ W = Rᵀ R and Q = W R⁻¹, which is several times faster than reflections.

    An ill-conditioned W needs a second round.
    """
    square = gram(w, w)
    values = torch.linalg.eigvalsh(square)
    low, high = float(values[0, 0]), float(values[0, -1])
    if low <= high / CHOLESKY_CONDITION**2 or low <= (1.1 * floor) ** 2:
        return _by_reflections(w, floor)
    r = torch.linalg.cholesky(square, upper=True)
    # R is well conditioned, so that its inverse is as accurate as a triangular solve.
    q = w @ torch.linalg.inv(r)
    if low > high / ONE_CHOLESKY_CONDITION**2:
        return q, r
    q, second = _by_cholesky(q, 0.0)
    return q, second @ r


def _by_reflections(w: Tensor, floor: float) -> tuple[Tensor, Tensor]:
    """Factorise by Householder reflections; the singular values of R give the rank of W."""
    q, r = torch.linalg.qr(w)
    u, s, v = torch.linalg.svd(r, full_matrices=False)
    rank = int((s > floor).sum())
    return q @ u[..., :rank], s[..., :rank, None] * v[..., :rank, :]


class OrthogonalityLoss:
    """Bound on the loss of orthogonality of a Lanczos basis: Simon's recurrence, in norms.

    After each step, entry i bounds ‖V_iᵀ V_{j+1}‖, and the last entry bounds how far the columns
    of V_{j+1} are from orthonormal. The bound follows from the three-term recurrence alone: the
    rounding errors of one step are carried to the next steps and grow.
    """

    def __init__(self) -> None:
        self._now, self._before = [EPS], [EPS]
        self._diagonal: list[float] = []
        self._off = [0.0]
        self._centre = 0.0

    def after(self, a: Tensor, r: Tensor, size: float) -> float:
        """Compute the bound after a step with diagonal block A and new R; `size` bounds L."""
        if not self._diagonal:
            self._centre = float(a.diagonal(dim1=-2, dim2=-1).mean())
        shifted = a - self._centre * torch.eye(a.shape[-1]).to(a)
        self._diagonal.append(float(torch.linalg.matrix_norm(shifted, 2).max()))
        values = torch.linalg.svdvals(r)
        least = float(values[values > 0].min())
        off, diagonal, now, j = self._off, self._diagonal, self._now, len(self._now) - 1
        off.append(float(values.max()))
        rounding = 10 * EPS * max(size, off[-1]) / least
        new = []
        for i in range(j):
            carried = off[i + 1] * now[i + 1] + (diagonal[i] + diagonal[j]) * now[i]
            carried += off[i] * now[i - 1] if i else 0.0
            new.append((carried + off[j] * self._before[i]) / least + rounding)
        new.append(rounding)
        self._before, self._now = now, [*new, EPS]
        return max(new)

    def reset(self) -> None:
        """Record that the newest block was orthogonalised against all earlier blocks."""
        self._now = [EPS] * len(self._now)
