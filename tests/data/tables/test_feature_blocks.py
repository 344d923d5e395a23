from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from kryograph.data.tables.feature_blocks import row_normalise


def test_rows_sum_to_one_and_stay_sparse() -> None:
    words = sp.random_array((20, 30), density=0.2, rng=np.random.default_rng(0), format="csr")
    found = row_normalise(words)
    sums = found.sum(axis=1)
    assert isinstance(found, sp.csr_array)
    assert found.nnz == words.nnz
    np.testing.assert_allclose(sums[words.sum(axis=1) > 0], 1, rtol=1e-14)
    np.testing.assert_allclose(found[[3]].toarray() * words[[3]].sum(), words[[3]].toarray())


def test_a_row_without_words_stays_zero() -> None:
    assert row_normalise(sp.csr_array([[0.0, 0.0], [2.0, 6.0]])).toarray().tolist() == [
        [0.0, 0.0],
        [0.25, 0.75],
    ]
