"""Readers of public node-classification sets: .npz archives, WikiCS and Actor.

Weights of edges are not read: the published results are for graphs without weights.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from kryograph.data.dataset import PublishedGraph
from kryograph.data.sources import Form, RemoteFile
from kryograph.data.splits import mask_splits
from kryograph.errors import UsageError
from kryograph.files import read_text
from kryograph.graph import Indices
from kryograph.lazy import lazy_imports

with lazy_imports():
    from kryograph.data import tables  # imports Arrow, which other data sets do not need

RAW = "https://raw.githubusercontent.com/"
SHCHUR_URL = f"{RAW}shchur/gnn-benchmark/master/data/npz/"
PLATONOV_URL = f"{RAW}yandex-research/heterophilous-graphs/main/data/"
WIKI_CS_URL = f"{RAW}pmernyei/wiki-cs-dataset/master/dataset/"
FILM_URL = f"{RAW}bingzhewei/geom-gcn/master/new_data/film/"


def read_npz_graph(path: Path) -> PublishedGraph:
    """Read an .npz archive in Shchur's or Platonov's layout, or with PyTorch Geometric's names."""
    arrays = tables.read_arrays(path)
    if arrays.labels is None or arrays.features is None:
        missing = "labels" if arrays.labels is None else "features"
        raise UsageError(f"{path} has no {missing}.")
    splits = () if arrays.masks is None else mask_splits(arrays.masks, arrays.labels)
    return PublishedGraph(arrays.features, arrays.labels, arrays.pairs, splits, arrays.classes)


def read_wiki_cs(path: Path) -> PublishedGraph:
    """Read WikiCS: features, labels, a list of neighbours for each node, and 20 splits.

    The splits have other training and validation nodes and the same test nodes. The nodes of
    `stopping_masks`, a second set of validation nodes, are not used.
    """
    try:
        data: dict[str, Any] = json.loads(read_text(path))
        features = np.array(data["features"], dtype=np.float64)
        labels = np.array(data["labels"], dtype=np.int64)
        neighbours = [np.array(nodes, dtype=np.int64) for nodes in data["links"]]
        sources = np.repeat(np.arange(len(neighbours)), [nodes.size for nodes in neighbours])
        edges = np.stack([sources, np.concatenate(neighbours)])
        masks = [np.array(data[f"{part}_masks"], dtype=bool) for part in ("train", "val")]
        test = np.broadcast_to(np.array(data["test_mask"], dtype=bool), masks[0].shape)
        splits = mask_splits((*masks, test), labels)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(f"{path} is damaged or not WikiCS's data.json ({reason}).") from error
    return PublishedGraph(features, labels, edges, splits)


def read_film(edges: Path, nodes: Path) -> PublishedGraph:
    """Read Actor: pairs of nodes, and a line for each node.

    Args:
        edges: A heading, then one edge per line: two node numbers with a tab between them.
        nodes: A heading, then one node per line: its number, the numbers of its words with commas
            between them, and its class; tabs between these.
    """
    ends = _numbers(edges, read_text(edges).partition("\n")[2].split())
    if ends.size % 2:
        raise UsageError(f"{edges} is damaged: the last line has one node, not two.")
    rows = [line.split("\t") for line in read_text(nodes).splitlines()[1:] if line]
    if not rows or {len(row) for row in rows} != {3}:
        raise UsageError(f"{nodes} is damaged: every line must have a node, its words and a class.")
    node, label = (_numbers(nodes, [row[at] for row in rows]) for at in (0, 2))
    words = [row[1].split(",") for row in rows]
    if not np.array_equal(np.sort(node), np.arange(node.size)):
        raise UsageError(f"{nodes} is damaged: it must number the nodes from 0 to {node.size - 1}.")
    columns = _numbers(nodes, [word for some in words for word in some])
    of_node = np.repeat(node, [len(some) for some in words])
    features = sp.csr_array(
        (np.ones(columns.size), (of_node, columns)), shape=(node.size, int(columns.max()) + 1)
    )
    features.data[:] = 1  # a word that is listed twice counts once
    labels = np.empty_like(label)
    labels[node] = label
    return PublishedGraph(features, labels, ends.reshape(-1, 2).T)


def _numbers(path: Path, cells: list[str]) -> Indices:
    """Parse the numbers of nodes, features or classes, which begin with 0."""
    try:
        numbers: npt.NDArray[np.int64] = np.array(cells, dtype=np.int64)
    except ValueError as error:
        raise UsageError(f"{path} is damaged: {error}.") from error
    if numbers.size == 0 or numbers.min() < 0:
        raise UsageError(f"{path} is damaged: it must hold numbers from 0 on.")
    return numbers


def public_forms(
    folder_url: str,
    *names: str,
    read: Callable[..., PublishedGraph] = read_npz_graph,
    folder: str = "",
) -> tuple[Form, ...]:
    """Form of a data set whose files are at one address; `folder` is their folder in the cache."""
    files = tuple(RemoteFile(folder + name, url=folder_url + name) for name in names)
    return (Form(files, read),)
