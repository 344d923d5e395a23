from __future__ import annotations

import numpy as np

from kryograph.errors import KryographError
from kryograph.labelling.candidates import choose_candidate, search_settings
from kryograph.labelling.cross_validation import Candidate
from kryograph.systems import System, system


def scored(method: System, accuracy: float) -> Candidate:
    return Candidate(method, np.array([[accuracy]]), np.array([1]))


def test_choose_candidate_keeps_the_first_unless_another_is_clearly_better() -> None:
    first, other = scored(system("blend"), 0.80), scored(system("prototypes"), 0.82)
    assert choose_candidate([first, other], labels=100) is first
    assert choose_candidate([first, other], labels=10_000) is other
    better = scored(system("lp"), 0.9)
    assert choose_candidate([first, better], labels=100) is better


def test_choose_candidate_compares_by_the_metric_if_there_is_one() -> None:
    first, other = (
        Candidate(system(name), np.array([[accuracy]]), np.array([1]), metric_score=score)
        for name, accuracy, score in (("prototypes", 0.9, 0.5), ("lp", 0.6, 0.7))
    )
    assert choose_candidate([first, other], labels=100) is other
    assert choose_candidate([first, other], labels=1) is first  # half a standard error is 0.25


def test_search_settings_returns_the_best_of_the_trials() -> None:
    start = scored(system("prototypes"), 0.1)
    evaluated: list[System] = []

    def evaluate(method: System) -> Candidate:
        evaluated.append(method)
        return scored(method, 0.2 if method.settings.hops < 10 else 0.0)

    best = search_settings(start, 0.5, seed=0, evaluate=evaluate)
    assert best.system.settings.hops < 10
    assert best.accuracy == 0.2
    assert len({method.settings for method in evaluated}) > 3


def test_search_settings_returns_the_start_if_no_trial_is_better() -> None:
    start = scored(system("prototypes"), 0.9)
    assert search_settings(start, 0.2, 0, lambda method: scored(method, 0.5)) is start


def test_search_settings_goes_on_after_a_trial_that_fails() -> None:
    start = scored(system("prototypes"), 0.1)

    def evaluate(method: System) -> Candidate:
        raise KryographError("diverged")

    fractions: list[float] = []
    assert search_settings(start, 0.2, 0, evaluate, fractions.append) is start
    assert len(fractions) > 1
    assert fractions[-1] == 1.0
