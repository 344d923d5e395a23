"""What is done to features before any system sees them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def row_normalise(features: sp.csr_array) -> sp.csr_array:
    """Each row divided by its sum; a row that sums to zero stays as it is.

    >>> row_normalise(sp.csr_array([[1.0, 3.0], [0.0, 0.0]])).toarray()
    array([[0.25, 0.75],
           [0.  , 0.  ]])
    """
    sums = np.asarray(features.sum(axis=1), dtype=np.float64)
    scale = np.divide(1.0, sums, out=np.ones_like(sums), where=sums != 0)
    return sp.csr_array(sp.diags_array(scale) @ features)
