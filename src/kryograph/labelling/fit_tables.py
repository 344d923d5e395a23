"""Fit: from a person's tables to a labelled graph; the command line and Python go this way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from kryograph.data.tables import TableOptions, Tables, check_for_fit, read_tables
from kryograph.errors import check_known
from kryograph.labelling.label import check_purpose, label_nodes, positive_number
from kryograph.labelling.labelled_graph import LabelledGraph
from kryograph.systems import System
from kryograph.systems import system as system_named
from kryograph.text import OnProgress, ignore_progress
from kryograph.training.purpose import Purpose


def fit(
    edges: object,
    nodes: object = None,
    labels: object = None,
    *,
    system: str | System | None = None,
    settings: Mapping[str, object] | None = None,
    search: float | None = None,
    budget: float = 0.0,
    metric: str = "accuracy",
    positive: str | None = None,
    class_weight: str = "by metric",
    label_design: str = "guess",
    coverage: float = 0.9,
    coverage_by: str = "all",
    seed: int = 0,
    progress: OnProgress = ignore_progress,
    options: TableOptions | None = None,
    **flags: Any,
) -> LabelledGraph:
    """Label every node of a graph that is given as tables.

    >>> import kryograph as kg
    >>> edges = {"from": ["ann", "bob", "dee", "eve"], "to": ["bob", "cem", "eve", "fay"]}
    >>> people = {"id": ["ann", "bob", "cem", "dee", "eve", "fay"]}
    >>> people["topic"] = ["art", "art", None, "law", "law", None]
    >>> kg.fit(edges, people, label="topic").predictions()["predicted"].to_pylist()
    ['art', 'art', 'art', 'law', 'law', 'law']

    Args:
        edges: Table of edges, several of them (a list), or a whole graph. A table is a path, an
            object with an Arrow stream (pandas, polars, DuckDB, pyarrow) or a dictionary of arrays.
            A whole graph is a path, a PyTorch Geometric `Data`, a networkx graph, a SciPy matrix or
            a `Graph`.
        nodes: Table of nodes; if None, the nodes are those that have edges.
        labels: Table of labels, if they are in a table of their own.
        system: A system, or its name, instead of the default pool.
        settings: Settings of the named system that differ from its defaults.
        search: See `label_nodes`, as for all arguments up to `progress`.
        budget: See `label_nodes`.
        metric: See `label_nodes`.
        positive: See `label_nodes`.
        class_weight: See `label_nodes`.
        label_design: See `label_nodes`.
        coverage: See `label_nodes`.
        coverage_by: See `label_nodes`.
        seed: See `label_nodes`.
        progress: Called now and then with a stage and the share of it that is done.
        options: Roles and kinds of columns, and rules; None stands for `TableOptions(**flags)`.
        flags: Fields of `TableOptions`: `label="topic", text=["title"], ignore=["url"]`.

    Raises:
        UsageError: If the tables have faults; all of them are named.
    """
    for name in flags:
        check_known("argument of fit", name, [part.name for part in fields(TableOptions)])
    chosen = system_named(system, settings) if isinstance(system, str) else system
    tables = read_tables(edges, nodes, labels, options=options, progress=progress, **flags)
    return label_tables(
        tables,
        systems=None if chosen is None else [chosen],
        search=search,
        budget=budget,
        metric=metric,
        positive=positive,
        class_weight=class_weight,
        label_design=label_design,
        coverage=coverage,
        coverage_by=coverage_by,
        seed=seed,
        progress=progress,
    )


def check_fit(
    tables: Tables,
    *,
    metric: str = "accuracy",
    positive: str | None = None,
    class_weight: str = "by metric",
    coverage: float = 0.9,
    coverage_by: str = "all",
) -> None:
    """Raise the error that `label_tables` would raise before any work; see `label_nodes`."""
    check_for_fit(tables)
    purpose = Purpose(metric, class_weight, positive_number(positive, tables.classes))
    check_purpose(tables.labels, tables.classes, purpose, coverage, coverage_by)


def label_tables(tables: Tables, **arguments: Any) -> LabelledGraph:
    """Label the nodes of tables that were read.

    Args:
        tables: The tables.
        arguments: Arguments of `label_nodes`.
    """
    check_for_fit(tables)
    labelled = label_nodes(
        tables.graph, tables.labels, tables.classes, recipe=tables.columns, **arguments
    )
    return replace(labelled, notes=(*tables.notes, *labelled.notes), plan=tables.plan)
