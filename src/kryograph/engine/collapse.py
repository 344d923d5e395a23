r"""Linear Snowball without dropout, collapsed from the output side.

Without non-linearity the logits are a polynomial in L: :math:`\sum_{k \ge 1} L^k (X A_k + 1 c_k)`
and the output's bias. A_k and c_k are as narrow as there are classes and come from the weights
alone, last layer first: what the layers above make of H_l goes on to X and H_1 … H_{l-1} through
W_{l-1}, with one power of L more. Then X is met once, and L by Horner.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from kryograph.engine.cost import Cost, gemm_cost, spmm_cost, temporary
from kryograph.engine.hops import FeatureRows, Hops


def coefficients(
    weights: Sequence[Tensor], biases: Sequence[Tensor | None]
) -> tuple[Tensor, Tensor]:
    """A_1 … A_{n+1} side by side (F × (n+1)C) and c_1 … c_{n+1} end to end.

    Args:
        weights: W_0 … W_{n-1} of the hidden layers, then the output's.
        biases: Alike; the output's own is not part of a power of L.
    """
    *hidden, above = weights
    classes = above.shape[1]
    constants = above.new_zeros((len(hidden) + 1) * classes)
    for weight, bias in zip(reversed(hidden), reversed(biases[:-1]), strict=True):
        others, own = torch.split(above, [len(weight), weight.shape[1]])
        if bias is not None:
            constants[: own.shape[1]] += bias @ own
        above = others.new_zeros(len(others), own.shape[1] + classes)
        above[:, :-classes] = others
        above[:, classes:] += weight @ own
    return above, constants


def collapsed(
    x: FeatureRows, hops: Hops, weights: Sequence[Tensor], biases: Sequence[Tensor | None]
) -> Tensor:
    """Logits of T₀ of a linear Snowball network with p = 1."""
    classes = weights[-1].shape[1]
    powers, constants = coefficients(weights, biases)
    terms = torch.split(x.product(hops.sizes[-1], powers) + constants, classes, dim=1)
    inside = terms[-1].contiguous()
    for k in range(len(weights) - 1, 0, -1):
        term = terms[k - 1][: hops.sizes[k]].contiguous()
        inside = hops.step(k).add_product_(term, inside)
    logits = hops.step(0).product(inside)
    return logits if biases[-1] is None else logits + biases[-1]


def collapsed_cost(x: FeatureRows, hops: Hops, hidden: int, classes: int) -> Cost:
    """Of `collapsed`, for hidden layers of that width."""
    n = len(hops.sizes) - 2
    total = x.cost(hops.sizes[-1], (n + 1) * classes)
    total += temporary((x.width + 2 * hops.sizes[-1]) * (n + 1) * classes)
    for l in range(n):
        total += gemm_cost(x.width + l * hidden, hidden, (n - l) * classes)
    for k in range(n + 1):
        total += spmm_cost(hops.nnz(k), 2 * hops.sizes[k], classes)
    return total
