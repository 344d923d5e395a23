"""A study: trials in a database, each of which scores settings that a sampler proposes.

The database holds the state of a search. A search that was stopped is resumed from it, and several
processes may share a study. Each trial records the process that runs it: trials of other processes
count as well, and a process that stops ends only its own.

The score of a trial is the mean accuracy on validation nodes over all splits. The mean so far is
reported after each split, and a trial below the median of the others is pruned, but not before a
third of the splits: one split says little, because it depends on the drawn labels which settings
are good. A trial that diverges or raises an error is recorded as failed, and the search goes on.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache, partial
from statistics import fmean
from typing import Any

import optuna
from optuna.samplers import BaseSampler, GPSampler, PartialFixedSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState

from kryograph.errors import UsageError, unknown
from kryograph.runs.workers import WorkerDied, run_in_workers
from kryograph.systems.settings import sample_settings
from kryograph.text import duration
from kryograph.training.loop import Epoch
from kryograph.tuning.database import (
    connect,
    explain_errors,
    fail_killed_trials,
    ignore_experimental_warnings,
)
from kryograph.tuning.problem import TuningProblem

SAMPLERS = ("tpe", "gp")
"""Tree-structured Parzen estimators, and Gaussian processes."""

MAX_SKIPPED = 100
"""Number of consecutive proposals over the budget after which a search ends with an error."""

OVERRUN_FACTOR = 2
"""Multiple of the predicted time limit after which a run, and its trial, is ended."""

POLL_SECONDS = 1.0
"""Time between two looks for the results of other processes."""

# Keys of the attributes of a trial in the database.
BY = "by"
"""Token of the process and slot that run the trial."""
SOURCE_ATTRIBUTE = "source"
"""Where the settings come from; missing if the sampler proposed them."""
SCORES = "scores"
"""Accuracy on each split so far."""
ERROR = "error"
"""The error that ended the trial."""
OVER = "over budget"
"""Set if the trial was not run because it would take too long."""

_ABOUT = "kryograph"
_STATES = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}


@dataclass(frozen=True)
class SearchBudget:
    """Limits of a search, and how it is done.

    Args:
        trials: Number of trials in the study at the end, including those of earlier calls and of
            other processes.
        timeout: Time in seconds after which no trial is started; None means no limit.
        seconds_per_run: Settings are skipped if one run is predicted to take longer.
        sampler: "tpe" or "gp".
        jobs: Number of trials at the same time.
        fixed: Settings that the sampler does not vary, with their values.
    """

    trials: int = 100
    timeout: float | None = None
    seconds_per_run: float = 60.0
    sampler: str = "tpe"
    jobs: int = 1
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for option, count in (("--trials", self.trials), ("--jobs", self.jobs)):
            if count < 1:
                raise UsageError(f"{option} must be at least 1; it is {count}.")
        if self.sampler not in SAMPLERS:
            raise unknown("sampler", self.sampler, SAMPLERS)


@dataclass(frozen=True)
class Trial:
    """A finished trial as it is stored in the database."""

    number: int
    values: Mapping[str, Any]
    """The point of the search space."""
    state: str
    """"complete", "pruned" or "failed"."""
    scores: tuple[float, ...]
    """Accuracy on the validation nodes of each split that was run."""
    source: str | None
    """Source of the settings: "default", "paper", "tuned for …"; None if the sampler's."""
    error: str | None
    """The error that ended the trial; None if it did not fail by an error."""
    seconds: float

    @property
    def accuracy(self) -> float:
        """Mean accuracy over the splits, by which trials are compared."""
        return fmean(self.scores)


