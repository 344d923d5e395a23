"""`kryograph.bench` and `kryograph.bench.benchmark`: records and timing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kryograph.bench import benchmark as timing
from kryograph.bench import benchmark_summaries, load_benchmark
from kryograph.bench.benchmark import (
    MOST_ROUNDS,
    Benchmark,
    ColumnFormat,
    interleaved,
    seconds,
)

NAMES = [
    *("apply", "baselines", "blocks", "contention", "epoch", "fit", "growth", "label", "million"),
    *("seeds", "spmm", "tables", "updates"),
]


def test_benchmark_summaries_are_the_first_lines_of_the_modules() -> None:
    summaries = benchmark_summaries()
    assert list(summaries) == NAMES
    for name, summary in summaries.items():
        module = sys.modules[load_benchmark(name).measure.__module__]
        assert (module.__doc__ or "").splitlines()[0] == summary
        assert summary.endswith(".")


def test_benchmark_summaries_import_no_benchmark() -> None:
    program = (
        "import sys; from kryograph.bench import benchmark_summaries; benchmark_summaries();"
        "sys.exit(not {'torch', 'numpy', 'scipy', 'matplotlib'}.isdisjoint(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_new_file_is_a_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sleep.py").write_text(
        '"""Sleeping.\n\nNothing else."""\n\n'
        "from kryograph.bench.benchmark import ColumnFormat, benchmark\n\n\n"
        '@benchmark({"": (ColumnFormat("s", "seconds"),)})\n'
        "def measure_sleep(*, quick, on_case):\n"
        '    return {"seconds": 1 if quick else 8}\n'
    )
    monkeypatch.setattr("kryograph.bench.__path__", [*timing_path(), str(tmp_path)])
    monkeypatch.setattr(timing, "BENCHMARKS", timing.BENCHMARKS.copy())
    monkeypatch.delitem(sys.modules, "kryograph.bench.sleep", raising=False)
    assert benchmark_summaries()["sleep"] == "Sleeping."
    record = load_benchmark("sleep")
    result = record.run(quick=True, on_case=print)
    assert result["seconds"] == 1
    assert "torch" in result["machine"]
    assert list(record.tables(result)) == [(["s"], [["1"]])]


def timing_path() -> list[str]:
    return [str(Path(timing.__file__).parent)]


def test_tables_are_made_of_lists_of_mappings_and_of_the_result_itself() -> None:
    columns = {
        "rows": (ColumnFormat("time", "seconds", "{:.2f}".format), ColumnFormat("way", "way")),
        "means": (ColumnFormat("mean", "name"), ColumnFormat("x", "x", "{:.1f}×".format)),
        "": (ColumnFormat("nodes", "nodes", "{:,}".format),),
    }
    record = Benchmark(columns, measure=dict)
    result = {
        "rows": [{"seconds": 0.125, "way": "ours"}, {"seconds": None}],
        "means": {"gcn": {"x": 2.0}},
        "nodes": 1000,
    }
    assert list(record.tables(result)) == [
        (["time", "way"], [["0.12", "ours"], ["–", "–"]]),
        (["mean", "x"], [["gcn", "2.0×"]]),
        (["nodes"], [["1,000"]]),
    ]


class Clock:
    """A clock that stands still unless someone works."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[str] = []

    def __call__(self) -> float:
        return self.now

    def work(self, name: str, *durations: float) -> Callable[[], None]:
        """Takes these durations, one after the other, and then the last one for ever."""
        left = list(durations)

        def work() -> None:
            self.calls.append(name)
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return work


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(timing, "perf_counter", clock)
    return clock


def test_seconds_is_the_median_without_the_first_repetition(clock: Clock) -> None:
    work = clock.work("a", 100.0, 1.0, 50.0, 2.0)
    assert seconds(work, budget=0) == 2.0
    assert len(clock.calls) == 1 + 3


def test_seconds_repeats_at_least_as_often_as_requested(clock: Clock) -> None:
    seconds(clock.work("a", 10.0), at_least=5, budget=1.0)
    assert len(clock.calls) == 1 + 5


def test_seconds_repeats_until_the_budget_is_spent(clock: Clock) -> None:
    seconds(clock.work("a", 100.0, 0.125), budget=1.0)
    assert len(clock.calls) == 1 + 8


def test_seconds_stops_after_the_largest_number_of_rounds(clock: Clock) -> None:
    seconds(clock.work("a", 0.0), budget=1.0)
    assert len(clock.calls) == 1 + MOST_ROUNDS


def test_interleaved_gives_each_work_its_turn_in_every_round(clock: Clock) -> None:
    durations = {"a": 1.0, "b": 2.0, "c": 4.0}
    works = {name: clock.work(name, time) for name, time in durations.items()}
    assert interleaved(works, at_least=10, budget=0) == durations
    rounds = [clock.calls[i : i + 3] for i in range(0, len(clock.calls), 3)]
    assert len(rounds) == 1 + 10
    assert all(sorted(turn) == ["a", "b", "c"] for turn in rounds)
    assert len({tuple(turn) for turn in rounds}) > 1


def test_interleaved_spends_the_budget_on_all_works_together(clock: Clock) -> None:
    interleaved({name: clock.work(name, 0.25) for name in "ab"}, at_least=1, budget=2.0)
    assert len(clock.calls) == 2 * (1 + 4)


def test_seconds_refuses_no_repetition() -> None:
    with pytest.raises(ValueError, match="at_least must be 1 or more, not 0"):
        seconds(lambda: None, at_least=0)


def test_seconds_of_the_real_clock_are_positive() -> None:
    assert seconds(lambda: sum(range(100_000)), budget=0) > 0
