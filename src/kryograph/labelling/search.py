"""Search: better settings of a system, by what it says of held-out labels, for a limited time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from kryograph.errors import KryographError
from kryograph.labelling.choice import Candidate
from kryograph.systems import System, system
from kryograph.systems.search_space import suggest

if TYPE_CHECKING:
    import optuna


def search(
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
        changes = suggest(asked, space, start.system.settings)
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
