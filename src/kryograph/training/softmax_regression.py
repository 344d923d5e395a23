"""Softmax regression with few labelled rows, solved in the space that these rows span.

W minimises Σ_i −log softmax(φ_i W)_{y_i} + λ/2 ‖W‖², where φ_i are the labelled rows. The solution
is a combination of labelled rows, so only their inner products K = Φ Φᵀ matter: with K = Q Q',
the rows of Q (n × n) have the same inner products, and the problem is as small as the number of
labels, whatever the width of Φ. One factorisation serves all folds of the same labels.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.special import log_softmax

_Array = npt.NDArray[np.float64]


def coordinates(gram: _Array) -> tuple[_Array, _Array]:
    """Coordinates of rows with these inner products, and how other rows get theirs.

    Args:
        gram: Inner products K of n rows, n × n.

    Returns:
        Q (n × r) with Q Qᵀ = K, and B (n × r) with K B = Q. Rows ψ elsewhere have the coordinates
        ψ Φᵀ B.
    """
    values, vectors = eigh(gram)
    keep = values > 1e-9 * max(values[-1], 1e-30)
    roots = np.sqrt(values[keep])
    return vectors[:, keep] * roots, vectors[:, keep] / roots


def softmax_regression(
    q: _Array,
    targets: _Array,
    penalty: float,
    weights: _Array | None = None,
    start: _Array | None = None,
) -> _Array:
    """Coefficients W (r × C) of rows q (n × r).

    Args:
        q: Rows.
        targets: Shares of the classes in each row, n × C; one-hot for labels.
        penalty: λ.
        weights: Factors of the rows' losses, n; None means 1.
        start: Coefficients to begin with; None means 0.
    """
    classes = targets.shape[1]
    factors = np.ones((len(q), 1)) if weights is None else weights[:, None]
    # The Hessian is at most QᵀQ/2 + λ. In coordinates in which the diagonal of this bound is 1 the
    # problem is well conditioned, and L-BFGS needs few steps.
    scale = 1 / np.sqrt((factors * q * q).sum(axis=0) / 2 + penalty)
    rows, shrink = q * scale, penalty * scale[:, None] ** 2

    def loss(flat: _Array) -> tuple[float, _Array]:
        w = flat.reshape(-1, classes)
        logs = log_softmax(rows @ w, axis=1)
        value = -(factors * logs * targets).sum() + (shrink * w * w).sum() / 2
        gradient = rows.T @ (factors * (np.exp(logs) - targets)) + shrink * w
        return float(value), gradient.ravel()

    options = {"maxiter": 500, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-7}
    begin = np.zeros((q.shape[1], classes)) if start is None else start / scale[:, None]
    result = minimize(loss, begin.ravel(), jac=True, method="L-BFGS-B", options=options)
    solution: _Array = result.x.reshape(-1, classes) * scale[:, None]
    return solution
