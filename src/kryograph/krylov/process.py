r"""Orthonormal columns for a batch of tall matrices: which directions there are, and how well.

Block Arnoldi and block Lanczos, a step at a time, for any of the block inner products.

.. math::
    L V_j = \sum_{i \le j+1} V_i H_{ij}, \quad X = V_1 B, \quad
    \langle V_i, V_j \rangle = \delta_{ij} I

For a symmetric L, H is block tridiagonal and symmetric, and the sum has three terms.

This differs from the textbook in that (1) a new block is made orthogonal twice, with its columns
made orthonormal in between, so that short directions, too, are orthogonal to all before them;
(2) directions that are too short are given up (deflation): later blocks are narrower; (3) the
Lanczos process can postpone the second time until a bound says that it is needed.
"""

from __future__ import annotations

from enum import Enum

import torch
from torch import Tensor

from kryograph.errors import UsageError
from kryograph.krylov.inner_products import BlockInnerProduct, gram
from kryograph.krylov.inputs import Pair

EPS = torch.finfo(torch.float64).eps
EVEN = 10.0
"""Up to this condition number one Cholesky factor gives columns that are orthonormal to 1e-14."""
UNEVEN = 1e4
"""Beyond this condition number the squares in XᵀX have lost the digits that decide on a rank."""
SEMI = EPS**0.5
"""Columns that are orthonormal to this have a projection that is exact to rounding (Simon 1984)."""


def orthonormalised(w: Tensor, floor: float) -> tuple[Tensor, Tensor]:
    """Q and R with W = Q R but for directions shorter than a floor; Q has orthonormal columns.

    Where a single matrix has fewer directions than columns, Q is narrower than W. In a batch of
    several vectors, those that are too short become zero.

    Args:
        w: B × n × r, where B or r is 1. It may be overwritten.
        floor: Singular values up to this are zero.
    """
    if w.shape[-1] == 1:
        length = gram(w, w).sqrt()
        alive = length > floor
        if w.shape[0] == 1 and not alive:
            return w[..., :0], length[:, :0]
        return w.mul_(alive / torch.where(alive, length, 1.0)), length * alive
    return _by_cholesky(w, floor)


def _by_cholesky(w: Tensor, floor: float) -> tuple[Tensor, Tensor]:
    """Xᵀ X = Rᵀ R and Q = X R⁻¹, again if Q is not even; several times as fast as reflections."""
    square = gram(w, w)
    values = torch.linalg.eigvalsh(square)
    low, high = float(values[0, 0]), float(values[0, -1])
    if low <= high / UNEVEN**2 or low <= (1.1 * floor) ** 2:
        return _by_reflections(w, floor)
    r = torch.linalg.cholesky(square, upper=True)
    # R is well conditioned, so that its inverse is as good as a triangular solve.
    q = w @ torch.linalg.inv(r)
    if low > high / EVEN**2:
        return q, r
    q, second = _by_cholesky(q, 0.0)
    return q, second @ r


def _by_reflections(w: Tensor, floor: float) -> tuple[Tensor, Tensor]:
    """Householder's QR, and the singular values of its R, which are those of W."""
    q, r = torch.linalg.qr(w)
    u, s, v = torch.linalg.svd(r, full_matrices=False)
    rank = int((s > floor).sum())
    return q @ u[..., :rank], s[..., :rank, None] * v[..., :rank, :]


class Loss:
    """How far a Lanczos basis may have lost its orthogonality: Simon's recurrence, in norms.

    After each step, entry i bounds ‖V_iᵀ V_{j+1}‖, and the last one how far the columns of V_{j+1}
    are from orthonormal. It follows from the three-term recurrence alone: rounding in one step is
    carried to the next ones, and grows.
    """

    def __init__(self) -> None:
        self._now, self._before = [EPS], [EPS]
        self._diagonal: list[float] = []
        self._off = [0.0]
        self._centre = 0.0

    def after(self, a: Tensor, r: Tensor, size: float) -> float:
        """The bound after a step with the diagonal block A and the new R; `size` is of L."""
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

    def renewed(self) -> None:
        """The newest block is orthogonal to all before it, again."""
        self._now = [EPS] * len(self._now)


class End(Enum):
    """Why a Krylov space stopped growing."""

    INVARIANT = "L maps the space into itself"
    STEPS = "as many steps as were asked for"
    ZERO = "X is zero"


