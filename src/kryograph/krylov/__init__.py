"""Numerics of block Krylov spaces: inner products, bases, the grade, and g(L)X.

Everything takes an operator or a matrix (torch, NumPy or SciPy, sparse or dense) and tensors or
arrays, and answers in kind. `kryograph.krylov.lanczos` is the one for networks, with gradients.
"""

from kryograph.krylov.bases import BlockBasis, arnoldi, block_lanczos, grade
from kryograph.krylov.coefficients import gamma
from kryograph.krylov.filters import Filter, chebyshev, inverse, rational
from kryograph.krylov.functions import Applied, applied, apply
from kryograph.krylov.growth import End
from kryograph.krylov.powers import krylov_blocks
from kryograph.krylov.products import CLASSICAL, GLOBAL, LOOP_INTERCHANGE, Product

__all__ = [
    "CLASSICAL",
    "GLOBAL",
    "LOOP_INTERCHANGE",
    "Applied",
    "BlockBasis",
    "End",
    "Filter",
    "Product",
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
