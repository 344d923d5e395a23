"""Candidates: systems that are tried on held-out labels, the choice among them, their settings."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kryograph.errors import KryographError
from kryograph.labelling.cross_validation import Candidate
from kryograph.systems import System, system
from kryograph.systems.settings import sample_settings

if TYPE_CHECKING:
    import optuna


@dataclass(frozen=True)
class TriedSystem:
    """A system that was tried on held-out labels.

    Args:
        system: The system, with its settings.
        accuracy: Accuracy on labels that it had not seen.
        epochs: Number of epochs; 0 for a closed form.
        weight: Its share of the answer, from 0 to 1.
    """

    system: System
    accuracy: float
    epochs: int
    weight: float


def choose_candidate(candidates: Sequence[Candidate], labels: int) -> Candidate:
    """Choose the first candidate unless another one is clearly better.

    They are compared by their scores: the accuracy, or another metric. `labels` is the number of
    labels behind a score; for a metric of a rare class these are the labels of that class.
    The margin is half a standard error of a share of that number of labels. The best of several
    candidates that differ by chance is not better than the first one, which was good on other
    graphs; so it is kept until there is some evidence against it.
    """
    first = candidates[0]
    best = max(candidates, key=lambda candidate: candidate.score)
    margin = 0.5 * math.sqrt(first.score * (1 - first.score) / labels)
    return best if best.score > first.score + margin else first


def search_settings(
    start: Candidate,
    seconds: float,
    seed: int,
    evaluate: Callable[[System], Candidate],
    progress: Callable[[float], None] = lambda fraction: None,
) -> Candidate:
    """Search better settings by Bayesian optimisation; the best candidate, or else `start`.

    Args:
        start: The candidate whose settings are varied.
        seconds: Time limit. A trial that is running when it is reached is finished.
        seed: Determines the settings that are tried; their number depends on the machine.
        evaluate: Cross-validates a system.
        progress: Called after each trial with the fraction of the time that is over.
    """
    method = start.system
    space = method.settings.search_space()
    if not space:
        return start
    best, start_time = start, time.monotonic()

    def objective(trial: optuna.Trial) -> float:
        nonlocal best
        changes = sample_settings(trial, space, method.settings)
        try:
            settings = method.settings.replace(changes)
            candidate = evaluate(system(method.name, settings, operator=method.operator))
        except KryographError:  # the run diverges, or the settings are incompatible
            return 0.0
        finally:
            progress(min((time.monotonic() - start_time) / seconds, 1.0))
        if candidate.score > best.score:
            best = candidate
        return candidate.score

    create_study(seed, "maximize").optimize(objective, timeout=seconds)
    return best


def create_study(seed: int, direction: Literal["minimize", "maximize"]) -> optuna.Study:
    """Create a Bayesian search in memory."""
    import optuna  # half a second, which only a search has to wait for

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=seed)
    return optuna.create_study(direction=direction, sampler=sampler)