class Growth:
    """A Krylov space that grows with each `step`, in the batch form of an inner product.

    Args:
        pair: L and X.
        product: The block inner product.
        tolerance: Directions of X shorter than this share of a column, and of L V shorter than
            this share of L, are none.
        symmetric: Whether to use three-term recurrences.
        partly: Keep the basis orthonormal to 1e-8 only, which is cheaper; symmetric L only.

    Attributes:
        blocks: V_1, V_2, …, each B × n × r; the last is the one that the next step multiplies.
        h: B × rows × columns; a column block for every step, with a row block for every block.
        start: B, as B × r_1 × r.
        ranks: How many directions each block adds.
        end: Why it has ended, if it has.
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
        self._loss = Loss() if symmetric and partly else None
        self._again = False
        self._size = pair.largest
        self._alive: list[Tensor] = []
        self.blocks: list[Tensor] = []
        self.ranks: list[int] = []
        self.end: End | None = None
        x = product.parts(pair.x)
        # Columns of any length count alike: X and X diag(c) span the same spaces.
        lengths = torch.linalg.vector_norm(x, dim=1, keepdim=True)
        _check_finite(lengths, "X")
        block, r = orthonormalised(x / torch.where(lengths > 0, lengths, 1.0), tolerance)
        self.start = r * lengths
        self.h = x.new_zeros(x.shape[0], block.shape[-1], 0)
        self._keep(block, r, End.ZERO)

    @property
    def steps(self) -> int:
        """How many steps have been made."""
        return len(self.blocks) - (self.end is None)

    @property
    def projected(self) -> Tensor:
        """H without the row block that leads out of the space: B × k × k."""
        return self.h[:, : self.h.shape[2]]

    @property
    def alive(self) -> Tensor:
        """Which columns of H are directions, B × k: a vector that has ended has zeros."""
        return torch.cat(self._alive[: self.steps], dim=1)

    @property
    def used(self) -> list[Tensor]:
        """The blocks that steps have been made with."""
        return self.blocks[: self.steps]

    def step(self) -> None:
        """Multiply the last block by L, and add what is new."""
        v = self.blocks[-1]
        w = self.product.parts(self.pair.times(self.product.whole(v, self.pair.x.shape[1])))
        column = self._short(w) if self.symmetric else self._long(w)
        self._measure(column)
        block, r = orthonormalised(w, self.tolerance * self._size)
        if r.shape[1] and r.any() and self._again_needed(column[-1], r):
            again = self._orthogonalise(block, range(len(self.blocks)))
            # What loses half its length now was not a direction, but rounding.
            block, second = orthonormalised(block, 0.5)
            if not self.symmetric:
                column = [c + a @ r for c, a in zip(column, again, strict=True)]
            r = second @ r
        rows, columns = self.h.shape[1:]
        width = v.shape[-1]
        h = self.h.new_zeros(len(v), rows + r.shape[1], columns + width)
        h[:, :rows, :columns] = self.h
        entries = torch.cat([*column, r], dim=1)
        h[:, h.shape[1] - entries.shape[1] :, columns:] = entries
        self.h = h
        self._measure([*column, r])
        if columns + width >= w.shape[1]:
            r = r[:, :0]  # There is no room for another direction.
        self._keep(block, r, End.INVARIANT)

    def _keep(self, block: Tensor, r: Tensor, otherwise: End) -> None:
        alive = (r != 0).any(dim=-1)
        if alive.any():
            self.blocks.append(block)
            self.ranks.append(int(alive.sum()))
            self._alive.append(alive)
            return
        self.end = otherwise
        self.h = self.h[:, : sum(v.shape[-1] for v in self.blocks)]

    def _measure(self, column: list[Tensor]) -> None:
        """How long a column of L V is tells how large L is, at least."""
        lengths = torch.linalg.vector_norm(torch.cat(column, dim=1), dim=1)
        _check_finite(lengths, "L")
        self._size = max(self._size, float(lengths.max()))

    def _short(self, w: Tensor) -> list[Tensor]:
        """Take the last two blocks out of W, by the three-term recurrence."""
        v, column = self.blocks[-1], []
        if len(self.blocks) > 1:
            before = self.blocks[-2]
            r = self.h[:, -v.shape[-1] :, -before.shape[-1] :].mT
            w.baddbmm_(before, r, alpha=-1)
            column.append(r)
        a = gram(v, w)
        a = (a + a.mT) / 2
        w.baddbmm_(v, a, alpha=-1)
        return [*column, a]

    def _long(self, w: Tensor) -> list[Tensor]:
        """Take all blocks out of W."""
        return self._orthogonalise(w, range(len(self.blocks)))

    def _orthogonalise(self, w: Tensor, which: range) -> list[Tensor]:
        taken = []
        for i in which:
            c = gram(self.blocks[i], w)
            w.baddbmm_(self.blocks[i], c, alpha=-1)
            taken.append(c)
        return taken

    def _again_needed(self, a: Tensor, r: Tensor) -> bool:
        """Whether to orthogonalise for a second time; if so, for two blocks in a row."""
        if self._loss is None:
            return True
        lost = self._loss.after(a, r, self._size) > SEMI
        needed = lost or self._again
        self._again = lost and not self._again
        if needed:
            self._loss.renewed()
        return needed


def _check_finite(lengths: Tensor, name: str) -> None:
    if not torch.isfinite(lengths).all():
        raise UsageError(f"{name} is too large for its squares to be numbers: scale it down.")
