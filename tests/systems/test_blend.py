from __future__ import annotations

import numpy as np
import pytest

from kryograph.data import Dataset, synthetic_citations
from kryograph.errors import UsageError
from kryograph.graph import Split
from kryograph.stats import tempered
from kryograph.systems import system
from kryograph.systems.blend import CONFIDENCE, HOTTEST, SEED_STEP, even_temperature
from kryograph.training.loop import Conditions
from kryograph.training.stopping import exactly

SPLIT = Split("by hand", train=range(30), validation=range(30, 130), test=range(130, 300))


@pytest.fixture(scope="module")
def data() -> Dataset:
    return synthetic_citations(n=300, classes=3, words=50, signal=0.6, homophily=0.8, seed=3)


def test_a_temperature_makes_every_system_equally_sure() -> None:
    rng = np.random.default_rng(0)
    for sharpness in (0.5, 3.0):
        given = tempered(rng.dirichlet([1, 1, 1], 500), 1 / sharpness)
        found = tempered(given, even_temperature(given))
        assert found.max(axis=1).mean() == pytest.approx(CONFIDENCE, abs=1e-3)
        np.testing.assert_array_equal(found.argmax(axis=1), given.argmax(axis=1))


def test_what_cannot_be_made_less_sure_or_more_stays_finite() -> None:
    certain, torn = np.tile([1.0, 0.0], (4, 1)), np.tile([0.5, 0.5], (4, 1))
    assert even_temperature(certain) <= HOTTEST
    for given in (certain, torn):
        assert np.isfinite(tempered(given, even_temperature(given))).all()


def test_a_blend_of_one_decides_as_its_member(data: Dataset) -> None:
    task = data.task(SPLIT)
    alone = system("prototypes").fit(task).predict()
    assert system("blend", {"members": "prototypes"}).fit(task).predict() == alone


def test_a_blend_is_the_mean_of_its_members(data: Dataset) -> None:
    task, short = data.task(SPLIT), Conditions(exactly(5))
    members = "prototypes:rounds=3 + truncated-krylov:hidden=8,order=2"
    found = system("blend", {"members": members}).fit(task, seed=1, conditions=short)
    parts = [
        system("prototypes", {"rounds": 3}).fit(task, seed=1),
        system("truncated-krylov", {"hidden": 8, "order": 2}).fit(task, seed=1, conditions=short),
    ]
    each = [p.predict_proba() for p in parts]
    expected = np.mean([tempered(p, even_temperature(p)) for p in each], axis=0)
    np.testing.assert_allclose(found.predict_proba(), expected, atol=1e-12)
    assert found.epochs == 5


def test_equal_members_have_other_seeds_and_keep_their_probabilities(data: Dataset) -> None:
    task, short = data.task(SPLIT), Conditions(exactly(5))
    one = system("truncated-krylov", {"hidden": 8, "order": 2})
    twice = system("blend", {"members": " + ".join(2 * ["truncated-krylov:hidden=8,order=2"])})
    found = twice.fit(task, seed=1, conditions=short)
    each = [
        one.fit(task, seed=seed, conditions=short).predict_proba() for seed in (1, 1 + SEED_STEP)
    ]
    assert np.abs(each[0] - each[1]).max() > 1e-3
    np.testing.assert_allclose(found.predict_proba(), np.mean(each, axis=0), atol=1e-9)
    applied = twice.apply(found.weights, task.graph, 3)
    np.testing.assert_allclose(applied, found.predict_proba(), atol=1e-6)


@pytest.mark.parametrize("members", ["crystal-ball", "prototypes:hopes=3", "blend", ""])
def test_members_that_cannot_be(members: str) -> None:
    with pytest.raises(UsageError):
        system("blend", {"members": members})


def test_nodes_look_as_they_do_to_the_last_member(data: Dataset) -> None:
    task, short = data.task(SPLIT), Conditions(exactly(3))
    made = system("blend", {"members": "prototypes + truncated-krylov:hidden=8,order=2"})
    fit = made.fit(task, conditions=short)
    assert made.embed(fit.weights, task.graph, 3).shape == (300, 8)
