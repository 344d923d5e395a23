"""Search: a study in a database, in which this process takes part.

The database is what is true: a search that was stopped goes on from there, and several processes
may share one. Each trial is noted as this process's, so that those of others are counted, and only
its own are ended with it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Any

from kryograph.errors import UsageError
from kryograph.experiments.jobs import WorkerDied, stream
from kryograph.training.loop import Epoch
from kryograph.tuning.problem import Problem
from kryograph.tuning.storage import give_up_killed
from kryograph.tuning.trials import (
    BY,
    ERROR,
    OVER,
    SCORES,
    SOURCE,
    Effort,
    attempt,
    attempt_in_worker,
)

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

POLL = 1.0
"""How often to look whether another process has finished, in seconds."""

_ABOUT = "kryograph"
_STATES = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}


@dataclass(frozen=True)
class Tried:
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


class Search:
    """A study and this process's part in it."""

    def __init__(self, problem: Problem, storage: optuna.storages.RDBStorage, name: str) -> None:
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

    def finished(self) -> list[Tried]:
        """The trials that are over."""
        return [_tried(trial) for trial in self._counted() if trial.state.is_finished()]

    def best(self) -> list[Tried]:
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
        effort: Effort,
        on_epoch: Callable[[int, Epoch], None] = lambda slot, epoch: None,
        on_wait: Callable[[], None] = lambda: None,
    ) -> Generator[Tried, None, None]:
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

    def _slots(self, effort: Effort, end: float) -> Iterator[int]:
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
        self, effort: Effort, slots: Iterator[int], on_epoch: Callable[[int, Epoch], None]
    ) -> Generator[Tried, None, None]:
        if effort.jobs == 1:
            for slot in slots:
                by = f"{self.token} {slot}"
                number = attempt(self.problem, self.study, effort, by, partial(on_epoch, slot))
                yield _tried(self._trials()[number])
            return
        address, token = self.storage.url, self.token
        work = partial(attempt_in_worker, self.problem, address, self.name, effort, token)
        with closing(stream(work, slots, effort.jobs, on_epoch)) as going:
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


def _tried(trial: FrozenTrial) -> Tried:
    return Tried(
        number=trial.number,
        values=trial.params,
        state=_STATES[trial.state.name],
        scores=tuple(trial.user_attrs.get(SCORES, ())),
        source=trial.user_attrs.get(SOURCE),
        error=trial.user_attrs.get(ERROR),
        seconds=trial.duration.total_seconds() if trial.duration else 0.0,
    )
