"""Labelled graphs that several tests of explanations share."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from kryograph.data import synthetic_citations
from kryograph.data.tables import read_tables
from kryograph.graph import UNKNOWN, Graph
from kryograph.labelling import LabelledGraph, label_nodes
from kryograph.systems import System, system

MEMBERS = (
    "diffused-logistic + diffused-logistic:representation=neighbours "
    "+ prototypes:representation=sum + trees:trees=10,fold_trees=5"
)
COUNTRIES = ("NO", "SE", "DK")


def pool(members: str = MEMBERS) -> System:
    return system("pool", {"members": members})


def from_table(folder: Path, systems: list[System] | None = None) -> LabelledGraph:
    """People with ages, countries and a text; the country decides the class, up to two exceptions.

    Nodes are called p0, p1, …; the last one has no edge.
    """
    data = synthetic_citations(n=60, classes=3, words=20, signal=0.5, homophily=0.9, seed=2)
    rng = np.random.default_rng(0)
    edges, nodes = folder / "edges.csv", folder / "nodes.csv"
    pairs = sp.triu(data.graph.adjacency).tocoo()
    with edges.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target"])
        kept = [(i, j) for i, j in zip(pairs.row, pairs.col, strict=True) if 59 not in (i, j)]
        writer.writerows((f"p{i}", f"p{j}") for i, j in kept)
    with nodes.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "age", "country", "about", "topic"])
        for i, label in enumerate(data.labels.tolist()):
            age, country = int(rng.integers(20, 60)), COUNTRIES[label]
            about = f"likes {('gene', 'graph', 'star')[label]} number{rng.integers(3)}"
            topic = "abc"[label] if i < 30 else ""
            writer.writerow([f"p{i}", age, country, about, topic])
    read = read_tables(edges, nodes, label="topic", text=["about"])
    return label_nodes(
        read.graph, read.labels, read.classes, recipe=read.columns, systems=systems or [pool()]
    )


def labelled_graph(
    features: str = "words", systems: list[System] | None = None, n: int = 90
) -> LabelledGraph:
    """A citation graph of three classes with words, few numbers or no features."""
    data = synthetic_citations(n=n, classes=3, words=70, signal=0.6, homophily=0.8, seed=1)
    numbers = np.random.default_rng(0).normal(size=(n, 4)) + data.labels[:, None]
    x = {"words": data.graph.features, "numbers": numbers, "none": sp.eye_array(n).tocsr()}
    labels = np.where(np.arange(n) < 30, data.labels, UNKNOWN)
    graph = Graph(data.graph.adjacency, x[features])
    return label_nodes(graph, labels, ("a", "b", "c"), systems=systems or [pool()])