class Study:
    """A study in a database, with the trials that this process does."""

    def __init__(
        self, problem: TuningProblem, storage: optuna.storages.RDBStorage, name: str
    ) -> None:
        self.problem, self.storage, self.name = problem, storage, name
        self.token = uuid.uuid4().hex
        self.study = optuna.create_study(
            study_name=name, storage=storage, direction="maximize", load_if_exists=True
        )
        self._check()
        fail_killed_trials(self.study)

    def _check(self) -> None:
        """Raise a `UsageError` if the study in the database belongs to another problem."""
        about, stored = self.problem.about(), self.study.user_attrs.get(_ABOUT)
        if stored is None:
            if self._trials():
                raise UsageError(
                    f"The study {self.name!r} was not made by kryograph: name another with --study."
                )
            self.study.set_user_attr(_ABOUT, about)
            return
        for what, value in about.items():
            if stored.get(what) != value:
                raise UsageError(
                    f"The study {self.name!r} was made with another {what}, so its trials cannot "
                    "be compared with new ones: name another with --study."
                )

    def finished(self) -> list[Trial]:
        """The finished trials in the order of their numbers."""
        return [_finished(trial) for trial in self._counted() if trial.state.is_finished()]

    def best(self) -> list[Trial]:
        """The complete trials by descending accuracy; of equal ones the earlier first."""
        complete = (trial for trial in self.finished() if trial.state == "complete")
        return sorted(complete, key=lambda trial: -trial.accuracy)

    def over_budget(self) -> int:
        """Number of proposals that were skipped because a run would take too long."""
        return sum(OVER in trial.user_attrs for trial in self._trials())

    def enqueue(self, seconds_per_run: float) -> list[str]:
        """Queue all known settings, so that they are tried first.

        Returns:
            The sources that were left out because a run would take more than `seconds_per_run`.
        """
        queued = {
            trial.user_attrs.get(SOURCE_ATTRIBUTE) for trial in self._trials() if not _killed(trial)
        }
        left_out = []
        problem = self.problem
        known = {**problem.starts, **problem.requested, **problem.earlier_results}
        for source, method in known.items():
            if source in queued:
                continue
            point = problem.point(method)
            # The default and the settings that the user requested are tried at any price.
            required = source == "default" or source in problem.requested
            seconds = None if required else problem.seconds(point)
            if seconds is not None and seconds > seconds_per_run:
                left_out.append(source)
            else:
                self.study.enqueue_trial(
                    point, user_attrs={SOURCE_ATTRIBUTE: source}, skip_if_exists=True
                )
        return left_out

    def run(
        self,
        budget: SearchBudget,
        on_epoch: Callable[[int, Epoch], None] = lambda slot, epoch: None,
        on_wait: Callable[[], None] = lambda: None,
    ) -> Generator[Trial, None, None]:
        """Do trials until the study has enough; yield each when it is finished and stored."""
        end = time.monotonic() + (float("inf") if budget.timeout is None else budget.timeout)
        try:
            while True:
                with closing(self._round(budget, self._slots(budget, end), on_epoch)) as trials:
                    yield from trials
                if time.monotonic() >= end or len(self.finished()) >= budget.trials:
                    return
                # Another process runs the missing trials, or was killed a moment ago.
                on_wait()
                time.sleep(POLL_SECONDS)
                fail_killed_trials(self.study)
        finally:
            for trial in self._running():  # after Ctrl-C, when the workers have ended
                self._fail(trial)

    def _slots(self, budget: SearchBudget, end: float) -> Iterator[int]:
        """Yield a number for each trial that this process is to start.

        Own trials are counted when their slot is handed out, because a worker needs a while until
        its trial is in the database.
        """
        handed = before = sum(self._is_mine(trial) for trial in self._counted())
        while time.monotonic() < end:
            others = sum(not self._is_mine(trial) for trial in self._counted())
            if others + handed >= budget.trials:
                return
            handed += 1
            yield handed - before

    def _round(
        self, budget: SearchBudget, slots: Iterator[int], on_epoch: Callable[[int, Epoch], None]
    ) -> Generator[Trial, None, None]:
        """Do the trials of all slots, in this process or in workers."""
        if budget.jobs == 1:
            for slot in slots:
                by = f"{self.token} {slot}"
                number = attempt(self.problem, self.study, budget, by, partial(on_epoch, slot))
                yield _finished(self._trials()[number])
            return
        address, token = self.storage.url, self.token
        work = partial(attempt_in_worker, self.problem, address, self.name, budget, token)
        with closing(run_in_workers(work, slots, budget.jobs, on_epoch)) as outcomes:
            for slot, outcome in outcomes:
                if isinstance(outcome, WorkerDied):
                    for trial in self._running(slot):
                        self._fail(trial, str(outcome))
                        yield _finished(self._trials()[trial.number])
                elif isinstance(outcome, Exception):
                    raise outcome
                else:
                    yield _finished(self._trials()[outcome])

    def _trials(self) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False)

    def _counted(self) -> list[FrozenTrial]:
        """The running and finished trials except for killed and skipped ones.

        A running trial without settings is left out: its process may have been killed before the
        first heartbeat.
        """
        return [
            trial
            for trial in self._trials()
            if (trial.state.is_finished() or (trial.state.name == "RUNNING" and trial.params))
            and not _killed(trial)
            and OVER not in trial.user_attrs
        ]

    def _is_mine(self, trial: FrozenTrial) -> bool:
        return bool(trial.user_attrs.get(BY, "").startswith(self.token))

    def _running(self, slot: int | None = None) -> list[FrozenTrial]:
        """The running trials of this process, or of one of its slots."""
        mine = [t for t in self._trials() if t.state.name == "RUNNING" and self._is_mine(t)]
        return [t for t in mine if slot is None or t.user_attrs[BY] == f"{self.token} {slot}"]

    def _fail(self, trial: FrozenTrial, error: str | None = None) -> None:
        if error is not None:
            self.storage.set_trial_user_attr(trial._trial_id, ERROR, error)
        self.study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)


