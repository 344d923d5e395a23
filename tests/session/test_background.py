from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from kryograph.labelling.run_folder import load_run
from kryograph.session.background import (
    ENDED,
    Background,
    FitRequest,
    FullFit,
    fit_request,
    place_nodes,
)
from kryograph.systems import system
from tests.session.sessions import CLASSES, K, cliques

LABELS = np.array([0, 0, *[-1] * (K - 2), 1, 1, *[-1] * (K - 2)])


def test_nodes_of_a_clique_are_near_each_other() -> None:
    at = place_nodes(cliques())
    assert at.shape == (2 * K, 2)
    assert np.isfinite(at).all()


def test_a_fit_is_that_of_label_nodes(tmp_path: Path) -> None:
    request = FitRequest(LABELS, CLASSES, 7, tmp_path / "fit")
    fit = fit_request(cliques(), system("lp"), request)
    assert (fit.version, fit.labels, fit.error, fit.folder) == (7, 4, "", tmp_path / "fit")
    assert fit.accuracy is not None
    run = load_run(tmp_path / "fit")
    assert fit.probabilities is not None
    np.testing.assert_array_equal(run.probabilities, fit.probabilities)
    assert (tmp_path / "fit" / "report.html").exists()


def test_a_failure_is_a_result() -> None:
    few = np.array([0, *[-1] * (K - 1), 1, *[-1] * (K - 1)])
    fit = fit_request(cliques(), None, FitRequest(few, CLASSES, 1))
    assert fit.probabilities is None
    assert "No class has two labelled nodes" in fit.error


@pytest.mark.slow
def test_the_process_places_nodes_and_fits_the_newest_labels() -> None:
    maps, fits, news = [], [], threading.Event()

    def take(fit: FullFit) -> None:
        fits.append(fit)
        news.set()

    background = Background(cliques(), system("lp"), maps.append, take)
    try:
        for version in (1, 2, 3):
            background.fit(FitRequest(LABELS, CLASSES, version))
        assert background.busy
        while not fits or fits[-1].version < 3:
            assert news.wait(60)
            news.clear()
        assert [fit.version for fit in fits] == [1, 3]  # the second was replaced while it waited
        assert maps[0].shape == (2 * K, 2)
        news.clear()
        background._process.kill()
        assert news.wait(60)
        assert fits[-1].error == ENDED
        background.fit(FitRequest(LABELS, CLASSES, 4))
        assert not background.busy
    finally:
        background.close()
