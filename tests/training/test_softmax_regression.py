from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from kryograph.training.softmax_regression import coordinates, softmax_regression


def drawn(n: int, width: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), rng.integers(0, classes, n - classes)])
    x = rng.normal(size=(n, width)) + 0.5 * np.eye(width)[labels % width]
    return x * (rng.random(x.shape) < 0.4), labels


def by_scikit_learn(x: np.ndarray, labels: np.ndarray, penalty: float) -> LogisticRegression:
    method = LogisticRegression(C=1 / penalty, fit_intercept=False, tol=1e-10, max_iter=10_000)
    return method.fit(x, labels)


@pytest.mark.parametrize("width", [4, 200], ids=["narrow", "wide"])
@pytest.mark.parametrize("penalty", [0.01, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_regression_on_inner_products_is_that_of_scikit_learn(
    width: int, penalty: float, sparse: bool
) -> None:
    x, labels = drawn(30, width, 3)
    rows = sp.csr_array(x) if sparse else x
    product = rows @ rows.T
    q, b = coordinates(product.toarray() if sparse else product)
    w = softmax_regression(q, np.eye(3)[labels], penalty)
    theirs = by_scikit_learn(rows, labels, penalty)
    np.testing.assert_allclose(rows.T @ (b @ w), theirs.coef_.T, atol=2e-4)
    other, _ = drawn(20, width, 3, seed=1)
    ours = softmax(other @ rows.T @ b @ w, axis=1)
    np.testing.assert_allclose(ours, theirs.predict_proba(other), atol=2e-4)


def test_coordinates_of_one_factorisation_serve_every_fold() -> None:
    x, labels = drawn(40, 100, 4)
    q, _ = coordinates(x @ x.T)
    for held_out in (np.arange(8, 18), np.arange(20, 40)):
        train = np.setdiff1d(np.arange(40), held_out)
        shared = softmax(
            q[held_out] @ softmax_regression(q[train], np.eye(4)[labels[train]], 0.1), axis=1
        )
        own, b = coordinates(x[train] @ x[train].T)
        w = softmax_regression(own, np.eye(4)[labels[train]], 0.1)
        alone = softmax(x[held_out] @ x[train].T @ b @ w, axis=1)
        np.testing.assert_allclose(shared, alone, atol=1e-4)


def test_a_row_with_shares_of_classes_is_several_weighted_rows() -> None:
    """A row that is half of class 0 and half of class 1 counts as two rows of half the weight."""
    x, labels = drawn(20, 6, 3)
    shares = np.random.default_rng(2).dirichlet([1, 1, 1], 20)
    soft = softmax_regression(x, shares, 0.3)
    repeated = softmax_regression(
        np.repeat(x, 3, axis=0), np.tile(np.eye(3), (20, 1)), 0.3, shares.ravel()
    )
    np.testing.assert_allclose(soft, repeated, atol=1e-4)
    assert np.abs(soft - softmax_regression(x, np.eye(3)[labels], 0.3)).max() > 0.01


def test_start_does_not_change_the_solution() -> None:
    x, labels = drawn(20, 6, 3)
    start = np.random.default_rng(3).normal(size=(6, 3))
    plain, moved = (softmax_regression(x, np.eye(3)[labels], 0.3, start=w) for w in (None, start))
    np.testing.assert_allclose(moved, plain, atol=1e-4)


def test_coordinates_have_the_inner_products_and_no_more_columns_than_needed() -> None:
    x = np.random.default_rng(0).normal(size=(12, 3))
    q, b = coordinates(x @ x.T)
    assert q.shape == b.shape == (12, 3)
    np.testing.assert_allclose(q @ q.T, x @ x.T, atol=1e-10)
    np.testing.assert_allclose(x @ x.T @ b, q, atol=1e-10)


def test_rows_of_zeros_get_even_probabilities() -> None:
    q, _ = coordinates(np.zeros((4, 4)))
    w = softmax_regression(q, np.eye(2)[[0, 0, 1, 1]], 0.1)
    np.testing.assert_array_equal(softmax(q @ w, axis=1), 0.5)


def test_a_row_of_weight_two_is_a_row_listed_twice() -> None:
    x, labels = drawn(20, 6, 3)
    weights = np.ones(20)
    weights[[2, 7]] = 2
    twice = np.concatenate([np.arange(20), [2, 7]])
    weighted = softmax_regression(x, np.eye(3)[labels], 0.3, weights)
    repeated = softmax_regression(x[twice], np.eye(3)[labels[twice]], 0.3)
    np.testing.assert_allclose(weighted, repeated, atol=1e-5)


def test_permuted_classes_have_permuted_coefficients() -> None:
    x, labels = drawn(20, 6, 3)
    order = np.array([2, 0, 1])  # class c gets the number order[c]
    plain, moved = (softmax_regression(x, np.eye(3)[y], 0.3) for y in (labels, order[labels]))
    np.testing.assert_allclose(moved[:, order], plain, atol=1e-5)


def test_one_class_alone_has_no_coefficients() -> None:
    x, _ = drawn(5, 3, 2)
    np.testing.assert_array_equal(softmax_regression(x, np.ones((5, 1)), 0.1), 0)
