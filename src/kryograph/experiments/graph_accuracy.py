"""Accuracy of the default pool, of its heads and of reference methods on many graphs.

For each graph, number of labels per class and draw, every method sees the same labels, and all its
predictions are final before a test label is read. Heads share one `Basis` for a graph: the time to
compute it is in the row "basis", not in the rows of the heads. The portfolio and the references
that are not heads compute all that they need themselves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from kryograph.basis import REPRESENTATIONS, Basis
from kryograph.data import DATASETS, Dataset, load, rest_split
from kryograph.engine.machine import measure_rates
from kryograph.errors import KryographError, UsageError
from kryograph.experiments.graph_rows import (
    BASIS,
    PORTFOLIO,
    GraphRow,
    append_row,
    read_rows,
)
from kryograph.graph import Split, Task
from kryograph.labelling import label_nodes
from kryograph.runs.perform import final_scores, true_classes
from kryograph.systems import System
from kryograph.systems.base import Probabilities, member_systems
from kryograph.systems.head import HeadSystem
from kryograph.systems.pool import HEADS
from kryograph.systems.pool_members import NETWORK_EPOCHS
from kryograph.training.loop import Conditions
from kryograph.training.stopping import exactly

REFERENCES = (
    "diffused-logistic:representation=features,penalty=1",
    "diffused-logistic:representation=hops",
    "trees",
    "lp",
    "correct-and-smooth",
    "linear-gnn",
    "gcn",
)
"""Methods that the portfolio is compared with; the first three are heads, too."""

GRAPH_METHODS = tuple(dict.fromkeys((PORTFOLIO, *HEADS, *REFERENCES)))
"""All methods, in the order in which they are tried."""

DEFAULT_BUDGET = 300.0
"""Seconds of processor time that one method may take for one draw, by prediction."""


OnRow = Callable[[GraphRow, int], None]
"""Receives a new row, and the number of rows that are there."""


@dataclass(frozen=True)
class GraphBenchmark:
    """Graphs, draws and methods of a benchmark.

    Args:
        graphs: Path, or name of a data set, of each graph by its name.
        per_class: Numbers of labels of each class.
        draws: Number of draws; their seeds are 0, 1, …
        methods: Names of methods, see `GraphRow.method`.
        budget: Seconds of processor time that one method may take for one draw. A method is not
            tried if it is predicted to take more, or took more on an earlier draw of the graph.
    """

    graphs: Mapping[str, str]
    per_class: tuple[int, ...] = (3, 10, 20)
    draws: int = 3
    methods: tuple[str, ...] = GRAPH_METHODS
    budget: float = DEFAULT_BUDGET

    def __post_init__(self) -> None:
        smallest = min((*self.per_class, self.draws), default=1)
        if smallest < 1:
            raise UsageError(f"--per-class and --draws must be at least 1; got {smallest}.")
        for method in self.methods:
            method_system(method)

    @property
    def count(self) -> int:
        """Number of rows, without those of the bases."""
        return len(self.graphs) * len(self.per_class) * self.draws * len(self.methods)

    def keys(self, graph: str) -> Iterator[tuple[str, int, int, str]]:
        """Keys of the rows of one graph."""
        for k in self.per_class:
            for seed in range(self.draws):
                for method in self.methods:
                    yield graph, k, seed, method

    def run(
        self,
        out: Path | None = None,
        *,
        retry: bool = False,
        notify: Callable[[str], None] = lambda text: None,
        on_row: OnRow = lambda row, done: None,
    ) -> list[GraphRow]:
        """Evaluate what the file does not hold yet, and return all rows of the benchmark.

        Args:
            out: CSV file. Each new row is added at once.
            retry: Whether rows with an error are evaluated again.
            notify: Receives notes about the reading of a graph.
            on_row: Called after each new row.
        """
        rows = {row.key: row for row in read_rows(out, GraphRow)} if out is not None else {}
        known = {key for key, row in rows.items() if not (retry and row.error)}
        keys_of = {name: list(self.keys(name)) for name in self.graphs}
        done = sum(key in known for keys in keys_of.values() for key in keys)

        def add(row: GraphRow) -> None:
            nonlocal done
            rows[row.key] = row
            if out is not None:
                append_row(out, row)
            if row.method != BASIS:
                done += 1
                on_row(row, done)

        for name, keys in keys_of.items():
            missing = [key for key in keys if key not in known]
            if missing:
                source = self.graphs[name]
                evaluator = GraphEvaluator(
                    replace(load(source, notify=notify), name=name),
                    usual_splits=source in DATASETS,
                    budget=self.budget,
                    rows=rows,
                    add=add,
                )
                for _, k, seed, method in missing:
                    add(evaluator.evaluate(k, seed, method))
        basis = ((name, 0, 0, BASIS) for name in self.graphs)
        selected = [*basis, *(key for keys in keys_of.values() for key in keys)]
        return [rows[key] for key in selected if key in rows]


@dataclass(frozen=True, eq=False)
class GraphEvaluator:
    """Evaluates methods on one graph, whose basis is computed once.

    Args:
        dataset: The graph with all its labels.
        usual_splits: Whether the splits are the usual ones of the data set (1,000 test nodes), as
            in `kryograph train --per-class`, instead of testing on all other nodes.
        budget: See `GraphBenchmark`.
        rows: Rows that are there, by key.
        add: Receives the row of the basis.
    """

    dataset: Dataset
    usual_splits: bool = False
    budget: float = DEFAULT_BUDGET
    rows: Mapping[Any, GraphRow] = field(default_factory=dict)
    add: Callable[[GraphRow], None] = lambda row: None

    def split(self, per_class: int, seed: int) -> Split:
        """The split of a draw; it depends on the graph's name, `per_class` and `seed` only."""
        if self.usual_splits:
            return self.dataset.split(per_class, seed=seed)
        labels = true_classes(self.dataset)
        return rest_split(labels, per_class, name=self.dataset.name, seed=seed)

    @cached_property
    def basis(self) -> Basis:
        """The basis of the graph, with all representations that the default heads need."""
        start = time.process_time()
        basis = Basis(self.dataset.graph)
        for head in _heads():
            if head.representation in REPRESENTATIONS and head.exists(basis):
                basis.rows(head.representation)
        seconds = time.process_time() - start
        self.add(GraphRow(self.dataset.name, basis.graph.n, 0, 0, "", BASIS, seconds=seconds))
        return basis

    def evaluate(self, per_class: int, seed: int, method: str) -> GraphRow:
        """Label the graph by one method from the labels of one draw, and score the test nodes."""
        split = self.split(per_class, seed)
        self._check_same(per_class, seed, split)
        n, name = self.dataset.graph.n, self.dataset.name
        row = GraphRow(name, n, per_class, seed, split.digest, method)
        task = self.dataset.task(split, validation=False)
        system = method_system(method)
        try:
            if isinstance(system, HeadSystem):
                _ = self.basis  # its time is not that of the head
            self._check_budget(method, system, task)
        except Exception as error:
            return replace(row, error=_reason(error))
        start = time.process_time()
        try:
            if system is None:
                return self._portfolio(row, task, start)
            probabilities = self._probabilities(system, task, seed)
        except Exception as error:
            return replace(row, seconds=time.process_time() - start, error=_reason(error))
        seconds = time.process_time() - start
        scores = final_scores(probabilities, self.dataset, split)
        return replace(row, seconds=seconds, **vars(scores))

    def _portfolio(self, row: GraphRow, task: Task, start: float) -> GraphRow:
        labelled = label_nodes(task.graph, task.labels, task.classes, seed=row.seed, suggestions=1)
        seconds = time.process_time() - start
        share, low, high = labelled.accuracy
        scores = final_scores(labelled.probabilities, self.dataset, task.split, labelled.sets)
        return replace(
            row,
            held_out_accuracy=float(share),
            held_out_low=low,
            held_out_high=high,
            interval_holds=bool(low <= scores.accuracy <= high),
            seconds=seconds,
            **vars(scores),
        )

    def _probabilities(self, system: System, task: Task, seed: int) -> Probabilities:
        if not isinstance(system, HeadSystem):
            conditions = Conditions(exactly(NETWORK_EPOCHS))
            return system.fit(task, seed=seed, conditions=conditions).predict_proba()
        if not system.exists(self.basis):
            raise KryographError(f"This graph has no {system.representation!r}.")
        nodes, classes = task.split.train, len(task.classes)
        weights = system.learn(self.basis, nodes, task.labels[nodes], classes, seed)
        return system.score(self.basis, weights, classes)

    def _check_budget(self, method: str, system: System | None, task: Task) -> None:
        """Raise an error if a method would take too long."""
        taken = [row.seconds for row in self.rows.values() if self._same(row, method)]
        longest = max((seconds for seconds in taken if seconds is not None), default=0.0)
        if longest > self.budget:
            raise KryographError(
                f"It took {longest:,.0f} s on another draw; the budget is {self.budget:,.0f} s."
            )
        conditions = Conditions(exactly(NETWORK_EPOCHS))
        estimate = system.estimate(task, conditions) if system is not None else None
        seconds = estimate.seconds(measure_rates()) if estimate is not None else 0.0
        if seconds > self.budget:
            raise KryographError(
                f"It would take about {seconds:,.0f} s; the budget is {self.budget:,.0f} s."
            )

    def _same(self, row: GraphRow, method: str) -> bool:
        return row.graph == self.dataset.name and row.method == method

    def _check_same(self, per_class: int, seed: int, split: Split) -> None:
        """Raise an error if rows that are there come from another graph of the same name."""
        name = self.dataset.name
        for method in GRAPH_METHODS:
            row = self.rows.get((name, per_class, seed, method))
            if row is not None and row.split_digest != split.digest:
                raise UsageError(
                    f"The rows of {name!r} were measured on another graph or split: write to "
                    "another file with --out."
                )


