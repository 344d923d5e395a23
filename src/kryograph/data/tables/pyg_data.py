"""PyTorch Geometric's `Data` as a graph with attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

from kryograph.data.tables.npz import feature_columns
from kryograph.data.tables.sheet import (
    Floats,
    Mask,
    NumberColumn,
    RawGraph,
    Sheet,
    text_column,
)
from kryograph.errors import UsageError

_READ = ("x", "y", "train_mask", "edge_index", "edge_weight", "edge_attr")
_KNOWN = {*_READ, "val_mask", "test_mask", "num_nodes"}


def from_pyg_data(data: Any, title: str) -> RawGraph:
    """Convert `x`, `edge_index`, `edge_weight`, `edge_attr` and `y`.

    Known labels are those of `train_mask` if there is one, else those that are not negative.
    Labels outside the training mask are not read.
    """
    n = _count_nodes(data)
    if data.edge_index is None or not n:
        raise UsageError(f"The {title} need edge_index and nodes.")
    pairs = _array(data.edge_index).astype(np.int64)
    bad = np.flatnonzero(((pairs < 0) | (pairs >= n)).any(axis=0))
    if bad.size:
        ends = " and ".join(map(str, pairs[:, bad[0]]))
        raise UsageError(f"The {title}: edge {bad[0]} joins {ends}, but nodes are 0 to {n - 1}.")
    columns: dict[str, Any] = {}
    if data.x is not None:
        x = data.x if data.x.layout is data.edge_index.layout else data.x.to_dense()
        columns = feature_columns(_array(x).astype(np.float64).reshape(n, -1))
    weights = getattr(data, "edge_weight", None)
    known = _known(data, n, title)
    label = None
    if getattr(data, "y", None) is not None:
        label = "y"
        columns[label] = text_column(_labels(_array(data.y), known, n, title))
    reason = f"only {', '.join(_READ)} are read"
    return RawGraph(
        ids=tuple(map(str, range(n))),
        pairs=pairs,
        weights=None if weights is None else _weights(weights, pairs.shape[1], title),
        sheet=Sheet(title, columns, n, lambda row: f"node {row}"),
        label=label,
        known=known,
        edges=_edge_attributes(data, pairs, title),
        unread={name: reason for name in data.to_dict() if name not in _KNOWN},
    )


def _count_nodes(data: Any) -> int:
    """Count the nodes; the number is guessed of the edges only if nothing else says it."""
    for name in ("x", "y", "train_mask"):
        if "num_nodes" not in data and getattr(data, name, None) is not None:
            return len(data[name])
    return int(data.num_nodes or 0)


def _labels(labels: Any, known: Mask | None, n: int, title: str) -> list[str]:
    """Spell the known labels; a negative number or NaN is no label."""
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != (n,):
        raise UsageError(f"The {title}: y must have one class for each node, not {labels.shape}.")
    read = np.ones(n, dtype=bool) if known is None else known
    filled = read & (np.nan_to_num(labels.astype(np.float64), nan=-1) >= 0)
    return [f"{label:g}" if use else "" for label, use in zip(labels.tolist(), filled, strict=True)]


def _known(data: Any, n: int, title: str) -> Mask | None:
    """Training nodes, the first column of a mask of several splits; None if there is no mask."""
    mask = getattr(data, "train_mask", None)
    if mask is None:
        return None
    array = np.asarray(_array(mask) != 0)
    array = array[:, 0] if array.ndim == 2 else array
    if array.shape != (n,):
        raise UsageError(f"The {title}: train_mask must have {n:,} entries, not {array.shape}.")
    return array


def _weights(weights: Any, edges: int, title: str) -> Floats:
    array: Floats = _array(weights).astype(np.float64).reshape(-1)
    if array.size != edges:
        raise UsageError(f"The {title}: {edges:,} edges, but {array.size:,} weights.")
    return array


def _edge_attributes(data: Any, pairs: Any, title: str) -> Sheet | None:
    """Columns of `edge_attr`, called "edge_attr[0]" and so on; None if there is none."""
    if getattr(data, "edge_attr", None) is None:
        return None
    edges = pairs.shape[1]
    values = _array(data.edge_attr).astype(np.float64)
    if len(values) != edges:
        raise UsageError(f"The {title}: {edges:,} edges, but {len(values):,} rows of edge_attr.")
    values = values.reshape(edges, -1)
    columns = {
        f"edge_attr[{at}]": NumberColumn.from_dense(values[:, at]) for at in range(values.shape[1])
    }
    ends = pairs.T.tolist()
    return Sheet(title, columns, edges, lambda row: f"edge {ends[row][0]} – {ends[row][1]}")


def _array(tensor: Any) -> Any:
    return tensor.detach().cpu().numpy()
