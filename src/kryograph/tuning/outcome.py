"""Outcome of a search: the best trials, how many there were, and the tuned settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from kryograph.data.splits import split_option
from kryograph.errors import KryographError
from kryograph.experiments.tuned import Tuned
from kryograph.text import plural
from kryograph.tuning.problem import FIRST_SEED, TuningProblem
from kryograph.tuning.study import SearchBudget, Study, Trial

TRIALS_SHOWN = 5
"""Number of the best trials that are listed."""


@dataclass(frozen=True)
class SearchOutcome:
    """Result of a study so far.

    Args:
        study: The study.
        best: Trials that were run on all splits, the best one first.
        starts: Trials whose settings were known before the search, by the source of the settings.
        counts: Number of trials in each state; "here" are those of this process.
        tuned: Settings of the best trial.
    """

    study: Study
    best: Sequence[Trial]
    starts: Mapping[str, Trial]
    counts: Mapping[str, int]
    tuned: Tuned

    @property
    def listed(self) -> list[Trial]:
        """The best trials, then those of `starts` that are not among them."""
        best = list(self.best[:TRIALS_SHOWN])
        return [*best, *(trial for trial in self.starts.values() if trial not in best)]

    def as_dict(self) -> dict[str, Any]:
        """The outcome as values for JSON; accuracies are fractions."""
        scenario = self.tuned.scenario
        return {
            "study": self.study.name,
            "system": self.tuned.system.name,
            "dataset": scenario.dataset,
            "split": scenario.split,
            "protocol": scenario.protocol,
            "seeds": [task.seed for task in self.study.problem.tasks],
            "trials": dict(self.counts),
            "winner": self._trial(self.best[0]),
            "default": self._trial(self.starts.get("default")),
            "paper": self._trial(self.starts.get("paper")),
            "best": [self._trial(trial) for trial in self.best[:TRIALS_SHOWN]],
            "provenance": self.tuned.provenance,
        }

    def _trial(self, trial: Trial | None) -> dict[str, Any] | None:
        if trial is None:
            return None
        system = self.study.problem.system_at(trial.values)
        return {
            "number": trial.number,
            "source": trial.source or "search",
            "validation_accuracy": trial.accuracy,
            "scores": list(trial.scores),
            "operator": system.operator,
            "settings": system.settings.as_dict(),
        }


def search_outcome(study: Study, budget: SearchBudget, trials_here: int) -> SearchOutcome:
    """Collect the outcome of a study; `trials_here` were run by this process.

    Raises:
        KryographError: If no trial was run on all splits.
    """
    finished, best = study.finished(), study.best()
    if not best:
        errors = [trial.error for trial in finished if trial.error]
        why = f"the last failed with {errors[-1]!r}" if errors else "give a longer --timeout"
        raise KryographError(
            f"None of the {len(finished)} trials of the study {study.name!r} was finished: {why}."
        )
    states = [trial.state for trial in finished]
    counts = {state: states.count(state) for state in ("complete", "pruned", "failed")}
    counts |= {"over_budget": study.over_budget(), "here": trials_here}
    problem, scenario, winner = study.problem, study.problem.scenario, best[0]
    provenance = (
        f"{provenance_command(problem, budget)}: {budget.sampler}, {len(finished)} trials "
        f"({counts['pruned']} pruned, {counts['failed']} failed), each on "
        f"{plural(len(problem.tasks), 'seed')} from {FIRST_SEED}; number {winner.number}"
        + (f", which is {winner.source}" if winner.source else "")
    )
    return SearchOutcome(
        study,
        best,
        {trial.source: trial for trial in reversed(best) if trial.source in problem.starts},
        counts,
        Tuned(
            problem.system_at(winner.values), scenario, winner.accuracy, provenance, scenario.split
        ),
    )


def provenance_command(problem: TuningProblem, budget: SearchBudget) -> str:
    """Command that repeats a search. Leaves out `--storage`, which may contain a password."""
    scenario = problem.scenario
    return (
        f"kryograph tune {problem.name} --dataset {scenario.dataset} "
        f"{split_option(scenario.split)} --protocol {scenario.protocol} "
        f"--trials {budget.trials} --seeds {len(problem.tasks)} "
        f"--sampler {budget.sampler} --budget {budget.seconds_per_run:g}s"
        + "".join(f" --fix {name}={value}" for name, value in budget.fixed.items())
        + "".join(f" {source}" for source in problem.requested)
    )


def search_seconds_left(
    finished: Sequence[Trial], budget: SearchBudget, elapsed_seconds: float
) -> float:
    """Estimate the time until a search ends, from the mean time of its finished trials."""
    missing = budget.trials - len(finished)
    left = missing * fmean(trial.seconds for trial in finished) / budget.jobs
    if budget.timeout is not None:
        left = min(left, budget.timeout - elapsed_seconds)
    return max(left, 0.0)
