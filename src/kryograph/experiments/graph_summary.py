"""Summary of a benchmark on many graphs: regret to the best head, references, calibration, time.

A setting is a graph with a number of labels per class; its values are means over the draws. Every
setting counts alike. Shares and differences are fractions, not per cent.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kryograph.experiments.graph_accuracy import REFERENCES
from kryograph.experiments.graph_rows import BASIS, PORTFOLIO, GraphRow
from kryograph.systems.pool import HEADS

ALL = "all"
"""Key of a mean over all numbers of labels per class."""


@dataclass(frozen=True)
class GraphSetting:
    """Means of one graph and one number of labels per class.

    Args:
        graph: Name of the graph.
        n: Number of nodes.
        per_class: Number of labels of each class.
        draws: Number of draws with a result of any method.
        accuracy: Mean accuracy of each method that has a result.
        balanced_accuracy: Mean balanced accuracy of the same methods.
        seconds: Mean processor time of the same methods.
    """

    graph: str
    n: int
    per_class: int
    draws: int
    accuracy: dict[str, float]
    balanced_accuracy: dict[str, float]
    seconds: dict[str, float]

    @property
    def best_head(self) -> str | None:
        """Head with the highest mean accuracy, known only in hindsight; None without heads."""
        return _best(self.accuracy, HEADS)

    @property
    def best_reference(self) -> str | None:
        """Reference with the highest mean accuracy; None without references."""
        return _best(self.accuracy, REFERENCES)

    @property
    def regret(self) -> float | None:
        """Accuracy of the best head less that of the portfolio; None if either is missing."""
        return _less(self.accuracy, self.best_head, PORTFOLIO)

    @property
    def balanced_regret(self) -> float | None:
        """The regret in balanced accuracy, to the head that is best in it."""
        return _less(self.balanced_accuracy, _best(self.balanced_accuracy, HEADS), PORTFOLIO)

    @property
    def reference_regret(self) -> float | None:
        """Accuracy of the best reference less that of the portfolio."""
        return _less(self.accuracy, self.best_reference, PORTFOLIO)

    def as_dict(self) -> dict[str, Any]:
        """Fields and properties as values for JSON."""
        derived = ("best_head", "best_reference", "regret", "balanced_regret", "reference_regret")
        return asdict(self) | {name: getattr(self, name) for name in derived}


@dataclass(frozen=True)
class Spread:
    """Mean, median and largest of some values, and the mean for each number of labels per class."""

    mean: float
    median: float
    worst: float
    by_per_class: dict[str, float]


@dataclass(frozen=True)
class GraphSummary:
    """Summary of the rows of a benchmark.

    Args:
        settings: Means of each setting, in the order of the rows.
        regret: Regret of the portfolio to the best head; None without any.
        balanced_regret: The same in balanced accuracy.
        reference_regret: Regret to the best reference.
        differences: Mean over the settings of the accuracy of the portfolio less that of a
            reference, on the draws that both have.
        means: Mean of each field of the portfolio's rows in `PORTFOLIO_FIELDS`, over all rows
            ("all") and by number of labels per class.
        basis_seconds: Processor time of the basis of each graph.
        errors: Graph, method and message of each error, and the number of its rows.
    """

    settings: tuple[GraphSetting, ...]
    regret: Spread | None
    balanced_regret: Spread | None
    reference_regret: Spread | None
    differences: dict[str, float]
    means: dict[str, dict[str, float]]
    basis_seconds: dict[str, float]
    errors: tuple[tuple[str, str, str, int], ...]

    def as_dict(self) -> dict[str, Any]:
        """Settings, regret, differences, means and errors as values for JSON."""
        return asdict(self) | {"settings": [setting.as_dict() for setting in self.settings]}


PORTFOLIO_FIELDS = (
    "accuracy",
    "balanced_accuracy",
    "held_out_accuracy",
    "interval_holds",
    "coverage",
    "set_size",
    "calibration_error",
    "seconds",
)
"""Fields of the portfolio's rows whose means are reported."""


