"""Contributions: log-odds of two classes at one node, divided among hops, nodes and features.

Let phi(k, u, f) be what feature f of node u adds to log p_c - log p_d of node v by walks of k steps
of the operator. A `Contributions` holds four sums of the same phi:

* per hop k, over nodes and features;
* per node u, over hops and features;
* per neighbour of v, over the walks that leave v by this edge; the walks that never leave v are the
  node's own part;
* per feature f, over hops and nodes.

Each of the four and the intercept, which is the log-odds of a node where all features in reach are
zero, add up to the log-odds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from kryograph.graph import Indices

Values = npt.NDArray[np.float64]
"""Numbers in float64: a vector or a matrix."""


@dataclass(frozen=True, eq=False)
class Contributions:
    """Four sums of the contributions to the log-odds of a class against another at a node.

    Args:
        intercept: Log-odds if all features in reach of the node were zero.
        hops: Contributions by number of steps, K + 1.
        nodes: Contributions of the nodes, N.
        neighbours: Contributions by the edge on which walks leave the node, N; zero except for the
            neighbours of the node, and the node's own part at its own index.
        features: Contributions of the features, F.
        structure: Contribution of the edges alone, where a representation has columns that stand
            for nodes or eigenvectors; it is no part of `features`, but of the other three.
        others: Log-odds that members of a pool add and that cannot be divided, by name.
        members: Log-odds that each member of a pool adds, divided or not, by name.
    """

    intercept: float
    hops: Values
    nodes: Values
    neighbours: Values
    features: Values
    structure: float = 0.0
    others: Mapping[str, float] = field(default_factory=dict)
    members: Mapping[str, float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """Log-odds that the intercept, the hops and the indivisible parts add up to."""
        return self.intercept + float(self.hops.sum()) + sum(self.others.values())

    def scaled(self, factor: float) -> Contributions:
        """Multiply every part by a factor."""
        return Contributions(
            self.intercept * factor,
            self.hops * factor,
            self.nodes * factor,
            self.neighbours * factor,
            self.features * factor,
            self.structure * factor,
            {name: value * factor for name, value in self.others.items()},
            {name: value * factor for name, value in self.members.items()},
        )

    def plus_intercept(self, value: float) -> Contributions:
        """Add a constant to the intercept."""
        return replace(self, intercept=self.intercept + value)

    def scaled_to(self, log_odds: float) -> Contributions:
        """Scale every part such that the total is `log_odds`, which a floor of probabilities cut.

        If the total is zero or not finite, `log_odds` becomes the intercept and all else zero.
        """
        if not np.isfinite(self.total) or self.total == 0:
            nothing = replace(self, intercept=0.0).scaled(0.0)
            return nothing.plus_intercept(log_odds)
        return self.scaled(log_odds / self.total)

    @classmethod
    def none(cls, n: int, features: int, intercept: float = 0.0) -> Contributions:
        """Build an intercept without contributions, for N nodes and F features."""
        return cls(intercept, np.zeros(1), np.zeros(n), np.zeros(n), np.zeros(features))


def added(parts: Iterable[Contributions]) -> Contributions:
    """Add contributions to the same log-odds; those with fewer hops are filled up with zeros."""
    parts = list(parts)
    most = max(part.hops.size for part in parts)
    return Contributions(
        intercept=sum(part.intercept for part in parts),
        hops=np.sum([np.pad(part.hops, (0, most - part.hops.size)) for part in parts], axis=0),
        nodes=np.sum([part.nodes for part in parts], axis=0),
        neighbours=np.sum([part.neighbours for part in parts], axis=0),
        features=np.sum([part.features for part in parts], axis=0),
        structure=sum(part.structure for part in parts),
        others=_added_by_name(part.others for part in parts),
        members=_added_by_name(part.members for part in parts),
    )


def _added_by_name(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0.0) + value
    return total


class AdditiveForm(ABC):
    """A fitted system whose log-odds are a sum of contributions; built once for many nodes."""

    @abstractmethod
    def log_probabilities(self, node: int) -> Values:
        """Logarithms of the class probabilities of a node, C, in float64."""

    @abstractmethod
    def contributions(self, node: int, first: int, second: int) -> Contributions:
        """Contributions to log p_first - log p_second of a node; both are class numbers."""

    @abstractmethod
    def similarity(self, node: int, others: Indices) -> Values:
        """Cosines of the hidden representations of a node and of others, from -1 to 1."""


def cosines(row: Values, rows: Values) -> Values:
    """Cosines of a vector (d) and of rows (n × d); 0 where either is zero.

    >>> cosines(np.array([1.0, 0.0]), np.array([[2.0, 0.0], [0.0, 3.0], [0.0, 0.0]]))
    array([1., 0., 0.])
    """
    lengths = np.sqrt((rows * rows).sum(axis=1) * (row @ row))
    result: Values = np.divide(rows @ row, lengths, out=np.zeros(len(rows)), where=lengths > 0)
    return result


def floored(
    parts: Contributions,
    log_probabilities: Values,
    first: int,
    second: int,
    floor: float,
    temperature: float = 1.0,
) -> Contributions:
    """Scale contributions where a probability counts as `floor` because it is smaller.

    Args:
        parts: Contributions to the log-odds of `first` against `second`, divided by the
            temperature.
        log_probabilities: Logarithms of the probabilities before the floor, C.
        first: Number of a class.
        second: Number of another class.
        floor: Smallest probability.
        temperature: What the logarithms are divided by after the floor.
    """
    pair = log_probabilities[[first, second]]
    if (pair >= np.log(floor)).all():
        return parts
    cut = np.maximum(pair, np.log(floor))
    return parts.scaled_to(float(cut[0] - cut[1]) / temperature)
