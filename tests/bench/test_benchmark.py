from __future__ import annotations

from collections.abc import Callable

import pytest

from kryograph.bench import benchmark as timing
from kryograph.bench.benchmark import MOST, interleaved, seconds


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


def test_the_first_run_does_not_count_and_the_median_does(clock: Clock) -> None:
    work = clock.work("a", 100.0, 1.0, 50.0, 2.0)
    assert seconds(work, budget=0) == 2.0
    assert len(clock.calls) == 1 + 3


def test_as_many_as_asked_for_however_long_they_take(clock: Clock) -> None:
    seconds(clock.work("a", 10.0), at_least=5, budget=1.0)
    assert len(clock.calls) == 1 + 5


def test_it_goes_on_until_the_budget_is_spent(clock: Clock) -> None:
    seconds(clock.work("a", 100.0, 0.125), budget=1.0)
    assert len(clock.calls) == 1 + 8


def test_it_ends_somewhere(clock: Clock) -> None:
    seconds(clock.work("a", 0.0), budget=1.0)
    assert len(clock.calls) == 1 + MOST


def test_each_has_its_turn_in_every_round(clock: Clock) -> None:
    durations = {"a": 1.0, "b": 2.0, "c": 4.0}
    works = {name: clock.work(name, time) for name, time in durations.items()}
    assert interleaved(works, at_least=10, budget=0) == durations
    rounds = [clock.calls[i : i + 3] for i in range(0, len(clock.calls), 3)]
    assert len(rounds) == 1 + 10
    assert all(sorted(turn) == ["a", "b", "c"] for turn in rounds)
    assert len({tuple(turn) for turn in rounds}) > 1


def test_the_budget_is_for_all_together(clock: Clock) -> None:
    interleaved({name: clock.work(name, 0.25) for name in "ab"}, at_least=1, budget=2.0)
    assert len(clock.calls) == 2 * (1 + 4)


def test_no_repetition_has_no_median() -> None:
    with pytest.raises(ValueError, match="at_least must be 1 or more, not 0"):
        seconds(lambda: None, at_least=0)


def test_the_real_clock_moves() -> None:
    assert seconds(lambda: sum(range(100_000)), budget=0) > 0
