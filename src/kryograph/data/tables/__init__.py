"""A person's own graph: a table of edges and one of nodes, or one file that holds both.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder:
...     edges, nodes = Path(folder, "edges.csv"), Path(folder, "nodes.csv")
...     _ = edges.write_text("source,target\\nann,bob\\nbob,cem\\n")
...     _ = nodes.write_text("id,age,topic\\nann,31,maths\\nbob,45,\\ncem,28,art\\n")
...     tables = read_tables(edges, nodes, label="topic")
>>> tables.graph.names, tables.classes, tables.labels.tolist()
(('ann', 'bob', 'cem'), ('art', 'maths'), [1, -1, 0])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kryograph.data.tables.feature_blocks import distinct, too_many
from kryograph.data.tables.formats import Kind, kind_of
from kryograph.data.tables.matching import ColumnRequest, read_two_tables
from kryograph.data.tables.networkx_files import read_xml
from kryograph.data.tables.npz import read_npz
from kryograph.data.tables.recipe import ReadProgress, Recipe, learn
from kryograph.data.tables.roles import spare_ids
from kryograph.data.tables.sheet import RawGraph, Sheet
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph, Indices
from kryograph.text import plural, quoted

NOT_KNOWN = {"na", "n/a", "nan", "null", "none", "?", "-", "unknown", "-1"}
"""Labels that look as if somebody wanted to say that there is none."""


@dataclass(frozen=True, eq=False)
class Tables:
    """What was read.

    Args:
        graph: The graph, with the ids as names, in the order of the node table.
        labels: The class numbers, `UNKNOWN` where the cell is empty.
        classes: The names of the classes, sorted (as numbers if they are).
        columns: How the features were made.
        notes: What a person ought to know, one sentence each.
        label_source: Where the labels came from, as "column 'topic' of nodes.csv".
    """

    graph: Graph
    labels: Indices
    classes: tuple[str, ...]
    columns: Recipe
    notes: tuple[str, ...]
    label_source: str


def _quiet(stage: str, fraction: float) -> None:
    pass


def read_tables(
    edges: Path | None,
    nodes: Path | None,
    *,
    label: str | None,
    text: Sequence[str] = (),
    ignore: Sequence[str] = (),
    id: str | None = None,
    columns: Recipe | None = None,
    progress: ReadProgress = _quiet,
) -> Tables:
    """Read a graph from tables, or from a file that brings everything with it.

    Args:
        edges: CSV, TSV, Parquet, a list of edges, .npz, GraphML or GEXF.
        nodes: CSV, TSV or Parquet; without it the nodes are those that have edges.
        label: The column of labels.
        text: Columns that are read as text, all together.
        ignore: Columns that are not used, of either table.
        id: The column of the nodes' ids; found if not given.
        columns: The recipe of a model, if features are to be made for it.
        progress: Called now and then with a stage and how much of it is done.
    """
    if label is not None and label in (id, *text, *ignore):
        raise UsageError(f"The column {quoted(label)} cannot be the labels and something else.")
    asked = ColumnRequest.by(id, label, text, ignore, columns)
    raw = _whole_file(edges, nodes) or read_two_tables(edges, nodes, asked, progress)
    sheet = raw.sheet
    asked.check(sheet)
    for name in ignore:
        if name not in raw.edge_names:
            sheet.require(name, " to ignore")
    label = raw.label if label is None else label
    if label is None and columns is not None and columns.label in sheet.names:
        label = columns.label
    labels, classes, notes = _labels(sheet, label)
    progress("features", 0.0)
    if columns is None:
        spare = spare_ids(sheet, {raw.id, label, *text, *ignore})
        notes += [
            f"The column {quoted(name)} only names the nodes and was ignored." for name in spare
        ]
        columns, features, said = learn(
            sheet,
            raw.ids,
            id=raw.id,
            label=label,
            text=list(dict.fromkeys(text)),
            ignore={*ignore, *spare} - {raw.id, label, *text},
            progress=progress,
        )
    else:
        features, said = columns.apply(sheet, raw.ids, progress)
    graph = Graph.from_edges(
        raw.pairs, len(raw.ids), weights=raw.weights, features=features, names=raw.ids
    )
    progress("features", 1.0)
    return Tables(
        graph=graph,
        labels=labels,
        classes=classes,
        columns=columns,
        notes=(*raw.notes, *notes, *_edge_notes(graph), *said),
        label_source=f"column {quoted(label)} of {sheet.path}" if label else str(sheet.path),
    )


def check_for_fit(tables: Tables) -> None:
    """Raise an error unless there is something to learn, and something to say."""
    known = tables.labels != UNKNOWN
    source = tables.label_source
    if not known.any():
        raise UsageError(f"There are no labels in {source}: label at least one node of each class.")
    if len(tables.classes) == 1:
        raise UsageError(
            f"All labels in {source} are {quoted(tables.classes[0])}: there must be two classes."
        )
    if known.all():
        raise UsageError(
            f"All {known.size:,} nodes have a label in {source}: nothing is left to predict. Leave "
            "the cells of nodes empty whose label is not known."
        )


def _whole_file(edges: Path | None, nodes: Path | None) -> RawGraph | None:
    """The graph of a file that brings everything with it, if one was given."""
    given = [path for path in (edges, nodes) if path is not None]
    if not given:
        raise UsageError("Give a table of edges, a table of nodes, or both.")
    kinds = [kind_of(path) for path in given]
    if not any(kind.whole for kind in kinds):
        return None
    if len(given) == 2:
        at = next(at for at, kind in enumerate(kinds) if kind.whole)
        raise UsageError(
            f"{given[at]} brings nodes and edges with it: give it alone, without {given[1 - at]}."
        )
    return read_npz(given[0]) if kinds[0] is Kind.NPZ else read_xml(given[0], kinds[0])


def _labels(sheet: Sheet, label: str | None) -> tuple[Indices, tuple[str, ...], list[str]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if label is None:
        return np.full(sheet.rows, UNKNOWN), (), []
    most = too_many(sheet)
    found = distinct(sheet, label, most)
    if found is None:
        raise UsageError(
            f"{sheet.path}, column {quoted(label)}: more than {most:,} different values, too "
            "many for classes; is it the column of labels?"
        )
    try:
        classes = tuple(sorted(found, key=int))
    except ValueError:
        classes = found
    values = pa.array(classes, type=pa.string())
    codes = pc.index_in(sheet.keys(label), value_set=values).fill_null(UNKNOWN)
    notes = [
        f"The label {quoted(name)} counts as a class; leave the cell empty if it means that the "
        "label is not known."
        for name in classes
        if name.lower() in NOT_KNOWN
    ]
    return np.asarray(codes.to_numpy(), dtype=np.int64), classes, notes


def _edge_notes(graph: Graph) -> list[str]:
    # That an edge is listed once is nothing to speak of.
    done = str(replace(graph.cleaning, one_way=0))
    alone = int((np.diff(graph.adjacency.indptr) == 0).sum())
    notes = [f"{done}."] if done else []
    return [*notes, f"{plural(alone, 'node')} without an edge."] if alone else notes
