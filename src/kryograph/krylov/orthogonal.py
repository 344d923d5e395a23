"""Orthonormal columns for a batch of tall matrices: which directions there are, and how well."""

from __future__ import annotations

import torch
from torch import Tensor

from kryograph.krylov.products import gram

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
