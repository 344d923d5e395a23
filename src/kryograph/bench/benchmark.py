"""Record of a benchmark with the columns of its tables, and timing of functions that take turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median
from time import perf_counter
from typing import Any, TypeAlias

from kryograph.engine.machine import describe

MOST_ROUNDS = 50
"""Largest number of rounds; more of them hardly change a median."""


@dataclass(frozen=True)
class ColumnFormat:
    """One column of a printed table; a value that is None or missing is written as a dash."""

    heading: str
    key: str  # of the value in each row of the result
    text: Callable[[Any], str] = str  # how a value is written

    def cell(self, row: Mapping[str, Any]) -> str:
        """Text of this column in one row."""
        value = row.get(self.key)
        return "–" if value is None else self.text(value)


OnCase: TypeAlias = Callable[[str], None]
"""Callback of a benchmark; it receives a line of text before each case."""

Measure: TypeAlias = Callable[..., dict[str, Any]]
"""Function `measure(*, quick, on_case)` that returns what `--json` prints.

With `quick` it measures a subset, in less than a minute.
"""


@dataclass(frozen=True)
class Benchmark:
    """A measurement that `kryograph bench` offers as a command.

    `columns` has the columns of each printed table by the key of the result that holds its rows: a
    list of rows, or a mapping whose keys become the value "name" of each row. The key "" stands for
    the result itself, as the only row.
    """

    columns: Mapping[str, Sequence[ColumnFormat]]
    measure: Measure

    def run(self, *, quick: bool, on_case: OnCase) -> dict[str, Any]:
        """Measure, and add the description of the machine to the result."""
        return {**self.measure(quick=quick, on_case=on_case), "machine": describe()}

    def tables(self, result: Mapping[str, Any]) -> Iterator[tuple[list[str], list[list[str]]]]:
        """Headings and rows of each table, as text."""
        for key, columns in self.columns.items():
            rows = result[key] if key else [result]
            if isinstance(rows, Mapping):
                rows = [{"name": name, **values} for name, values in rows.items()]
            headings = [column.heading for column in columns]
            yield headings, [[column.cell(row) for column in columns] for row in rows]


BENCHMARKS: dict[str, Benchmark] = {}
"""Benchmarks whose modules have been imported, by the name of the module."""


def benchmark(columns: Mapping[str, Sequence[ColumnFormat]]) -> Callable[[Measure], Measure]:
    """Register the marked function as the benchmark of its module; see `Benchmark.columns`."""

    def register(measure: Measure) -> Measure:
        BENCHMARKS[measure.__module__.rpartition(".")[2]] = Benchmark(columns, measure)
        return measure

    return register


def seconds(work: Callable[[], object], *, at_least: int = 3, budget: float = 1.0) -> float:
    """Median duration of `work` in seconds; see `interleaved`."""
    return interleaved({"work": work}, at_least=at_least, budget=budget)["work"]


def interleaved(
    works: Mapping[str, Callable[[], object]], *, at_least: int = 3, budget: float = 1.0
) -> dict[str, float]:
    """Median duration of each function in seconds, measured in rounds in which all take turns.

    Another program that keeps the machine busy for a while therefore disturbs all of them alike.
    Each round has its own order, so that no function always runs after the one that fills the cache
    for it. A first round is not counted, at least `at_least` are, and none starts after `budget`
    seconds.
    """
    if at_least < 1:
        raise ValueError(f"at_least must be 1 or more, not {at_least}")
    for work in works.values():
        work()
    durations: dict[str, list[float]] = {name: [] for name in works}
    orders = Random(0)
    begin = perf_counter()
    for done in range(max(MOST_ROUNDS, at_least)):
        if done >= at_least and perf_counter() - begin >= budget:
            break
        for name in orders.sample(list(works), len(works)):
            start = perf_counter()
            works[name]()
            durations[name].append(perf_counter() - start)
    return {name: median(times) for name, times in durations.items()}
