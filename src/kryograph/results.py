"""Results: runs of one system under one protocol, and what they come to."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scipy.special import stdtrit

from kryograph.training.protocol import Run


@dataclass(frozen=True)
class Summary:
    """Mean, standard deviation and Student's 95 % interval of the mean, within [0, 1].

    One run has neither of the latter.

    >>> summarise([0.80, 0.82, 0.84]).ci95
    (0.7703..., 0.8696...)
    """

    mean: float
    std: float | None
    ci95: tuple[float | None, float | None]
    n: int


def summarise(values: Sequence[float]) -> Summary:
    """The summary of some scores."""
    n = len(values)
    mean = statistics.fmean(values)
    if n == 1:
        return Summary(mean, None, (None, None), 1)
    std = statistics.stdev(values)
    half = float(stdtrit(n - 1, 0.975)) * std / n**0.5
    return Summary(mean, std, (max(mean - half, 0.0), min(mean + half, 1.0)), n)


@dataclass(frozen=True)
class Result:
    """What was run, and every run of it."""

    system: str
    dataset: str
    split: str
    protocol: str
    stop: str
    operator: str
    settings: dict[str, Any]
    settings_source: str
    device: str
    precision: str
    threads: int
    nodes: int
    """Of the graph; CiteSeer has fewer without its unlabelled ones."""
    runs: tuple[Run, ...]
    paper: float | None = None
    """The accuracy that the paper prints for this system and column."""

    @property
    def test_accuracy(self) -> Summary:
        """The summary of the test scores."""
        return summarise([run.test_accuracy for run in self.runs])

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return dataclasses.asdict(self) | {"test_accuracy": dataclasses.asdict(self.test_accuracy)}
