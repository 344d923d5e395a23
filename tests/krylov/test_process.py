"""Steps of the block Arnoldi and Lanczos processes, and orthonormal columns."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.krylov import CLASSICAL
from kryograph.krylov.inner_products import INNER_PRODUCTS
from kryograph.krylov.inputs import Pair
from kryograph.krylov.process import SEMI_ORTHOGONAL, End, Growth, orthonormalise
from kryograph.operators import operator

EPS = np.finfo(np.float64).eps


def test_growth_has_one_column_of_h_per_step_until_the_space_is_invariant() -> None:
    # A corner of a path with three nodes: A + I is tridiagonal already, so H is the same matrix.
    pair = Pair.of(operator(toy.path(3), "affinity"), np.eye(3, 1))
    for symmetric in (True, False):
        growth = Growth(pair, CLASSICAL, 1e-8, symmetric=symmetric)
        assert (growth.steps, growth.end, growth.ranks) == (0, None, [1])
        growth.step()
        np.testing.assert_allclose(growth.h[0], [[1.0], [1.0]], atol=1e-15)
        growth.step()
        growth.step()
        assert (growth.steps, growth.end, growth.ranks) == (3, End.INVARIANT, [1, 1, 1])
        expected = [[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]]
        np.testing.assert_allclose(growth.projected[0], expected, atol=1e-15)


def test_growth_of_zero_ends_before_the_first_step() -> None:
    growth = Growth(Pair.of(np.eye(3), np.zeros((3, 2))), CLASSICAL, 1e-8, symmetric=True)
    assert (growth.steps, growth.end, growth.used) == (0, End.ZERO, [])


def test_growth_refuses_entries_whose_squares_overflow() -> None:
    with pytest.raises(UsageError, match="The entries of X are so large"):
        Growth(Pair.of(np.eye(2), np.full((2, 1), 1e200)), CLASSICAL, 1e-8, symmetric=True)


def test_growth_with_postponed_orthogonality_holds_half_the_digits() -> None:
    diagonal = np.r_[np.linspace(0, 0.5, 198), 1.0, 1.5]
    x = np.random.default_rng(0).standard_normal((200, 2))
    pair = Pair.of(sp.diags_array(diagonal), x)
    for product in INNER_PRODUCTS.values():
        growth = Growth(pair, product, 1e-13, symmetric=True, partly=True)
        for _ in range(60):
            growth.step()
        v = torch.cat(growth.used, dim=2)
        lost = (v.mT @ v - torch.eye(v.shape[2])).abs().max()
        assert EPS * 100 < lost < SEMI_ORTHOGONAL


@pytest.mark.parametrize("condition", [1.0, 5.0, 1e2, 1e6, 1e11])
def test_orthonormalise_gives_orthonormal_columns_for_any_condition(condition: float) -> None:
    rng = np.random.default_rng(0)
    u, _ = np.linalg.qr(rng.standard_normal((300, 5)))
    v, _ = np.linalg.qr(rng.standard_normal((5, 5)))
    w = torch.from_numpy(u * np.geomspace(1, 1 / condition, 5) @ v.T)[None]
    q, r = orthonormalise(w.clone(), 1e-13)
    assert q.shape == (1, 300, 5)
    torch.testing.assert_close(q @ r, w, rtol=0, atol=1e-14)
    torch.testing.assert_close(q.mT @ q, torch.eye(5).double()[None], rtol=0, atol=1e-13)


@pytest.mark.parametrize("floor", [1e-10, 1e-4, 0.3])
def test_orthonormalise_drops_directions_below_the_floor(floor: float) -> None:
    rng = np.random.default_rng(0)
    u, _ = np.linalg.qr(rng.standard_normal((50, 4)))
    v, _ = np.linalg.qr(rng.standard_normal((4, 4)))
    sizes = np.array([1.0, 2 * floor, 0.5 * floor, 0.0])
    q, r = orthonormalise(torch.from_numpy(u * sizes @ v.T)[None], floor)
    assert q.shape[-1] == r.shape[1] == 2
    np.testing.assert_allclose(q[0].numpy().T @ u[:, 2:], 0.0, atol=1e-4)


def test_orthonormalise_makes_short_vectors_of_a_batch_zero() -> None:
    w = torch.tensor([[[3.0], [4.0]], [[1e-9], [0.0]]], dtype=torch.float64)
    q, r = orthonormalise(w, 1e-6)
    np.testing.assert_allclose(q.squeeze(-1), [[0.6, 0.8], [0.0, 0.0]], rtol=1e-15)
    assert r.flatten().tolist() == [5.0, 0.0]
