r"""A user's own graph: a table of edges and one of nodes, or one file that holds both.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder:
...     edges, nodes = Path(folder, "edges.csv"), Path(folder, "nodes.csv")
...     _ = edges.write_text("source,target\nann,bob\nbob,cem\n")
...     _ = nodes.write_text("id,age,topic\nann,31,maths\nbob,45,\ncem,28,art\n")
...     tables = read_tables(edges, nodes, label="topic")
>>> tables.graph.names, tables.classes, tables.labels.tolist()
(('ann', 'bob', 'cem'), ('art', 'maths'), [1, -1, 0])
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kryograph.data.tables.delimited import CsvTable
from kryograph.data.tables.formats import FILE_FORMATS, FileFormat, contents, format_of
from kryograph.data.tables.matching import ColumnRequest, read_two_tables
from kryograph.data.tables.networkx_files import from_networkx_graph
from kryograph.data.tables.node_table import distinct, recognise_kinds, too_many
from kryograph.data.tables.npz import ArrayGraph, read_arrays
from kryograph.data.tables.recipe import Recipe, learn
from kryograph.data.tables.roles import LABEL, by_name, spare_ids
from kryograph.data.tables.sheet import RawGraph, Sheet, SplitMasks, text_column
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph, Indices
from kryograph.text import OnProgress, ignore_progress, plural, quoted

__all__ = [
    "FILE_FORMATS",
    "ArrayGraph",
    "CsvTable",
    "FileFormat",
    "RawGraph",
    "Sheet",
    "Tables",
    "check_for_fit",
    "contents",
    "from_networkx_graph",
    "read_arrays",
    "read_tables",
    "text_column",
]

NOT_KNOWN = {"na", "n/a", "nan", "null", "none", "?", "-", "unknown", "-1"}
"""Labels that may be meant as "no label"."""


@dataclass(frozen=True, eq=False)
class Tables:
    """A graph that was read from a user's files."""

    graph: Graph
    """The graph with the ids as names, in the order of the node table."""
    labels: Indices
    """N class numbers, `UNKNOWN` where the cell is empty."""
    classes: tuple[str, ...]
    """Names of the classes, sorted (as numbers if they are)."""
    columns: Recipe
    notes: tuple[str, ...]
    """Sentences on what was changed or ignored."""
    label_source: str
    """Place of the labels, such as "column 'topic' of nodes.csv"."""
    masks: SplitMasks | None = None


def read_tables(
    edges: Path | None,
    nodes: Path | None,
    *,
    label: str | None,
    text: Sequence[str] = (),
    ignore: Sequence[str] = (),
    id: str | None = None,
    columns: Recipe | None = None,
    as_dataset: bool = False,
    progress: OnProgress = ignore_progress,
) -> Tables:
    """Read a graph from tables, or from a file that holds a whole graph.

    Args:
        edges: Table of edges, or a whole graph, in any format of `FILE_FORMATS`.
        nodes: Table of nodes; if None, the nodes are those that have edges.
        label: Column of the labels.
        text: Columns that are read as text, all together.
        ignore: Columns of either table that are not used.
        id: Column of the ids of the nodes; recognised if None.
        columns: Recipe of a model, if the features are computed for that model.
        as_dataset: Read a data set: if `label` is None, the column called 'label', 'class' or the
            like is taken, and there is no note that splits in the file are not used.
        progress: Called now and then with a stage and the fraction of it that is done.
    """
    if label is not None and label in (id, *text, *ignore):
        raise UsageError(f"The column {quoted(label)} cannot be the labels and something else.")
    request = ColumnRequest(id, label, text, ignore, columns)
    raw = _whole_file(edges, nodes) or read_two_tables(edges, nodes, request, progress)
    sheet = raw.sheet
    request.check(sheet)
    for name in ignore:
        if name not in raw.edge_names:
            sheet.require(name, " to ignore")
    label = raw.label if label is None else label
    if label is None and as_dataset:
        label = by_name([name for name in sheet.names if name != raw.id], LABEL)
    if label is None and columns is not None and columns.label in sheet.names:
        label = columns.label
    labels, classes, notes = _labels(sheet, label)
    if raw.masks is not None and not as_dataset:
        notes.append(f"The masks in {sheet.path} were not used: all its labels were kept.")
    progress("features", 0.0)
    if columns is None:
        spare = spare_ids(sheet, {raw.id, label, *text, *ignore})
        notes += [
            f"The column {quoted(name)} only names the nodes and was ignored." for name in spare
        ]
        unused = {*ignore, *spare} - {raw.id, label, *text}
        used = [name for name in sheet.names if name not in {raw.id, label, *unused}]
        columns, features, feature_notes = learn(
            sheet,
            raw.ids,
            id=raw.id,
            label=label,
            kinds=recognise_kinds(sheet, used, text, progress),
            edges=None,
            unused=unused,
            progress=progress,
        )
    else:
        features, feature_notes = columns.apply(sheet, raw.ids, progress)
    graph = Graph.from_edges(
        raw.pairs, len(raw.ids), weights=raw.weights, features=features, names=raw.ids
    )
    progress("features", 1.0)
    notes = [*raw.notes, *notes, *_edge_notes(graph), *feature_notes]
    source = f"column {quoted(label)} of {sheet.path}" if label else str(sheet.path)
    return Tables(graph, labels, classes, columns, tuple(notes), source, raw.masks)


def check_for_fit(tables: Tables) -> None:
    """Raise an error unless there are labels of two classes, and nodes without a label."""
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
    """Read a file that holds a whole graph; None if both files are tables."""
    paths = [path for path in (edges, nodes) if path is not None]
    if not paths:
        raise UsageError("Pass a table of edges, a table of nodes, or both.")
    formats = [format_of(path) for path in paths]
    whole = [at for at, format in enumerate(formats) if format.whole]
    if not whole:
        return None
    path = paths[whole[0]]
    if len(paths) == 2:
        raise UsageError(
            f"{path} holds nodes and edges: pass it alone, without {paths[1 - whole[0]]}."
        )
    graph = formats[0].read(path)
    if not isinstance(graph, RawGraph):
        raise UsageError(f"The reader of {formats[0].title} must return a RawGraph.")
    return graph


def _labels(sheet: Sheet, label: str | None) -> tuple[Indices, tuple[str, ...], list[str]]:
    """Read the column of labels: class numbers, names of the classes, and notes."""
    if label is None:
        return np.full(sheet.rows, UNKNOWN), (), []
    most = too_many(sheet)
    classes = distinct(sheet, label, most)
    if classes is None:
        raise UsageError(
            f"{sheet.path}, column {quoted(label)}: more than {most:,} different values, too "
            "many for classes; is it the column of labels?"
        )
    with suppress(ValueError):  # names that are not numbers are sorted already
        classes = tuple(sorted(classes, key=int))
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
    # Most files list an edge once: no note is needed.
    changes = str(replace(graph.cleaning, one_way=0))
    alone = int((np.diff(graph.adjacency.indptr) == 0).sum())
    notes = [f"{changes}."] if changes else []
    return [*notes, f"{plural(alone, 'node')} without an edge."] if alone else notes
