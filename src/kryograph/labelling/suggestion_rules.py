"""Rules that order unlabelled nodes by how much their labels would help.

A rule sees a `Situation` and returns nodes, the most useful one first. No rule sees a label that
is not known. φ_i are the rows of `REPRESENTATION` (Krylov neighbourhoods) at unit length, u_i is
one minus the lead of the most probable class of node i.

* random: nodes drawn uniformly.
* uncertainty: the largest u_i.
* coverage: nodes that stand for many others that no label stands for yet. The value of a set A of
  labelled nodes is Σ_j max_{i∈A} ⟨φ_i, φ_j⟩ over all nodes j; nodes are added greedily.
* doubtful-coverage: the same with the weight u_j of each node j.
* hedged-coverage: doubtful coverage, but one node in `HEDGE` is drawn uniformly.
* error-reduction: nodes that lower Σ_j u_j var_j most, where var_j are the variances of the
  predictions of a ridge regression on φ. They have a closed form without the missing labels.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from kryograph.basis import Basis, unit_rows
from kryograph.errors import check_known
from kryograph.graph import UNKNOWN, Indices
from kryograph.systems.base import Probabilities

REPRESENTATION = "hops"
"""Rows of the basis in which nodes are compared."""

MOST_COMPARED = 1000
"""Largest number of nodes that are tried, and of nodes that they stand for; more are sampled."""

RIDGE_DIRECTIONS = 64
"""Number of directions of the rows that the ridge regression of error reduction sees."""

RIDGE = 0.1
"""Penalty of this regression; its rows have unit length."""

HEDGE = 5
"""One in so many nodes is drawn uniformly by hedged coverage."""

RANDOM, DEFAULT_RULE = "random", "doubtful-coverage"

_Array = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Situation:
    """The facts that a rule may use.

    Args:
        basis: Basis of the graph.
        labels: N class numbers, `UNKNOWN` for unlabelled nodes.
        probabilities: Class probabilities of all nodes, N × C.
        nodes: Numbers of the unlabelled nodes that may be suggested.
    """

    basis: Basis
    labels: Indices
    probabilities: Probabilities
    nodes: Indices

    @cached_property
    def doubt(self) -> npt.NDArray[np.float64]:
        """One minus the lead of the most probable class, N."""
        if self.probabilities.shape[1] < 2:
            return np.zeros(len(self.labels))
        top = np.partition(self.probabilities, -2, axis=1)
        return np.asarray(1 - (top[:, -1] - top[:, -2]))

    def rows(self, nodes: Indices) -> _Array:
        """Rows of some nodes at unit length."""
        chosen = self.basis.rows(REPRESENTATION)[nodes]
        return unit_rows(np.asarray(chosen, dtype=np.float32))

    @property
    def labelled(self) -> Indices:
        """Numbers of the labelled nodes."""
        return np.flatnonzero(self.labels != UNKNOWN)


Rule = Callable[[Situation, int, np.random.Generator], Indices]
"""Returns at most the requested number of `Situation.nodes`, the most useful one first."""


def choose_nodes(
    basis: Basis,
    labels: Indices,
    probabilities: Probabilities,
    count: int,
    *,
    among: Indices | None = None,
    rule: str = DEFAULT_RULE,
    seed: int = 0,
) -> Indices:
    """Choose unlabelled nodes by a rule, the most useful one first.

    Only random labels may fall on a node without neighbours while there are others: what it
    teaches reaches no other node by an edge.

    Args:
        basis: Basis of the graph.
        labels: N class numbers, `UNKNOWN` for unlabelled nodes.
        probabilities: Class probabilities of all nodes, N × C.
        count: Largest number of nodes.
        among: Numbers of the nodes that may be chosen; None for all. Labelled ones are left out.
        rule: A key of `SUGGESTION_RULES`.
        seed: Determines random nodes and samples.
    """
    check_known("rule", rule, SUGGESTION_RULES)
    rng = np.random.default_rng(seed)
    nodes = np.flatnonzero(labels == UNKNOWN)
    if among is not None:
        nodes = np.intersect1d(nodes, among)
    if rule == RANDOM:
        return _by_chance(Situation(basis, labels, probabilities, nodes), count, rng)
    joined = np.diff(basis.graph.adjacency.indptr)[nodes] > 0
    chosen = np.array([], dtype=np.int64)
    for part in (nodes[joined], nodes[~joined]):
        if part.size and chosen.size < count:
            known = labels.copy()
            known[chosen] = 0  # which class it is makes no difference to a rule
            situation = Situation(basis, known, probabilities, part)
            chosen = np.concatenate(
                [chosen, SUGGESTION_RULES[rule](situation, count - chosen.size, rng)]
            )
    return chosen


def _by_chance(situation: Situation, count: int, rng: np.random.Generator) -> Indices:
    """Draw nodes uniformly, whatever is known of them."""
    return rng.permutation(situation.nodes)[:count]


def _by_doubt(situation: Situation, count: int, rng: np.random.Generator) -> Indices:
    """Take the nodes with the smallest lead of the most probable class."""
    order = np.argsort(-situation.doubt[situation.nodes], kind="stable")
    return situation.nodes[order[:count]]


def _by_coverage(situation: Situation, count: int, rng: np.random.Generator) -> Indices:
    """Take nodes that stand for many others."""
    return _cover(situation, count, rng, np.ones(len(situation.labels)))


def _by_doubtful_coverage(situation: Situation, count: int, rng: np.random.Generator) -> Indices:
    """Take nodes that stand for many doubtful ones."""
    return _cover(situation, count, rng, situation.doubt)


def _by_hedged_coverage(situation: Situation, count: int, rng: np.random.Generator) -> Indices:
    """Take nodes that stand for many doubtful ones, and some at random."""
    drawn = rng.random(min(count, situation.nodes.size)) < 1 / HEDGE
    chance = _by_chance(situation, int(drawn.sum()), rng)
    others = replace(situation, nodes=np.setdiff1d(situation.nodes, chance))
    chosen = np.empty(drawn.size, dtype=np.int64)
    chosen[drawn] = chance
    chosen[~drawn] = _by_doubtful_coverage(others, int((~drawn).sum()), rng)
    return chosen


def _cover(
    situation: Situation, count: int, rng: np.random.Generator, weights: npt.NDArray[np.float64]
) -> Indices:
    tried = _sample(situation.nodes, rng, max(MOST_COMPARED, count))
    targets = _sample(np.arange(len(situation.labels)), rng, MOST_COMPARED)
    rows = situation.rows(targets)
    near = np.zeros(targets.size, dtype=np.float32)
    if situation.labelled.size:
        near = np.maximum(near, (rows @ situation.rows(situation.labelled).T).max(axis=1))
    likeness = situation.rows(tried) @ rows.T
    return tried[greedy_cover(likeness, near, weights[targets].astype(np.float32), count)]


def greedy_cover(likeness: _Array, near: _Array, weights: _Array, count: int) -> Indices:
    """Choose rows of a matrix one by one, so that the weighted sum of column maxima grows most.

    Gains only shrink while rows are added, so that a row whose old gain is too small need not be
    computed again (lazy greedy).

    Args:
        likeness: How well each candidate (row) stands for each target (column).
        near: How well the known labels stand for each target.
        weights: Weights of the targets.
        count: Largest number of rows to choose.

    >>> likeness = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1]], dtype=np.float32)
    >>> greedy_cover(likeness, np.zeros(3, np.float32), np.ones(3, np.float32), 2).tolist()
    [0, 2]
    """

    def gain(row: int) -> float:
        return float(np.maximum(likeness[row] - near, 0) @ weights)

    heap = [(-gain(row), row) for row in range(len(likeness))]
    heapq.heapify(heap)
    chosen: list[int] = []
    while heap and len(chosen) < count:
        row = heap[0][1]
        entry = (-gain(row), row)
        heapq.heapreplace(heap, entry)
        if heap[0] == entry:
            heapq.heappop(heap)
            chosen.append(row)
            near = np.maximum(near, likeness[row])
    return np.array(chosen, dtype=np.int64)


def _by_error_reduction(situation: Situation, count: int, rng: np.random.Generator) -> Indices:
    """Take nodes that lower the variance of the doubtful predictions most."""
    targets = _sample(np.arange(len(situation.labels)), rng, 2 * MOST_COMPARED)
    tried = _sample(situation.nodes, rng, max(2 * MOST_COMPARED, count))
    rows = situation.rows(targets).astype(np.float64)
    _, directions = np.linalg.eigh(rows.T @ rows)
    directions = directions[:, ::-1][:, :RIDGE_DIRECTIONS]
    rows, weights = rows @ directions, situation.doubt[targets]
    spread = (rows * weights[:, None]).T @ rows
    known = situation.rows(situation.labelled) @ directions
    variance = np.linalg.inv(known.T @ known + RIDGE * np.eye(rows.shape[1]))
    candidates = situation.rows(tried) @ directions
    moved = candidates @ variance
    own = np.einsum("ij,ij->i", moved, candidates)
    total = np.einsum("ij,ij->i", moved @ spread, moved)
    chosen: list[int] = []
    for _ in range(min(count, tried.size)):
        benefit = total / (1 + own)
        benefit[chosen] = -1
        best = int(benefit.argmax())
        chosen.append(best)
        v = variance @ candidates[best] / np.sqrt(1 + own[best])  # the variance loses v vᵀ
        along, across = candidates @ v, candidates @ (variance @ (spread @ v))
        total += along**2 * (v @ spread @ v) - 2 * along * across
        own -= along**2
        variance = variance - np.outer(v, v)
    return tried[np.array(chosen, dtype=np.int64)]


def _sample(nodes: Indices, rng: np.random.Generator, most: int) -> Indices:
    """All nodes, or `most` of them drawn at random, in ascending order."""
    return nodes if nodes.size <= most else np.sort(rng.choice(nodes, most, replace=False))


SUGGESTION_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        RANDOM: _by_chance,
        "uncertainty": _by_doubt,
        "coverage": _by_coverage,
        "doubtful-coverage": _by_doubtful_coverage,
        "hedged-coverage": _by_hedged_coverage,
        "error-reduction": _by_error_reduction,
    }
)
"""All rules by name."""
