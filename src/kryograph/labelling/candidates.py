"""Search: better settings of a system, by what it says of held-out labels, for a limited time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kryograph.errors import KryographError
from kryograph.labelling.cross_validation import (
    Candidate,
)
from kryograph.systems import System, system
from kryograph.systems.settings import sample_settings

if TYPE_CHECKING:
    import optuna

LABELS_PER_CLASS_FOR_NETWORKS = 15
"""From this many labels for each class on, a network needs no help from prototypes."""

NETWORKS = " + ".join(3 * ["truncated-krylov"])
"""The mean of three fits: one is a point or two better or worse by chance, three are not."""


def default_candidates(labels: int, classes: int, search: bool = False) -> list[System]:
    """What is tried when nothing is asked for: first networks if there are labels enough.

    Before a search it is one network: its settings are what is searched for.
    """
    network = system("truncated-krylov") if search else system("blend", {"members": NETWORKS})
    first = [network] if labels >= LABELS_PER_CLASS_FOR_NETWORKS * classes else []
    return [*first, system("blend"), system("prototypes", {"rounds": 5})]


def choose_candidate(candidates: Sequence[Candidate], labels: int) -> Candidate:
    """The first, unless another is better by half a standard error of a share of the labels.

    The best of several that differ by chance is no better than the first; this keeps to what was
    good on other graphs until there is some evidence against it.
    """
    first = candidates[0]
    best = max(candidates, key=lambda candidate: candidate.accuracy)
    margin = 0.5 * math.sqrt(first.accuracy * (1 - first.accuracy) / labels)
    return best if best.accuracy > first.accuracy + margin else first


def search_settings(
    start: Candidate,
    seconds: float,
    seed: int,
    tried: Callable[[System], Candidate],
    progress: Callable[[float], None] = lambda share: None,
) -> Candidate:
    """The best of the settings that a Bayesian optimisation finds in that time, `start` included.

    Args:
        start: The system whose settings are varied, as it did with its own.
        seconds: For how long. The trial that is running then is finished.
        seed: Fixes what is tried; how many are depends on the machine.
        tried: How a system does on the folds.
        progress: Told the share of the time that is over.
    """
    import optuna  # half a second, which other commands need not wait

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = start.system.settings.search_space()
    best, begun = start, time.monotonic()

    def trial(asked: optuna.Trial) -> float:
        nonlocal best
        changes = sample_settings(asked, space, start.system.settings)
        try:
            made = start.system.settings.replace(changes)
            found = tried(system(start.system.name, made, operator=start.system.operator))
        except KryographError:  # a run that diverges, settings that do not go together
            return 0.0
        finally:
            progress(min((time.monotonic() - begun) / seconds, 1.0))
        if found.accuracy > best.accuracy:
            best = found
        return found.accuracy

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(trial, timeout=seconds)
    return best
