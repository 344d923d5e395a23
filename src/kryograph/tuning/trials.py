"""One trial: settings that a sampler proposes, run on one split after the other.

Its score is the mean accuracy on validation nodes. After each split the mean so far is reported,
and a trial below the median of the others is pruned once more than a third of the splits have been
heard: the first alone says little, as label draws differ in which settings they favour. A trial
that diverges or raises is recorded as failed, with what was said, and is not the end of the search.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from statistics import fmean
from typing import TYPE_CHECKING, Any

from kryograph.durations import duration
from kryograph.errors import UsageError, unknown
from kryograph.systems.search_space import suggest
from kryograph.training.loop import Epoch
from kryograph.tuning.problem import Problem
from kryograph.tuning.storage import connect, explained, quiet

if TYPE_CHECKING:
    import optuna

SAMPLERS = ("tpe", "gp")
"""Tree-structured Parzen estimators; Gaussian processes."""

IN_A_ROW = 100
"""After how many settings over the budget, with none below it between, a search gives up."""

PATIENCE = 2
"""A run that takes this many times the budget is ended, and the trial with it."""

BY, SOURCE, SCORES, ERROR, OVER = "by", "source", "scores", "error", "over budget"
"""What is noted of a trial: who runs it, whose settings they are, a score for each split so far,
what it failed by, that it was not run because it would take too long."""


@dataclass(frozen=True)
class Effort:
    """How much is done for a search.

    Args:
        trials: How many the study has in the end, those of earlier calls and of other processes
            included.
        timeout: After so many seconds no more trial is begun.
        budget: Settings with which a run is predicted to take more seconds are not tried.
        sampler: "tpe" or "gp".
        jobs: How many trials at once.
        fixed: Settings that the sampler leaves as they are given.
    """

    trials: int = 100
    timeout: float | None = None
    budget: float = 60.0
    sampler: str = "tpe"
    jobs: int = 1
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for option, count in (("--trials", self.trials), ("--jobs", self.jobs)):
            if count < 1:
                raise UsageError(f"{option} must be at least 1; it is {count}.")
        if self.sampler not in SAMPLERS:
            raise unknown("sampler", self.sampler, SAMPLERS)


class TrialFailed(Exception):
    """What went wrong is noted in the trial."""


def attempt(
    problem: Problem,
    study: optuna.Study,
    effort: Effort,
    by: str,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
) -> int:
    """Do one trial, and say its number. Settings over the budget are passed over."""
    import optuna

    number, too_long = -1, False

    def objective(trial: optuna.Trial) -> float:
        nonlocal number, too_long
        number = trial.number
        trial.set_user_attr(BY, by)
        source = trial.user_attrs.get(SOURCE)
        wanted = source in problem.starts or source in problem.asked
        values = suggest(trial, problem.space, problem.defaults)
        seconds = None if source is not None else problem.seconds(values)
        too_long = seconds is not None and seconds > effort.budget
        if too_long:
            trial.set_user_attr(OVER, True)
            raise optuna.TrialPruned
        scores: list[float] = []

        def watched(epoch: Epoch) -> None:
            on_epoch(epoch)
            # A prediction knows nothing of how many epochs a small learning rate takes.
            if not wanted and time.monotonic() > begun + PATIENCE * effort.budget:
                raise optuna.TrialPruned

        for step, lesson in enumerate(problem.lessons):
            begun = time.monotonic()
            try:
                scores.append(problem.score(problem.made(values), lesson, watched))
            except optuna.TrialPruned:
                raise
            except OSError:  # nobody hears of the epochs any more: the search was stopped
                raise
            except Exception as error:
                said = " ".join(str(error).split())
                trial.set_user_attr(ERROR, f"{type(error).__name__}: {said}"[:500])
                raise TrialFailed from error
            trial.set_user_attr(SCORES, scores)
            trial.report(fmean(scores), step)
            # What the winner is compared with is run to its end.
            compared = source in problem.starts
            if not compared and step + 1 < len(problem.lessons) and trial.should_prune():
                raise optuna.TrialPruned
        return fmean(scores)

    study.pruner = optuna.pruners.MedianPruner(n_warmup_steps=len(problem.lessons) // 3)
    for _ in range(IN_A_ROW):
        # The seed is how many trials there are, so that a search that goes on proposes what it
        # would have proposed, and no two processes propose the same.
        study.sampler = _sampler(effort, len(study.get_trials(deepcopy=False)))
        with quiet():
            study.optimize(objective, n_trials=1, catch=(TrialFailed,))
        if not too_long:
            return number
    raise UsageError(
        f"{IN_A_ROW} settings in a row would take over {duration(effort.budget)} per run: give a "
        "larger --budget."
    )


def _sampler(effort: Effort, seed: int) -> optuna.samplers.BaseSampler:
    import optuna

    with quiet():
        make = optuna.samplers.GPSampler if effort.sampler == "gp" else optuna.samplers.TPESampler
        sampler: optuna.samplers.BaseSampler = make(seed=seed)
        if effort.fixed:
            sampler = optuna.samplers.PartialFixedSampler(dict(effort.fixed), sampler)
        return sampler


def attempt_in_worker(
    problem: Problem,
    address: str,
    study: str,
    effort: Effort,
    token: str,
    slot: int,
    tell: Callable[[Epoch], None],
) -> int:
    """The same in a process of its own, which has its own way to the database."""
    with explained(address):
        return attempt(problem, _study(address, study), effort, f"{token} {slot}", tell)


@cache
def _study(address: str, name: str) -> optuna.Study:
    import optuna

    return optuna.load_study(study_name=name, storage=connect(address))