def summarise_rows(rows: Sequence[GraphRow]) -> GraphSummary:
    """Summarise the rows of a benchmark; there may be none yet."""
    pairs = dict.fromkeys((row.graph, row.per_class) for row in rows if row.method != BASIS)
    settings = [
        _setting([row for row in rows if (row.graph, row.per_class) == pair]) for pair in pairs
    ]
    own = [row for row in rows if row.method == PORTFOLIO and row.accuracy is not None]
    errors = Counter((row.graph, row.method, row.error) for row in rows if row.error)
    return GraphSummary(
        settings=tuple(settings),
        regret=_spread(settings, lambda setting: setting.regret),
        balanced_regret=_spread(settings, lambda setting: setting.balanced_regret),
        reference_regret=_spread(settings, lambda setting: setting.reference_regret),
        differences=_differences(rows, pairs),
        means={
            name: _by_per_class([(row.per_class, float(getattr(row, name))) for row in own])
            for name in PORTFOLIO_FIELDS
            if own
        },
        basis_seconds={
            row.graph: row.seconds
            for row in rows
            if row.method == BASIS and row.seconds is not None
        },
        errors=tuple((*error, number) for error, number in errors.items()),
    )


def _setting(rows: Sequence[GraphRow]) -> GraphSetting:
    present = [row for row in rows if row.accuracy is not None]

    def means(name: str) -> dict[str, float]:
        methods = dict.fromkeys(row.method for row in present)
        return {
            method: statistics.fmean(getattr(row, name) for row in present if row.method == method)
            for method in methods
        }

    return GraphSetting(
        graph=rows[0].graph,
        n=rows[0].n,
        per_class=rows[0].per_class,
        draws=len({row.seed for row in present}),
        accuracy=means("accuracy"),
        balanced_accuracy=means("balanced_accuracy"),
        seconds=means("seconds"),
    )


def _differences(rows: Sequence[GraphRow], pairs: Iterable[tuple[str, int]]) -> dict[str, float]:
    """Mean lead of the portfolio over each reference: over draws, then over settings."""
    accuracy = {row.key: row.accuracy for row in rows if row.accuracy is not None}
    result = {}
    for method in REFERENCES:
        leads = []
        for graph, k in pairs:
            seeds = [key[2] for key in accuracy if key[:2] == (graph, k) and key[3] == PORTFOLIO]
            common = [seed for seed in seeds if (graph, k, seed, method) in accuracy]
            if common:
                leads.append(
                    statistics.fmean(
                        accuracy[graph, k, seed, PORTFOLIO] - accuracy[graph, k, seed, method]
                        for seed in common
                    )
                )
        if leads:
            result[method] = statistics.fmean(leads)
    return result


def _best(values: dict[str, float], methods: Iterable[str]) -> str | None:
    present = [method for method in methods if method in values]
    return max(present, key=values.__getitem__) if present else None


def _less(values: dict[str, float], high: str | None, low: str | None) -> float | None:
    if high is None or low is None or high not in values or low not in values:
        return None
    return values[high] - values[low]


def _spread(
    settings: Sequence[GraphSetting], value: Callable[[GraphSetting], float | None]
) -> Spread | None:
    pairs = [(s.per_class, number) for s in settings if (number := value(s)) is not None]
    if not pairs:
        return None
    values = [number for _, number in pairs]
    means = _by_per_class(pairs)
    means.pop(ALL)
    return Spread(statistics.fmean(values), statistics.median(values), max(values), means)


def _by_per_class(pairs: Sequence[tuple[int, float]]) -> dict[str, float]:
    """Mean over all pairs, and over those of each number of labels per class."""
    result = {ALL: statistics.fmean(value for _, value in pairs)}
    for k in sorted({k for k, _ in pairs}):
        result[str(k)] = statistics.fmean(value for number, value in pairs if number == k)
    return result
