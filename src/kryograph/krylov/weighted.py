"""A sparse symmetric matrix whose entries have gradients, and an operator made symmetric."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp
import torch
from torch import Tensor

from kryograph.errors import UsageError
from kryograph.operators import Operator
from kryograph.sparse import SparseMatrix


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
        product: Tensor = _Product.apply(  # type: ignore[no-untyped-call]
            self.values.to(exact.dtype), exact, self.pattern
        )
        return product.to(x.dtype)


class _Product(torch.autograd.Function):
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
