from __future__ import annotations

import numpy as np

from kryograph.errors import KryographError
from kryograph.labelling.candidates import search_settings
from kryograph.labelling.cross_validation import Candidate
from kryograph.systems import System, system


def scored(made: System, accuracy: float) -> Candidate:
    return Candidate(made, np.array([[accuracy]]), np.array([1]))


def test_the_best_of_what_was_tried_is_found() -> None:
    start = scored(system("prototypes"), 0.1)
    seen: list[System] = []

    def tried(made: System) -> Candidate:
        seen.append(made)
        return scored(made, 0.2 if made.settings.hops < 10 else 0.0)

    found = search_settings(start, 0.5, seed=0, tried=tried)
    assert found.system.settings.hops < 10
    assert found.accuracy == 0.2
    assert len({made.settings for made in seen}) > 3


def test_the_start_stays_if_nothing_is_better() -> None:
    start = scored(system("prototypes"), 0.9)
    assert search_settings(start, 0.2, 0, lambda made: scored(made, 0.5)) is start


def test_a_trial_that_fails_is_not_the_end() -> None:
    start = scored(system("prototypes"), 0.1)

    def tried(made: System) -> Candidate:
        raise KryographError("diverged")

    told: list[float] = []
    assert search_settings(start, 0.2, 0, tried, told.append) is start
    assert told[-1] == 1.0