class TrialFailed(Exception):
    """Ends a trial whose error is recorded in its attributes."""


def attempt(
    problem: TuningProblem,
    study: optuna.Study,
    budget: SearchBudget,
    by: str,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
) -> int:
    """Do one trial and return its number; proposals over the budget are skipped."""
    number, too_long = -1, False

    def objective(trial: optuna.Trial) -> float:
        nonlocal number, too_long
        number = trial.number
        trial.set_user_attr(BY, by)
        source = trial.user_attrs.get(SOURCE_ATTRIBUTE)
        required = source in problem.starts or source in problem.requested
        values = sample_settings(trial, problem.space, problem.defaults)
        seconds = None if source is not None else problem.seconds(values)
        too_long = seconds is not None and seconds > budget.seconds_per_run
        if too_long:
            trial.set_user_attr(OVER, True)
            raise optuna.TrialPruned
        scores: list[float] = []

        def check_time(epoch: Epoch) -> None:
            on_epoch(epoch)
            # The prediction does not know how many epochs a small learning rate needs.
            limit = OVERRUN_FACTOR * budget.seconds_per_run
            if not required and time.monotonic() > start + limit:
                raise optuna.TrialPruned

        for step, run in enumerate(problem.tasks):
            start = time.monotonic()
            try:
                scores.append(problem.score(problem.system_at(values), run, check_time))
            except optuna.TrialPruned:
                raise
            except OSError:  # the pipe for epochs is closed: the search was stopped
                raise
            except Exception as error:
                message = " ".join(str(error).split())
                trial.set_user_attr(ERROR, f"{type(error).__name__}: {message}"[:500])
                raise TrialFailed from error
            trial.set_user_attr(SCORES, scores)
            trial.report(fmean(scores), step)
            # The result is compared with the starts, so these are run on all splits.
            last = step + 1 == len(problem.tasks)
            if source not in problem.starts and not last and trial.should_prune():
                raise optuna.TrialPruned
        return fmean(scores)

    study.pruner = optuna.pruners.MedianPruner(n_warmup_steps=len(problem.tasks) // 3)
    for _ in range(MAX_SKIPPED):
        # The seed is the number of trials, so that a resumed search proposes what it would have
        # proposed without the interruption, and no two processes propose the same.
        study.sampler = _sampler(budget, len(study.get_trials(deepcopy=False)))
        with ignore_experimental_warnings():
            study.optimize(objective, n_trials=1, catch=(TrialFailed,))
        if not too_long:
            return number
    raise UsageError(
        f"{MAX_SKIPPED} settings in a row would take over {duration(budget.seconds_per_run)} per "
        "run: set a larger --budget."
    )


def _sampler(budget: SearchBudget, seed: int) -> BaseSampler:
    with ignore_experimental_warnings():
        kind = GPSampler if budget.sampler == "gp" else TPESampler
        sampler: BaseSampler = kind(seed=seed)
        if budget.fixed:
            sampler = PartialFixedSampler(dict(budget.fixed), sampler)
        return sampler


def attempt_in_worker(
    problem: TuningProblem,
    address: str,
    study: str,
    budget: SearchBudget,
    token: str,
    slot: int,
    on_epoch: Callable[[Epoch], None],
) -> int:
    """Do one trial in a worker process, which has a connection of its own to the database."""
    with explain_errors(address):
        return attempt(problem, _load_study(address, study), budget, f"{token} {slot}", on_epoch)


@cache
def _load_study(address: str, name: str) -> optuna.Study:
    return optuna.load_study(study_name=name, storage=connect(address))


def _killed(trial: FrozenTrial) -> bool:
    """Whether a trial failed because its process ended, and not by an error."""
    return trial.state.name == "FAIL" and ERROR not in trial.user_attrs


def _finished(trial: FrozenTrial) -> Trial:
    return Trial(
        number=trial.number,
        values=trial.params,
        state=_STATES[trial.state.name],
        scores=tuple(trial.user_attrs.get(SCORES, ())),
        source=trial.user_attrs.get(SOURCE_ATTRIBUTE),
        error=trial.user_attrs.get(ERROR),
        seconds=trial.duration.total_seconds() if trial.duration else 0.0,
    )
