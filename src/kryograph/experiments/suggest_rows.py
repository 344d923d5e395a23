"""Rows of the benchmark of suggestions, and what they say: gains over random labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kryograph.labelling.suggestion_rules import RANDOM
from kryograph.stats import student_half_width


@dataclass(frozen=True)
class SuggestRow:
    """Accuracy after labels were added by one rule.

    Args:
        graph: Name of the graph.
        n: Number of nodes.
        seed: Seed of the draw: the test nodes, the first labels, and all that is random later.
        rule: Name of the rule that chose the further labels.
        by: "fit" if the accuracy is that of `fit`, "heads" if that of the heads of the rounds.
        per_class: Number of labels, divided by the number of classes.
        labels: Number of labels.
        split_digest: Digest of labelled and test nodes.
        accuracy: Accuracy on test nodes, which no rule may choose; None after an error.
        balanced_accuracy: Mean over the classes of the share of their test nodes that are right.
        seconds: Processor time of the fit.
        error: Why there is no result; "" if there is one.
    """

    graph: str
    n: int
    seed: int
    rule: str
    by: str
    per_class: int
    labels: int
    split_digest: str
    accuracy: float | None = None
    balanced_accuracy: float | None = None
    seconds: float | None = None
    error: str = ""

    @property
    def key(self) -> tuple[str, int, str, str, int]:
        """Graph, seed, rule, who predicts, and number of labels per class."""
        return self.graph, self.seed, self.rule, self.by, self.per_class


@dataclass(frozen=True)
class Gain:
    """Points by which a rule is ahead of random labels on one graph, or on all of them.

    Args:
        graph: Name of the graph; "" for all graphs, each of which counts alike.
        rule: Name of the rule.
        per_class: Mean gain in points by the number of labels per class.
        mean: Mean of `per_class`.
        half: Half of its 95 % interval over the draws (over the graphs for all); None for one.
        count: Number of draws, or of graphs.
        random: Mean accuracy with random labels, between 0 and 1.
    """

    graph: str
    rule: str
    per_class: dict[int, float]
    mean: float
    half: float | None
    count: int
    random: float


def gains(rows: Iterable[SuggestRow]) -> list[Gain]:
    """Compare each rule with random labels, draw by draw; incomplete draws are left out.

    The rows must be predicted alike (`SuggestRow.by`).
    """
    accuracy: dict[tuple[str, str], dict[int, dict[int, float]]] = {}
    for row in rows:
        if row.accuracy is not None:
            draws = accuracy.setdefault((row.rule, row.graph), {})
            draws.setdefault(row.seed, {})[row.per_class] = row.accuracy
    numbers = sorted({k for draws in accuracy.values() for one in draws.values() for k in one})
    results = []
    for rule in dict.fromkeys(rule for rule, _ in accuracy if rule != RANDOM):
        own = []
        for graph in dict.fromkeys(graph for name, graph in accuracy if name == rule):
            chosen, chance = accuracy[rule, graph], accuracy.get((RANDOM, graph), {})
            pairs = [(chosen[seed], chance[seed]) for seed in chosen if seed in chance]
            pairs = [(a, b) for a, b in pairs if len(a) == len(b) == len(numbers)]
            if pairs:
                table = [[100 * (a[k] - b[k]) for k in numbers] for a, b in pairs]
                base = [b[k] for _, b in pairs for k in numbers]
                own.append(_gain(graph, rule, numbers, table, base))
        results += own
        if len(own) > 1:
            table = [[gain.per_class[k] for k in numbers] for gain in own]
            results.append(_gain("", rule, numbers, table, [gain.random for gain in own]))
    return results


def _gain(
    graph: str, rule: str, numbers: list[int], table: list[list[float]], base: list[float]
) -> Gain:
    """Average a table of gains that has a row for each draw, or for each graph."""
    array = np.array(table)
    means = array.mean(axis=1)
    half = student_half_width(float(means.std(ddof=1)), len(means)) if len(means) > 1 else None
    per_class = dict(zip(numbers, array.mean(axis=0).tolist(), strict=True))
    return Gain(graph, rule, per_class, float(means.mean()), half, len(means), float(np.mean(base)))
