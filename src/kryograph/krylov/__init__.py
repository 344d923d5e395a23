"""Numerics of block Krylov spaces: inner products, bases, the grade, and g(L)X.

All functions take L as an operator or a matrix (torch, NumPy or SciPy, sparse or dense) and X as a
tensor or an array; results have the kind and precision of X. `kryograph.krylov.lanczos`, which is
used by networks, takes tensors only and has gradients.
"""

from kryograph.krylov.bases import BlockBasis, arnoldi, block_lanczos, gamma, grade, krylov_blocks
from kryograph.krylov.filters import Filter, chebyshev, inverse, rational
from kryograph.krylov.functions import Applied, applied, apply
from kryograph.krylov.inner_products import CLASSICAL, GLOBAL, LOOP_INTERCHANGE, BlockInnerProduct
from kryograph.krylov.process import End

__all__ = [
    "CLASSICAL",
    "GLOBAL",
    "LOOP_INTERCHANGE",
    "Applied",
    "BlockBasis",
    "BlockInnerProduct",
    "End",
    "Filter",
    "applied",
    "apply",
    "arnoldi",
    "block_lanczos",
    "chebyshev",
    "gamma",
    "grade",
    "inverse",
    "krylov_blocks",
    "rational",
]