def find_graphs(places: Sequence[str]) -> dict[str, str]:
    """Path or name of each graph by its name.

    Args:
        places: Folders with `.npz` files, paths of graphs, or names of data sets.
    """
    graphs: dict[str, str] = {}
    for place in places:
        path = Path(place)
        files = sorted(path.glob("*.npz")) if place not in DATASETS and path.is_dir() else []
        named = {file.stem: str(file) for file in files}
        if not named:
            named = {place if place in DATASETS else path.stem: place}
        twice = sorted(named.keys() & graphs.keys())
        if twice:
            raise UsageError(f"Two graphs are called {twice[0]!r}: rename one of them.")
        graphs |= named
    if not graphs:
        raise UsageError("Name a folder of .npz files, or data sets, with --data.")
    return graphs


def method_system(method: str) -> System | None:
    """The system of a method; None for the portfolio."""
    if method == PORTFOLIO:
        return None
    systems = member_systems(method, "sym")
    if len(systems) != 1:
        raise UsageError(f"{method!r} is several methods: give each one its own --method.")
    return systems[0]


def _heads() -> list[HeadSystem[Any]]:
    systems = member_systems(" + ".join(HEADS), "sym")
    return [system for system in systems if isinstance(system, HeadSystem)]


def _reason(error: Exception) -> str:
    """Message of an error on one line; its type is named if it is not kryograph's own."""
    message = " ".join(str(error).split())
    kind = "" if isinstance(error, KryographError) and message else f"{type(error).__name__}: "
    return (kind + message)[:300]
