r"""The parameter blocks of the paper's equation for a filter, :math:`g(L) X = K_m(L, X) \Gamma`.

In a Krylov basis, with :math:`X = V_1 B`, both sides are small:

.. math::
    L^i X = V H^i E_1 B, \quad g(L) X = V g(H) E_1 B, \quad
    [B', H B', \dots, H^{m-1} B'] \, \Gamma = g(H) B', \quad B' = E_1 B

and Γ is the least-squares solution of least norm, which is exact where m is the grade.
"""

from __future__ import annotations

import torch

from kryograph.errors import UsageError
from kryograph.krylov.bases import grade
from kryograph.krylov.filters import Analytic, as_filter
from kryograph.krylov.functions import FINEST, MOST_STEPS, Approximation
from kryograph.krylov.growth import End
from kryograph.krylov.inputs import A, LinearMap, Pair
from kryograph.krylov.products import CLASSICAL, Product, as_product


def gamma(
    g: Analytic,
    L: LinearMap,
    X: A,
    m: int | None = None,
    *,
    product: Product | str = CLASSICAL,
    max_steps: int = MOST_STEPS,
) -> A:
    """Γ_0, …, Γ_{m-1} in S, as m × F × F, such that X Γ_0 + L X Γ_1 + … is g(L)X.

    The powers L^i X are nearly dependent long before they are. Up to thirty blocks the sum is
    g(L)X to 1e-11 where the spectrum lies in [-1, 1], and to 1e-7 for the Laplacian of a path.

    Args:
        g: As for `apply`.
        L: An operator or a square matrix, symmetric or not.
        X: N × F.
        m: How many blocks; the grade m(L, X) by default. With fewer, the sum is as near to
            g(L)X as it can be in the Frobenius norm.
        product: Whose algebra S the blocks lie in.
        max_steps: How large the Krylov space may become.

    >>> from kryograph.data import toy
    >>> from kryograph.operators import operator
    >>> # On three joined nodes L² = L, so that exp(L) = I + (e - 1) L.
    >>> found = gamma("exp", operator(toy.complete(3)), torch.eye(3, 1, dtype=torch.float64))
    >>> [round(x, 6) for x in found.ravel().tolist()]
    [1.0, 1.718282]
    """
    if m is not None and m < 1:
        raise UsageError(f"m must be 1 or more blocks; got {m}.")
    pair, chosen = Pair.of(L, X), as_product(product)
    width = pair.x.shape[1]
    m = grade(L, X, product=chosen) if m is None else m
    approximation = Approximation(pair, as_filter(g), chosen, pair.symmetric)
    approximation.grow(FINEST, max(max_steps, m), at_least=m)
    growth, right = approximation.growth, approximation.coefficients
    if growth.end is End.ZERO or right is None:
        nothing: A = pair.back(pair.x.new_zeros(m, width, width))
        return nothing
    power = torch.zeros_like(right)
    power[:, : growth.start.shape[1]] = growth.start
    powers = []
    for _ in range(m):
        powers.append(power)
        power = growth.projected @ power
    left = torch.cat(powers, dim=2)
    # Powers shrink or grow: at one length the least-squares problem is better conditioned.
    lengths = torch.linalg.vector_norm(left, dim=1)
    lengths = torch.where(lengths > 0, lengths, 1.0)
    solved = torch.linalg.lstsq(left / lengths[:, None], right, driver="gelsd").solution
    numbers = solved / lengths[..., None]
    whole: A = pair.back(chosen.matrix(numbers, width).reshape(m, width, width))
    return whole
