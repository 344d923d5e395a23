"""Small graphs in files, and rows of a benchmark on many graphs, for several folders of tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kryograph.data import synthetic_citations
from kryograph.experiments.graph_rows import BASIS, PORTFOLIO, GraphRow

FEATURES = "diffused-logistic:representation=features,penalty=1"
HOPS = "diffused-logistic:representation=hops"
SUM = "prototypes:representation=sum,rounds=5"


def write_graph(path: Path, n: int = 60, seed: int = 0) -> None:
    """A graph of two classes as an archive: adjacency, dense features and labels."""
    data = synthetic_citations(n=n, classes=2, words=30, signal=0.6, homophily=0.8, seed=seed)
    a = data.graph.adjacency
    np.savez(
        path,
        adj_data=a.data,
        adj_indices=a.indices,
        adj_indptr=a.indptr,
        adj_shape=a.shape,
        attr_matrix=np.asarray(data.graph.features.todense()),
        labels=data.labels,
    )


def made_row(graph: str, per_class: int, seed: int, method: str, accuracy: float) -> GraphRow:
    return GraphRow(
        graph, 60, per_class, seed, "0123", method, accuracy, round(accuracy - 0.1, 3), seconds=0.5
    )


def made_rows() -> list[GraphRow]:
    """Two graphs; a head is best on the first, the portfolio on the second; one method failed."""
    own = {
        "coverage": 0.9,
        "set_size": 1.5,
        "calibration_error": 0.05,
        "held_out_accuracy": 0.8,
        "held_out_low": 0.6,
        "held_out_high": 0.9,
    }
    rows = [GraphRow("a", 60, 0, 0, "", BASIS, seconds=0.25)]
    for graph, k, seed, portfolio, features, total in (
        ("a", 3, 0, 0.60, 0.70, 0.50),
        ("a", 3, 1, 0.70, 0.60, 0.80),
        ("a", 10, 0, 0.80, 0.70, 0.84),
        ("b <1>", 3, 0, 0.90, 0.50, 0.80),
    ):
        first = made_row(graph, k, seed, PORTFOLIO, portfolio)
        rows.append(
            GraphRow(**{**vars(first), **own, "interval_holds": portfolio <= 0.9 and k < 10})
        )
        rows.append(made_row(graph, k, seed, FEATURES, features))
        rows.append(made_row(graph, k, seed, SUM, total))
    rows.append(made_row("a", 3, 0, "lp", 0.40))
    rows.append(GraphRow("a", 60, 3, 1, "0123", "lp", error="It is <too> slow."))
    return rows
