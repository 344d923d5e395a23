"""Objects of other libraries as tables: data frames, dictionaries of arrays, matrices, graphs.

An object with an Arrow stream (pandas, polars, DuckDB, pyarrow) is converted exactly once, because
a stream that was read has no rows left, and does not say so. None of these libraries is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from kryograph.data.tables.arrow_files import numbered_row, sheet_of_arrow
from kryograph.data.tables.networkx_files import from_networkx_graph
from kryograph.data.tables.npz import feature_columns
from kryograph.data.tables.pyg_data import from_pyg_data
from kryograph.data.tables.sheet import Floats, RawGraph, Sheet
from kryograph.errors import UsageError
from kryograph.features import is_identity
from kryograph.graph import Graph, Indices
from kryograph.text import quoted


def open_object(value: object, name: str, *, alone: bool) -> Path | Sheet | RawGraph:
    """Convert what a caller passes as a table; text is a path.

    Args:
        value: The object.
        name: Use of the object, such as "edges", which stands for it in messages.
        alone: Whether there is no table of nodes, so that a matrix or a graph has all nodes.
    """
    if isinstance(value, str | Path):
        return Path(value)
    module = type(value).__module__.partition(".")[0]
    title = f"{name} ({module} {type(value).__name__})"
    if isinstance(value, Sheet):
        return replace(value, columns=dict(value.columns))  # columns are converted later
    if isinstance(value, RawGraph):
        return replace(value, sheet=replace(value.sheet, columns=dict(value.sheet.columns)))
    if isinstance(value, Graph):
        return _of_graph(value, title) if alone else _edge_sheet(value.adjacency, value, title)
    if sp.issparse(value):
        return _of_matrix(value, title) if alone else _edge_sheet(sp.coo_array(value), None, title)
    if module == "networkx":
        return from_networkx_graph(value, title)
    if module == "torch_geometric" and hasattr(value, "edge_index"):
        return from_pyg_data(value, title)
    if hasattr(value, "collect") and type(value).__name__ == "LazyFrame":
        raise UsageError(f"The {name} are a LazyFrame of polars: .collect() it first.")
    if module == "pandas" and hasattr(value, "reset_index"):
        return _of_pandas(value, title)
    if isinstance(value, Mapping):
        return sheet_of_arrow(_of_mapping(value, name), name)
    if hasattr(value, "__arrow_c_stream__"):
        return _of_stream(value, title)
    raise UsageError(
        f"The {name} are a {type(value).__name__}: pass a path, a data frame of pandas, polars, "
        "DuckDB or Arrow, a dictionary of arrays, a PyTorch Geometric Data, a networkx graph, a "
        "SciPy matrix or a Graph."
    )


def _of_stream(value: Any, title: str) -> Sheet:
    """Read all rows of an object with an Arrow stream."""
    try:
        table = pa.table(value)
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UsageError(f"The {title} cannot be read as an Arrow table ({reason}).") from error
    _refuse_no_rows(table, title)
    return sheet_of_arrow(table, title)


def _of_pandas(frame: Any, title: str) -> Sheet:
    """Convert a data frame; a named index becomes columns.

    Arrow would leave out an index of consecutive numbers, whatever its name.
    """
    if not hasattr(frame, "columns"):
        frame = frame.to_frame()
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    elif list(frame.index) != list(range(len(frame))):
        frame = frame.reset_index(names="")
    names = [str(name) for name in frame.columns]
    arrays = []
    for at, name in enumerate(names):
        values = frame.iloc[:, at]
        try:
            arrays.append(pa.Array.from_pandas(values))
        except (pa.ArrowException, OverflowError) as error:
            raise _mixed(values.tolist(), name, title) from error
    table = pa.table(arrays, names)
    _refuse_no_rows(table, title)
    return sheet_of_arrow(table, title)


def _of_mapping(value: Mapping[Any, Any], name: str) -> Any:
    """Convert a dictionary of arrays or lists; a matrix becomes a column of vectors."""
    columns = {}
    for key, cells in value.items():
        if isinstance(cells, str | bytes) or not hasattr(cells, "__len__"):
            raise UsageError(
                f"The {name} are a dictionary, whose column {quoted(key)} is no list or array; "
                f"a dictionary has columns: {{'id': ['ann', 'bob'], 'topic': ['art', 'law']}}."
            )
        try:
            array = np.asarray(cells) if hasattr(cells, "ndim") else None
            if array is not None and array.ndim == 2:
                flat = pa.array(np.ascontiguousarray(array).ravel())
                columns[str(key)] = pa.FixedSizeListArray.from_arrays(flat, array.shape[1])
            elif isinstance(cells, pa.ChunkedArray):
                columns[str(key)] = cells
            else:  # NaN among objects, as pandas writes it, is an empty cell
                columns[str(key)] = pa.array(cells, from_pandas=array is not None)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise _mixed(list(cells), key, name) from error
    lengths = {key: len(column) for key, column in columns.items()}
    if len(set(lengths.values())) > 1:
        first, *_ = lengths
        other = next(key for key in lengths if lengths[key] != lengths[first])
        raise UsageError(
            f"The {name} have {lengths[first]:,} rows in column {quoted(first)}, but "
            f"{lengths[other]:,} in column {quoted(other)}."
        )
    table = pa.table(columns)
    _refuse_no_rows(table, name)
    return table


def _refuse_no_rows(table: Any, title: str) -> None:
    if table.num_rows == 0 and table.num_columns:
        raise UsageError(
            f"The {title} have 0 rows. If they are a stream, it can be read only once: was it read "
            "before? Pass a table, or a new stream."
        )


def _mixed(values: list[Any], column: object, title: str) -> UsageError:
    """Build the error for a column of several types: it names the first row of another type."""
    first: type | None = None
    for row, value in enumerate(values):
        if value is None or value != value:  # NaN is an empty cell
            continue
        kind = type(value)
        if first is None:
            first = kind
        elif kind is not first and not ({kind, first} <= {int, float}):
            return UsageError(
                f"The {title}, {numbered_row(row)}, column {quoted(column)}: {value!r} is of the "
                f"type {kind.__name__}, but the cells above are of the type {first.__name__}; "
                "convert the column to one type, such as text."
            )
    return UsageError(f"The {title}, column {quoted(column)}: its values have no type of Arrow.")


def _of_matrix(matrix: Any, title: str) -> RawGraph:
    """Convert a square matrix of weights; the nodes are the numbers of its rows."""
    entries = sp.coo_array(matrix)
    if entries.ndim != 2 or entries.shape[0] != entries.shape[1] or not entries.shape[0]:
        raise UsageError(f"The {title} must be square; it is {entries.shape}.")
    ids = tuple(map(str, range(entries.shape[0])))
    pairs, weights = _pairs(entries)
    return RawGraph(ids, pairs, weights, Sheet(title, {}, len(ids), _node_place(ids)))


def _of_graph(graph: Graph, title: str) -> RawGraph:
    """Convert a Graph: its features become columns of numbers, unless they are the identity."""
    ids = graph.names or tuple(map(str, range(graph.n)))
    columns = {} if is_identity(graph.features) else feature_columns(graph.features)
    pairs, weights = _pairs(sp.triu(graph.adjacency).tocoo())
    return RawGraph(ids, pairs, weights, Sheet(title, columns, graph.n, _node_place(ids)))


def _edge_sheet(matrix: Any, graph: Graph | None, title: str) -> Sheet:
    """Convert a matrix to a table of edges, for use with a table of nodes."""
    (source, target), weights = _pairs(sp.coo_array(matrix))
    columns = {"source": pa.array(source), "target": pa.array(target), "weight": pa.array(weights)}
    if graph is not None and graph.names is not None:
        names = pa.array(graph.names, pa.string())
        columns |= {"source": names.take(pa.array(source)), "target": names.take(pa.array(target))}
    return sheet_of_arrow(pa.table(columns), title)


def _pairs(entries: Any) -> tuple[Indices, Floats]:
    pairs = np.stack([entries.row, entries.col]).astype(np.int64)
    return pairs, entries.data.astype(np.float64)


def _node_place(ids: tuple[str, ...]) -> Any:
    return lambda row: f"node {quoted(ids[row])}"
