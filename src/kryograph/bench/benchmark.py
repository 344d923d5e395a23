"""Timing: the median of repeated runs, with those that are compared taking turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from statistics import median
from time import perf_counter

MOST = 50
"""Repetitions beyond this change a median little."""


def seconds(work: Callable[[], object], *, at_least: int = 3, budget: float = 1.0) -> float:
    """How long `work` takes: the median of repeated runs, after one that does not count.

    Args:
        work: What to time.
        at_least: Repetitions, however long they take.
        budget: Seconds after which no further one starts.
    """
    return interleaved({"work": work}, at_least=at_least, budget=budget)["work"]


def interleaved(
    works: Mapping[str, Callable[[], object]], *, at_least: int = 3, budget: float = 1.0
) -> dict[str, float]:
    """How long each of several works takes, in rounds in which each has its turn.

    So a neighbour who keeps the machine busy for a while disturbs all of them alike. Each round
    has its own order, lest one work always finds in the cache what another has just used.

    Args:
        works: What to time, by name.
        at_least: Rounds, however long they take.
        budget: Seconds, for all works together, after which no further round starts.
    """
    if at_least < 1:
        raise ValueError(f"at_least must be 1 or more, not {at_least}")
    for work in works.values():
        work()
    taken: dict[str, list[float]] = {name: [] for name in works}
    orders = Random(0)
    begin = perf_counter()
    for done in range(max(MOST, at_least)):
        if done >= at_least and perf_counter() - begin >= budget:
            break
        for name in orders.sample(list(works), len(works)):
            start = perf_counter()
            works[name]()
            taken[name].append(perf_counter() - start)
    return {name: median(times) for name, times in taken.items()}
