"""One trial: settings that a sampler proposes, run on one split after the other.

Its score is the mean accuracy on validation nodes. After each split the mean so far is reported,
and a trial below the median of the others is pruned once more than a third of the splits have been
heard: the first alone says little, as label draws differ in which settings they favour. A trial
that diverges or raises is recorded as failed, with what was said, and is not the end of the search.

Search: a study in a database, in which this process takes part.

The database is what is true: a search that was stopped goes on from there, and several processes
may share one. Each trial is noted as this process's, so that those of others are counted, and only
its own are ended with it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache, partial
from statistics import fmean
from typing import TYPE_CHECKING, Any

from kryograph.errors import UsageError, unknown
from kryograph.runs.workers import WorkerDied, execute
from kryograph.systems.settings import sample_settings
from kryograph.text import duration
from kryograph.training.loop import Epoch
from kryograph.tuning.database import connect, explained, give_up_killed, quiet
from kryograph.tuning.problem import TuningProblem

if TYPE_CHECKING:
    import optuna
if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

SAMPLERS = ("tpe", "gp")
"""Tree-structured Parzen estimators; Gaussian processes."""

IN_A_ROW = 100
"""After how many settings over the budget, with none below it between, a search gives up."""

SQLITE_RETRY_SECONDS = 2
"""A run that takes this many times the budget is ended, and the trial with it."""

BY, SOURCE, SCORES, ERROR, OVER = "by", "source", "scores", "error", "over budget"
"""What is noted of a trial: who runs it, whose settings they are, a score for each split so far,
what it failed by, that it was not run because it would take too long."""


@dataclass(frozen=True)
class SearchBudget:
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
    problem: TuningProblem,
    study: optuna.Study,
    effort: SearchBudget,
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
        values = sample_settings(trial, problem.space, problem.defaults)
        seconds = None if source is not None else problem.seconds(values)
        too_long = seconds is not None and seconds > effort.budget
        if too_long:
            trial.set_user_attr(OVER, True)
            raise optuna.TrialPruned
        scores: list[float] = []

        def watched(epoch: Epoch) -> None:
            on_epoch(epoch)
            # A prediction knows nothing of how many epochs a small learning rate takes.
            if not wanted and time.monotonic() > begun + SQLITE_RETRY_SECONDS * effort.budget:
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


def _sampler(effort: SearchBudget, seed: int) -> optuna.samplers.BaseSampler:
    import optuna

    with quiet():
        make = optuna.samplers.GPSampler if effort.sampler == "gp" else optuna.samplers.TPESampler
        sampler: optuna.samplers.BaseSampler = make(seed=seed)
        if effort.fixed:
            sampler = optuna.samplers.PartialFixedSampler(dict(effort.fixed), sampler)
        return sampler


def attempt_in_worker(
    problem: TuningProblem,
    address: str,
    study: str,
    effort: SearchBudget,
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


POLL = 1.0
"""How often to look whether another process has finished, in seconds."""

_ABOUT = "kryograph"
_STATES = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}


@dataclass(frozen=True)
class Trial:
    """A trial that is over."""

    number: int
    values: Mapping[str, Any]
    """The point of the search space."""
    state: str
    """"complete", "pruned" or "failed"."""
    scores: tuple[float, ...]
    """Accuracy on the validation nodes of each split, as far as it got."""
    source: str | None
    """Whose settings they are: "default", "paper", "tuned for …"; None if the sampler's."""
    error: str | None
    seconds: float

    @property
    def accuracy(self) -> float:
        """The mean, by which settings are compared."""
        return fmean(self.scores)


