"""Dataset: a graph with all its labels, from which tasks are made.

All labels of a graph are kept here and in no other object. A `Task` holds only the labels that
training may see, and only `kryograph.runs.perform` compares predictions with the test labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kryograph.data.splits import PUBLIC, random_split
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Features, Graph, Indices, Split, Task, checked_labels


@dataclass(frozen=True, eq=False)
class PublishedGraph:
    """Contents of the published files of a data set, before edges or features are changed."""

    features: Features
    """N × F, as published."""
    labels: Indices
    """N class numbers, `UNKNOWN` where the files give no class."""
    edges: Indices
    """2 × E node numbers as listed: one way or both, with repetitions and self-loops."""
    splits: tuple[Split, ...] = ()
    """Published splits; the first one is the public split of seed 0."""
    classes: tuple[str, ...] = ()
    """Names of the classes; () if the files do not name them."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """A named graph with the labels of all nodes.

    >>> from kryograph.data.synthetic import synthetic_citations
    >>> data = synthetic_citations(n=2000, classes=3, seed=1)
    >>> data.task(data.split("1%", seed=0)).split
    Split('1% seed 0', 21 / 500 / 1,000)
    """

    name: str
    """Name of its source, by which `load` finds it again."""
    graph: Graph
    labels: Indices
    """N class numbers, `UNKNOWN` where the class is not known."""
    classes: tuple[str, ...]
    origin: str
    """Where the data came from, such as "cache /home/ann/.cache/kryograph"."""
    public: Split | None = None
    more_public: tuple[Split, ...] = ()
    """Further published splits, if there are several; seed k has the k-th one."""

    def __post_init__(self) -> None:
        labels = checked_labels(self.labels, self.graph.n, len(self.classes))
        object.__setattr__(self, "labels", labels)

    def split(self, how: str | int = PUBLIC, *, seed: int = 0) -> Split:
        """Return the public split, or draw a random one.

        Args:
            how: "public"; a label rate such as "1%"; or a number of training nodes of each class.
            seed: Seed of a random split. If several splits are published, seed k has the k-th one,
                counted from 0 and starting again after the last.
        """
        if how != PUBLIC:
            return random_split(self.labels, how, seed=seed)
        if self.public is None:
            raise UsageError(
                f"The data set {self.name!r} has no public split: draw random ones with "
                "--label-rate or --per-class."
            )
        return (self.public, *self.more_public)[seed % (1 + len(self.more_public))]

    def task(
        self, split: Split | str | int = PUBLIC, *, seed: int = 0, validation: bool = True
    ) -> Task:
        """Build the task of a split; without `validation` the validation labels are hidden."""
        chosen = split if isinstance(split, Split) else self.split(split, seed=seed)
        visible = np.full(self.graph.n, UNKNOWN)
        for part in (chosen.train, chosen.validation) if validation else (chosen.train,):
            visible[part] = self.labels[part]
        return Task(graph=self.graph, split=chosen, labels=visible, classes=self.classes)

    def labelled_only(self) -> Dataset:
        """Copy the data set without the nodes that have no class; the others are renumbered."""
        keep = np.flatnonzero(self.labels != UNKNOWN)
        if keep.size == self.graph.n:
            return self
        number = np.full(self.graph.n, UNKNOWN)
        number[keep] = np.arange(keep.size)

        def renumbered(split: Split) -> Split:
            parts = {part: number[getattr(split, part)] for part in ("train", "validation", "test")}
            return replace(split, **parts)

        names = self.graph.names
        graph = replace(
            self.graph,
            adjacency=self.graph.adjacency[keep][:, keep],
            features=self.graph.features[keep],
            names=None if names is None else tuple(names[node] for node in keep),
        )
        return replace(
            self,
            graph=graph,
            labels=self.labels[keep],
            public=None if self.public is None else renumbered(self.public),
            more_public=tuple(renumbered(split) for split in self.more_public),
        )

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {self.graph!r}, {len(self.classes)} classes)"
