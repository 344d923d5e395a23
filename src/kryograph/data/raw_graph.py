"""RawGraph: what files say of a graph, before features are made of it."""

from __future__ import annotations

from dataclasses import dataclass

from kryograph.data.sheet import Floats, Sheet
from kryograph.graph import Indices


@dataclass(frozen=True, eq=False)
class RawGraph:
    """Nodes, edges, and what is known of the nodes."""

    ids: tuple[str, ...]
    pairs: Indices
    """2 × E node numbers, as listed."""
    weights: Floats | None
    sheet: Sheet
    """A row for each node."""
    id: str | None = None
    """The column of ids, if the sheet has one."""
    label: str | None = None
    """The column of labels, if the file says which it is."""
    edge_names: tuple[str, ...] = ()
    """The columns of the edge table, if there is one."""
    notes: tuple[str, ...] = ()
