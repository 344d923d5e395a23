"""A small data set, and results of all experiments of `kryograph theory` with plain numbers."""

from __future__ import annotations

import numpy as np
import pytest

from kryograph.data import Dataset
from kryograph.figures.figure import quick_dataset
from kryograph.figures.theorems import Convergence, RankChange, Span
from kryograph.figures.theory import Theory


@pytest.fixture(scope="session")
def data() -> Dataset:
    return quick_dataset()


@pytest.fixture
def theory() -> Theory:
    missing = {"mean": None, "std": None, "low": None, "high": None, "runs": 0, "diverged": 2}
    scores = {"mean": 0.75, "std": 0.01, "low": 0.74, "high": 0.77, "runs": 2, "diverged": 0}
    return Theory(
        convergence={"cora": Convergence(78, 0.5, np.array([1.0, 0.5, 0.25, 1e-15]))},
        ranks={2: [16, 8, 2]},
        rank_changes=[
            RankChange("relu", "independent", 2, 0.5625, 0.4375, 0.0),
            RankChange("tanh", "dependent", 2, 0.0, 0.0, 1.0),
        ],
        residuals={1: 2e-16, 3: 3e-16},
        spans={
            "cora": Span(2000, 3, (500, 1500), None, 1.5e-8),
            "toy": Span(4, 1, (1, 2), 2, 1.5e-8),
        },
        accuracy={"cora": [{"order": 1, **missing}, {"order": 2, **scores}]},
    )
