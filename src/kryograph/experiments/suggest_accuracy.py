"""Accuracy after labels were suggested, against as many random labels, on many graphs.

A draw fixes a third of the labelled nodes for the test, which no rule may choose, and two labels
of each class to begin with. Then labels are added in rounds, one for each class on average: in a
round closed-form heads predict all nodes and the rule chooses among the nodes that are not for
the test. Whenever the number of labels is one of `per_class` times the number of classes,
`label_nodes` labels the graph anew and its predictions are scored. All rules begin with the same
labels and are scored on the same nodes, so that their differences are paired by draw.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.special import softmax

from kryograph.basis import Basis
from kryograph.data import Dataset, load
from kryograph.errors import UsageError, check_known
from kryograph.experiments.graph_rows import append_row, read_rows
from kryograph.experiments.suggest_rows import SuggestRow
from kryograph.features import normalised
from kryograph.graph import UNKNOWN, Indices, Split, Task
from kryograph.labelling import label_nodes
from kryograph.labelling.suggestion_rules import (
    DEFAULT_RULE,
    RANDOM,
    SUGGESTION_RULES,
    choose_nodes,
)
from kryograph.runs.perform import final_scores, true_classes
from kryograph.systems.base import Probabilities, member_systems
from kryograph.systems.head import HeadSystem

TESTED = 3
"""One in so many labelled nodes is for the test."""

FIRST_LABELS = 2
"""Number of labels of each class to begin with."""

ROUND_HEADS = (
    "diffused-logistic:representation=diffused",
    "diffused-logistic:representation=hops",
    "diffused-logistic:representation=contrast,penalty=1",
)
"""Heads whose mean log-probabilities predict in the rounds."""

BY_FIT, BY_HEADS = "fit", "heads"

OnSuggestRow = Callable[[SuggestRow, int], None]
"""Receives a new row, and the number of rows that are there."""


@dataclass(frozen=True)
class SuggestBenchmark:
    """Graphs, draws and rules of a benchmark.

    Args:
        graphs: Path, or name of a data set, of each graph by its name.
        per_class: Numbers of labels per class on average after which accuracy is measured.
        draws: Number of draws.
        first: Seed of the first draw; the others follow.
        rules: Names of the rules; random labels are always among them.
        quick: Whether the heads of the rounds are scored instead of `label_nodes`.
    """

    graphs: Mapping[str, str]
    per_class: tuple[int, ...] = (5, 10, 20)
    draws: int = 5
    first: int = 0
    rules: tuple[str, ...] = (DEFAULT_RULE,)
    quick: bool = False

    def __post_init__(self) -> None:
        if min(self.per_class, default=0) <= FIRST_LABELS:
            raise UsageError(f"--per-class must be more than {FIRST_LABELS}, the first labels.")
        for rule in self.rules:
            check_known("rule", rule, SUGGESTION_RULES)
        object.__setattr__(self, "per_class", tuple(sorted(self.per_class)))
        object.__setattr__(self, "rules", tuple(dict.fromkeys((RANDOM, *self.rules))))

    @property
    def by(self) -> str:
        """Who predicts the test nodes: "fit" or "heads"."""
        return BY_HEADS if self.quick else BY_FIT

    @property
    def count(self) -> int:
        """Number of rows that a complete run has."""
        return len(self.graphs) * self.draws * len(self.rules) * len(self.per_class)

    def run(
        self,
        out: Path | None = None,
        *,
        retry: bool = False,
        notify: Callable[[str], None] = lambda text: None,
        on_row: OnSuggestRow = lambda row, done: None,
    ) -> list[SuggestRow]:
        """Evaluate what the file does not hold yet, and return all rows of the benchmark.

        Args:
            out: CSV file. Each new row is added at once.
            retry: Whether rows with an error are evaluated again.
            notify: Receives notes about the reading of a graph.
            on_row: Called after each new row.
        """
        stored = read_rows(out, SuggestRow, "bench suggest") if out is not None else []
        rows = {row.key: row for row in stored}
        known = {key for key, row in rows.items() if not (retry and row.error)}
        seeds = range(self.first, self.first + self.draws)
        paths = [
            (graph, seed, rule) for graph in self.graphs for seed in seeds for rule in self.rules
        ]
        keys = [(*path, self.by, k) for path in paths for k in self.per_class]
        done = sum(key in known for key in keys)
        evaluator: SuggestEvaluator | None = None
        for graph, seed, rule in paths:
            missing = [k for k in self.per_class if (graph, seed, rule, self.by, k) not in known]
            if not missing:
                continue
            if evaluator is None or evaluator.dataset.name != graph:
                dataset = replace(load(self.graphs[graph], notify=notify), name=graph)
                evaluator = SuggestEvaluator(dataset, self.quick)
            for row in evaluator.evaluate(seed, rule, missing):
                done += 1
                rows[row.key] = row
                if out is not None:
                    append_row(out, row)
                on_row(row, done)
        return [rows[key] for key in keys if key in rows]


@dataclass(frozen=True, eq=False)
class SuggestEvaluator:
    """Evaluates rules on one graph, whose basis is computed once.

    Args:
        dataset: The graph with all its labels.
        quick: See `SuggestBenchmark`.
    """

    dataset: Dataset
    quick: bool = False

    @cached_property
    def basis(self) -> Basis:
        """Basis of the graph, with features as in `label_nodes`."""
        return Basis(normalised(self.dataset.graph)[0])

    def draw(self, seed: int) -> Split:
        """The first labels and the test nodes of a draw; the graph's name has a say."""
        labels = true_classes(self.dataset)
        rng = np.random.default_rng([seed, *self.dataset.name.encode()])
        order = rng.permutation(np.flatnonzero(labels != UNKNOWN))
        test, free = np.split(order, [order.size // TESTED])
        first = [free[labels[free] == c][:FIRST_LABELS] for c in range(len(self.dataset.classes))]
        name = f"{FIRST_LABELS} per class of {self.dataset.name} seed {seed}"
        return Split(name, np.concatenate(first), np.array([], int), test)

    def evaluate(self, seed: int, rule: str, stops: list[int]) -> Iterator[SuggestRow]:
        """Add labels by a rule, and yield a row for each of these numbers of labels per class.

        A graph with too few nodes has all labels but those of the test nodes in the end.
        """
        split = self.draw(seed)
        known = np.flatnonzero(true_classes(self.dataset) != UNKNOWN)
        free = np.setdiff1d(known, split.test)
        classes = len(self.dataset.classes)
        by = BY_HEADS if self.quick else BY_FIT
        for k in range(FIRST_LABELS, max(stops) + 1):
            missing = min(k * classes, free.size) - split.train.size
            if missing > 0:
                split = self._extended(split, free, missing, rule, seed * 1000 + k)
            if k not in stops:
                continue
            size, n = split.train.size, self.dataset.graph.n
            row = SuggestRow(self.dataset.name, n, seed, rule, by, k, size, split.digest)
            start = time.process_time()
            try:
                probabilities = self._final(split, seed)
            except Exception as error:
                yield replace(row, error=f"{type(error).__name__}: {' '.join(str(error).split())}")
                continue
            seconds = time.process_time() - start
            scores = final_scores(probabilities, self.dataset, split)
            yield replace(
                row,
                accuracy=scores.accuracy,
                balanced_accuracy=scores.balanced_accuracy,
                seconds=seconds,
            )

    def _extended(self, split: Split, free: Indices, count: int, rule: str, seed: int) -> Split:
        """Add the nodes that a rule chooses to the training nodes."""
        task = self._task(split)
        nodes = choose_nodes(
            self.basis,
            task.labels,
            heads_probabilities(self.basis, task),
            count,
            among=np.setdiff1d(free, split.train),
            rule=rule,
            seed=seed,
        )
        return replace(split, train=np.concatenate([split.train, nodes]))

    def _final(self, split: Split, seed: int) -> Probabilities:
        task = self._task(split)
        if self.quick:
            return heads_probabilities(self.basis, task)
        graph, labels = task.graph, task.labels
        return label_nodes(graph, labels, task.classes, seed=seed, suggestions=0).probabilities

    def _task(self, split: Split) -> Task:
        return self.dataset.task(split, validation=False)


def heads_probabilities(basis: Basis, task: Task) -> Probabilities:
    """Mean of the log-probabilities of `ROUND_HEADS`, as probabilities N × C."""
    nodes, classes = task.split.train, len(task.classes)
    heads = [h for h in member_systems(" + ".join(ROUND_HEADS), "sym") if isinstance(h, HeadSystem)]
    logs = np.zeros((task.graph.n, classes))
    for head in heads:
        if head.exists(basis):
            weights = head.learn(basis, nodes, task.labels[nodes], classes, 0)
            logs += np.log(np.maximum(head.score(basis, weights, classes), 1e-9)) / len(heads)
    probabilities: Probabilities = softmax(logs, axis=1)
    return probabilities