class Study:
    """A study and this process's part in it."""

    def __init__(
        self, problem: TuningProblem, storage: optuna.storages.RDBStorage, name: str
    ) -> None:
        import optuna

        self.problem, self.storage, self.name = problem, storage, name
        self.token = uuid.uuid4().hex
        self.study = optuna.create_study(
            study_name=name, storage=storage, direction="maximize", load_if_exists=True
        )
        self._check()
        give_up_killed(self.study)

    def _check(self) -> None:
        about, there = self.problem.about(), self.study.user_attrs.get(_ABOUT)
        if there is None:
            if self._trials():
                raise UsageError(
                    f"The study {self.name!r} was not made by kryograph: name another with --study."
                )
            self.study.set_user_attr(_ABOUT, about)
            return
        for what, value in about.items():
            if there.get(what) != value:
                raise UsageError(
                    f"The study {self.name!r} was made with another {what}, so its trials cannot "
                    "be compared with new ones: name another with --study."
                )

    def finished(self) -> list[Trial]:
        """The trials that are over."""
        return [_tried(trial) for trial in self._counted() if trial.state.is_finished()]

    def best(self) -> list[Trial]:
        """Those that are complete, the best first; of equals the earlier."""
        complete = (tried for tried in self.finished() if tried.state == "complete")
        return sorted(complete, key=lambda tried: -tried.accuracy)

    def over_budget(self) -> int:
        """How many settings were passed over, as they would have taken too long."""
        return sum(OVER in trial.user_attrs for trial in self._trials())

    def enqueue(self, budget: float) -> list[str]:
        """Let what is known be tried first; which of it is left out, as it would take too long."""
        there = {trial.user_attrs.get(SOURCE) for trial in self._trials() if not _killed(trial)}
        left_out = []
        problem = self.problem
        known = {**problem.starts, **problem.asked, **problem.found_before}
        for source, method in known.items():
            if source in there:
                continue
            point = problem.point(method)
            # The default has to be known, whatever it takes, and so has what a person asks for.
            wanted = source == "default" or source in problem.asked
            seconds = None if wanted else problem.seconds(point)
            if seconds is not None and seconds > budget:
                left_out.append(source)
            else:
                self.study.enqueue_trial(point, user_attrs={SOURCE: source}, skip_if_exists=True)
        return left_out

    def run(
        self,
        effort: SearchBudget,
        on_epoch: Callable[[int, Epoch], None] = lambda slot, epoch: None,
        on_wait: Callable[[], None] = lambda: None,
    ) -> Generator[Trial, None, None]:
        """Do trials until there are enough; each comes when it is over, and is in the database."""
        end = time.monotonic() + (float("inf") if effort.timeout is None else effort.timeout)
        try:
            while True:
                with closing(self._round(effort, self._slots(effort, end), on_epoch)) as going:
                    yield from going
                if time.monotonic() >= end or len(self.finished()) >= effort.trials:
                    return
                # Another process is at what is missing, or was killed a moment ago.
                on_wait()
                time.sleep(POLL)
                give_up_killed(self.study)
        finally:
            for trial in self._running():  # after Ctrl-C, when the workers are gone
                self._fail(trial)

    def _slots(self, effort: SearchBudget, end: float) -> Iterator[int]:
        """A number for each trial that is to be begun.

        This process's own trials are counted when they are handed out: a worker takes a while
        until its trial is in the database.
        """
        handed = begun = sum(self._is_mine(trial) for trial in self._counted())
        while time.monotonic() < end:
            others = sum(not self._is_mine(trial) for trial in self._counted())
            if others + handed >= effort.trials:
                return
            handed += 1
            yield handed - begun

    def _round(
        self, effort: SearchBudget, slots: Iterator[int], on_epoch: Callable[[int, Epoch], None]
    ) -> Generator[Trial, None, None]:
        if effort.jobs == 1:
            for slot in slots:
                by = f"{self.token} {slot}"
                number = attempt(self.problem, self.study, effort, by, partial(on_epoch, slot))
                yield _tried(self._trials()[number])
            return
        address, token = self.storage.url, self.token
        work = partial(attempt_in_worker, self.problem, address, self.name, effort, token)
        with closing(execute(work, slots, effort.jobs, on_epoch)) as going:
            for slot, outcome in going:
                if isinstance(outcome, WorkerDied):
                    for trial in self._running(slot):
                        self._fail(trial, str(outcome))
                        yield _tried(self._trials()[trial.number])
                elif isinstance(outcome, Exception):
                    raise outcome
                else:
                    yield _tried(self._trials()[outcome])

    def _trials(self) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False)

    def _counted(self) -> list[FrozenTrial]:
        """The trials that are running or over, neither killed nor left out for the budget.

        One that runs but has no settings yet may have been killed before it had a heartbeat.
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
        """Trials of this process, or of one of its slots."""
        mine = [t for t in self._trials() if t.state.name == "RUNNING" and self._is_mine(t)]
        return [t for t in mine if slot is None or t.user_attrs[BY] == f"{self.token} {slot}"]

    def _fail(self, trial: FrozenTrial, error: str | None = None) -> None:
        import optuna

        if error is not None:
            self.storage.set_trial_user_attr(trial._trial_id, ERROR, error)
        self.study.tell(trial.number, state=optuna.trial.TrialState.FAIL, skip_if_finished=True)


def _killed(trial: FrozenTrial) -> bool:
    """Whether it failed by no fault of its settings."""
    return trial.state.name == "FAIL" and ERROR not in trial.user_attrs


def _tried(trial: FrozenTrial) -> Trial:
    return Trial(
        number=trial.number,
        values=trial.params,
        state=_STATES[trial.state.name],
        scores=tuple(trial.user_attrs.get(SCORES, ())),
        source=trial.user_attrs.get(SOURCE),
        error=trial.user_attrs.get(ERROR),
        seconds=trial.duration.total_seconds() if trial.duration else 0.0,
    )
