"""The data sets by name: what each is, where it was published, and how it is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from kryograph.data.dataset import Dataset
from kryograph.data.planetoid import CORA_CLASSES, planetoid
from kryograph.data.sources import FORMS, Notify, RawFiles, find_files, ignore_note
from kryograph.data.synthetic import synthetic_citations
from kryograph.errors import unknown


@dataclass(frozen=True)
class Options:
    """What the caller of `load` wants."""

    data_dir: str | Path | None = None
    remove_unlabelled: bool = False
    normalise: bool = True
    notify: Notify = ignore_note


Loader: TypeAlias = Callable[[Options], Dataset]


@dataclass(frozen=True)
class Entry:
    """A data set that can be asked for by name."""

    name: str
    summary: str
    citation: str
    loader: Loader


def _planetoid(name: str, classes: tuple[str, ...]) -> Loader:
    def load_files(options: Options) -> Dataset:
        files = find_files([name], data_dir=options.data_dir, notify=options.notify)[name]
        return planetoid(
            files,
            classes,
            remove_unlabelled=options.remove_unlabelled,
            normalise=options.normalise,
        )

    return load_files


def _synthetic(options: Options) -> Dataset:
    return synthetic_citations(normalise=options.normalise)


_YANG = (
    "Yang, Cohen, Salakhutdinov: Revisiting semi-supervised learning with graph embeddings, 2016"
)
_SEN = "Sen et al.: Collective classification in network data, 2008"
_NAMATA = "Namata et al.: Query-driven active surveying for collective classification, 2012"

DATASETS: Mapping[str, Entry] = MappingProxyType(
    {
        entry.name: entry
        for entry in (
            Entry(
                "cora",
                "Cora: 2,708 papers, 5,278 citations, 1,433 words, 7 subjects",
                f"{_SEN}; split: {_YANG}",
                _planetoid("cora", tuple(label.replace("_", " ") for label in CORA_CLASSES)),
            ),
            Entry(
                "citeseer",
                "CiteSeer: 3,327 papers (15 without a subject), 4,552 citations, 3,703 words, "
                "6 subjects",
                f"{_SEN}; split: {_YANG}",
                # Planetoid drops the names, but no two classes of CiteSeer have the same size.
                _planetoid("citeseer", ("AI", "ML", "IR", "DB", "Agents", "HCI")),
            ),
            Entry(
                "pubmed",
                "PubMed: 19,717 papers on diabetes, 44,324 citations, 500 words, 3 kinds",
                f"{_NAMATA}; split: {_YANG}",
                _planetoid("pubmed", ("class 0", "class 1", "class 2")),
            ),
            Entry(
                "synthetic",
                "Synthetic: a random graph of Cora's size and difficulty; needs no files",
                "none: it is drawn by this package",
                _synthetic,
            ),
        )
    }
)
"""Every data set, by name."""


def load(
    name: str,
    *,
    data_dir: str | Path | None = None,
    remove_unlabelled: bool = False,
    normalise: bool = True,
    notify: Notify = ignore_note,
) -> Dataset:
    """Load a data set, fetching its files if need be.

    Args:
        name: A key of `DATASETS`.
        data_dir: A folder that holds the files `ind.*`; nothing is fetched then.
        remove_unlabelled: Take nodes without a class out of the graph (CiteSeer has 15).
        normalise: Divide each node's features by their sum.
        notify: Is told what is being fetched.

    >>> load("synthetic")
    Dataset('synthetic', Graph(2,708 nodes, 5,416 edges, 1,433 sparse features), 7 classes)
    """
    return entry(name).loader(Options(data_dir, remove_unlabelled, normalise, notify))


def fetch(
    names: Iterable[str] = tuple(FORMS),
    *,
    data_dir: str | Path | None = None,
    notify: Notify = ignore_note,
) -> dict[str, RawFiles]:
    """Bring the files of some data sets into the cache, so that later runs need no network.

    Data sets that need no files are passed over.
    """
    known = [entry(name).name for name in names]
    return find_files([name for name in known if name in FORMS], data_dir=data_dir, notify=notify)


def entry(name: str) -> Entry:
    """The data set of that name, or an error with the near misses."""
    if name not in DATASETS:
        raise unknown("data set", name, DATASETS)
    return DATASETS[name]
