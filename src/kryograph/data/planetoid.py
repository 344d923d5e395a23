"""Cora, CiteSeer and PubMed in Planetoid's order, from Planetoid's pickles or the raw papers.

Planetoid numbers the papers so that its public split is plain: the training nodes come first (20 of
each class), the next 500 validate, and 1,000 of the last ones test. `x` holds the features of the
training nodes, `allx` of all nodes but the test ones, `tx` of the test nodes in the order of
`test.index`; `y`, `ally`, `ty` are their labels, one column per class; `graph` lists neighbours.

CiteSeer's test index has holes: 15 papers have edges, but neither words nor a class. They stay in
the graph without label and are in no part of any split, unless they are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from kryograph.data.dataset import Dataset
from kryograph.data.sources import Form, RawFiles
from kryograph.data.splits import TEST, VALIDATION
from kryograph.data.tables.feature_blocks import row_normalise
from kryograph.data.unpickle import read_pickle
from kryograph.graph import UNKNOWN, Graph, Indices, Split

TRAIN_PER_CLASS = 20

CORA_CLASSES = (
    "Theory",
    "Reinforcement_Learning",
    "Genetic_Algorithms",
    "Neural_Networks",
    "Probabilistic_Methods",
    "Case_Based",
    "Rule_Learning",
)
"""Cora's classes, in the order of Planetoid's columns, spelled as in `cora.content`."""


@dataclass(frozen=True, eq=False)
class CitationGraph:
    """What the files of a data set say, before anything is done to it."""

    features: sp.csr_array
    labels: Indices
    edges: Indices
    """2 × E, as listed: one way or both, with repetitions and loops."""
    train: Indices
    test: Indices


def read_pickles(folder: Path, name: str) -> CitationGraph:
    """Read the eight files `ind.{name}.*`."""

    def path(part: str) -> Path:
        return folder / f"ind.{name}.{part}"

    test = np.loadtxt(path("test.index"), dtype=np.int64)
    graph = read_pickle(path("graph"), dict)
    train = read_pickle(path("y"), np.ndarray).shape[0]
    known = sp.coo_array(
        sp.vstack([read_pickle(path(part), sp.csr_matrix) for part in ("allx", "tx")])
    )
    marks = np.concatenate([read_pickle(path(part), np.ndarray) for part in ("ally", "ty")])

    # Row i of the stacked matrices belongs to node[i]; nodes that no row belongs to stay empty.
    node = np.concatenate([np.arange(known.shape[0] - test.size), test])
    n = int(node.max()) + 1
    labels = np.full(n, UNKNOWN)
    labels[node] = np.where(marks.any(axis=1), marks.argmax(axis=1), UNKNOWN)
    features = sp.csr_array(
        (known.data.astype(np.float64), (node[known.row], known.col)), shape=(n, known.shape[1])
    )
    neighbours = [np.asarray(listed, dtype=np.int64) for listed in graph.values()]
    sources = np.repeat(list(graph), [listed.size for listed in neighbours])
    edges = np.stack([sources, np.concatenate(neighbours)])
    return CitationGraph(features, labels, edges, np.arange(train), test)


def read_cora(folder: Path, name: str = "cora") -> CitationGraph:
    """Read `cora.content` and `cora.cites` and put the papers into Planetoid's order.

    A line of the first is a paper's id, a 0 or 1 for each word, and its class; a line of the second
    is the ids of a cited paper and of one that cites it. All are separated by tabs.
    """
    order = resources.files(__package__).joinpath("cora_planetoid_order.txt").read_text().split()
    node = {paper: at for at, paper in enumerate(order)}
    number = {label: at for at, label in enumerate(CORA_CLASSES)}
    words: list[Indices] = [np.empty(0, dtype=np.int64)] * len(node)
    labels = np.full(len(node), UNKNOWN)
    width = 0
    for line in (folder / f"{name}.content").read_text().splitlines():
        paper, rest = line.split("\t", 1)
        bits, label = rest.rsplit("\t", 1)
        present = np.frombuffer(bits[::2].encode(), dtype=np.uint8) == ord("1")
        width = present.size
        words[node[paper]] = np.flatnonzero(present)
        labels[node[paper]] = number[label]
    indptr = np.cumsum([0, *(row.size for row in words)])
    columns = np.concatenate(words)
    features = sp.csr_array((np.ones(columns.size), columns, indptr), shape=(len(node), width))
    cites = (folder / f"{name}.cites").read_text().split()
    edges = np.array([node[paper] for paper in cites], dtype=np.int64).reshape(-1, 2).T
    return CitationGraph(
        features,
        labels,
        edges,
        train=np.arange(TRAIN_PER_CLASS * len(CORA_CLASSES)),
        test=np.arange(len(node) - TEST, len(node)),
    )


READERS: Mapping[Form, Callable[[Path, str], CitationGraph]] = {
    Form.PLANETOID: read_pickles,
    Form.LINQS: read_cora,
}


def planetoid(
    files: RawFiles,
    classes: tuple[str, ...],
    *,
    remove_unlabelled: bool = False,
    normalise: bool = True,
) -> Dataset:
    """The data set that some files hold, with its public split.

    Args:
        files: From `find_files`.
        classes: The names of the classes.
        remove_unlabelled: Take nodes without a class out of the graph, and number the others anew,
            as the authors of the paper do.
        normalise: Divide each node's features by their sum, as every published system does.
    """
    papers = READERS[files.form](files.folder, files.name)
    if remove_unlabelled:
        papers = labelled_only(papers)
    features = row_normalise(papers.features) if normalise else papers.features
    first = papers.train.size
    return Dataset(
        name=files.name,
        graph=Graph.from_edges(papers.edges, papers.labels.size, features=features),
        labels=papers.labels,
        classes=classes,
        source=files.source,
        public=Split(
            "public",
            train=papers.train,
            validation=np.arange(first, first + VALIDATION),
            test=papers.test,
        ),
    )


def labelled_only(papers: CitationGraph) -> CitationGraph:
    """The papers that have a class, numbered anew in the same order."""
    keep = papers.labels != UNKNOWN
    new = np.cumsum(keep) - 1
    kept_edges = papers.edges[:, keep[papers.edges].all(axis=0)]
    return replace(
        papers,
        features=papers.features[np.flatnonzero(keep)],
        labels=papers.labels[keep],
        edges=new[kept_edges],
        train=new[papers.train],
        test=new[papers.test],
    )
