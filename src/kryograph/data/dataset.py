"""Dataset: a graph with all its labels, from which tasks are made.

Labels of every node live here and nowhere below: a `Task` carries only those that training may see,
and `kryograph.runs.perform` alone compares predictions with the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kryograph.data.splits import PUBLIC, random_split
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph, Indices, Split, Task, checked_labels


@dataclass(frozen=True, eq=False)
class Dataset:
    """A named graph, its labels (`UNKNOWN` where nobody knows) and where it came from.

    >>> from kryograph.data.synthetic import synthetic_citations
    >>> data = synthetic_citations(n=2000, classes=3, seed=1)
    >>> data.task(data.split("1%", seed=0)).split
    Split('1% seed 0', 21 / 500 / 1,000)
    """

    name: str
    graph: Graph
    labels: Indices
    classes: tuple[str, ...]
    source: str
    public: Split | None = None

    def __post_init__(self) -> None:
        labels = checked_labels(self.labels, self.graph.n, len(self.classes))
        object.__setattr__(self, "labels", labels)

    def split(self, how: str | int = PUBLIC, *, seed: int = 0) -> Split:
        """The public split, a random one by rate ("1%"), or one with k nodes of each class (20)."""
        if how != PUBLIC:
            return random_split(self.labels, how, seed=seed)
        if self.public is None:
            raise UsageError(
                f"The data set {self.name!r} has no public split; draw one with a label rate."
            )
        return self.public

    def task(
        self, split: Split | str | int = PUBLIC, *, seed: int = 0, validation: bool = True
    ) -> Task:
        """What training may see: the labels of the training nodes, and those of validation."""
        chosen = split if isinstance(split, Split) else self.split(split, seed=seed)
        visible = np.full(self.graph.n, UNKNOWN)
        for part in (chosen.train, chosen.validation) if validation else (chosen.train,):
            visible[part] = self.labels[part]
        return Task(graph=self.graph, split=chosen, labels=visible, classes=self.classes)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {self.graph!r}, {len(self.classes)} classes)"
