from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kryograph.report.layout import COARSE, FINE, Detail, positions


def groups(n: int, count: int = 3, width: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Nodes around far-apart middles, and which middle each belongs to."""
    rng = np.random.default_rng(0)
    which = np.arange(n) % count
    return 20 * np.eye(count, width)[which] + rng.normal(size=(n, width)), which


def is_near_its_own(places: np.ndarray, which: np.ndarray) -> np.ndarray:
    middles = np.stack([places[which == g].mean(axis=0) for g in range(which.max() + 1)])
    distance = np.linalg.norm(places[:, None] - middles[None], axis=2)
    return np.asarray(distance.argmin(axis=1) == which)


def test_nodes_that_look_alike_are_near_and_the_seed_decides() -> None:
    embedding, which = groups(120)
    places = positions(embedding, seed=1)
    assert is_near_its_own(places, which).all()
    assert np.array_equal(places, positions(embedding, seed=1))
    assert not np.array_equal(places, positions(embedding, seed=2))


def test_of_many_nodes_the_rest_goes_between_those_it_is_like() -> None:
    coarse = replace(COARSE, nodes=90)
    embedding, which = groups(300)
    embedding[150:] = embedding[:150]  # every node has a twin
    places = positions(embedding, 0, coarse)
    assert is_near_its_own(places, which).all()
    chosen = np.sort(np.random.default_rng(0).permutation(300)[:90])
    other = np.setdiff1d(chosen, (chosen + 150) % 300)
    twins = (other + 150) % 300
    assert np.abs(places[twins] - places[other]).max() < 1e-3
    assert np.array_equal(places, positions(embedding, 0, coarse))


@pytest.mark.parametrize("detail", [COARSE, FINE])
def test_groups_stay_apart_in_a_map_of_either_detail(detail: Detail) -> None:
    embedding, which = groups(900, count=6)
    assert is_near_its_own(positions(embedding, 0, detail), which).mean() > 0.99


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("width", [1, 2, 40])
def test_a_handful_of_nodes_has_a_map(n: int, width: int) -> None:
    places = positions(np.random.default_rng(0).normal(size=(n, width)), seed=0)
    assert places.shape == (n, 2)
    assert np.isfinite(places).all()
    assert len(np.unique(places, axis=0)) == n


@pytest.mark.parametrize("n", [1, 2, 50])
@pytest.mark.parametrize("width", [0, 1, 3])
def test_nodes_that_are_all_alike_lie_side_by_side(n: int, width: int) -> None:
    places = positions(np.full((n, width), 0.1), seed=0)
    assert np.isfinite(places).all()
    assert len(np.unique(places, axis=0)) == n


def test_many_twins_and_few_others_have_a_map() -> None:
    embedding = np.zeros((60, 5))
    embedding[:3] = np.eye(3, 5)
    places = positions(embedding, seed=0)
    assert np.isfinite(places).all()
    assert len(np.unique(places.round(6), axis=0)) > 3


def test_numbers_of_single_precision_and_one_column_will_do() -> None:
    line = np.linspace(0, 1, 40, dtype=np.float32)[:, None]
    places = positions(line, seed=0)
    assert np.isfinite(places).all()
    assert np.ptp(places, axis=0).min() > 0
