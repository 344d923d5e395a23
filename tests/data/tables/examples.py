"""Small tables for the tests of this folder, and functions that read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
import scipy.sparse as sp

from kryograph.data.tables import Tables, read_tables
from kryograph.data.tables.edge_features import EdgeAttributes
from kryograph.data.tables.node_table import NodeTable
from kryograph.data.tables.recipe import Recipe, learn
from kryograph.data.tables.sheet import Sheet
from kryograph.errors import UsageError
from kryograph.graph import Features
from kryograph.text import ignore_progress

EDGES = "source,target,weight\na,b,1\nb,c,2.5\nc,d,1\n"
NODES = "id,age,colour,title,topic\na,1,red,one two,x\nb,2,blue,two three,\nc,,red,,y\nd,4,,four,\n"


def read(
    folder: Path, edges: bytes | str | None, nodes: bytes | str | None, **how: object
) -> Tables:
    paths: list[Path | None] = []
    for name, content in (("edges.csv", edges), ("nodes.csv", nodes)):
        path = folder / name
        if content is not None:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        paths.append(None if content is None else path)
    return read_tables(*paths, **{"label": None, **how})  # type: ignore[arg-type]


def read_people(
    folder: Path, edges: bytes | str | None, nodes: bytes | str | None, **how: object
) -> Tables:
    """Read tables like `EDGES` and `NODES`: the labels are topics, the titles are text."""
    columns: dict[str, object] = {} if nodes is None else {"label": "topic", "text": ["title"]}
    return read(folder, edges, nodes, **{**columns, **how})


def sentence(
    folder: Path, edges: str | bytes | None, nodes: str | bytes | None, **how: object
) -> str:
    with pytest.raises(UsageError) as raised:
        read_people(folder, edges, nodes, **how)
    said = str(raised.value)
    assert all(line.endswith((".", "?", ":")) for line in said.splitlines())
    return said


def pairs(tables: Tables) -> list[tuple[str, str]]:
    """The edges by name, each in alphabetical order."""
    names = tables.graph.names
    assert names is not None
    upper = sp.triu(tables.graph.adjacency).tocoo()
    return sorted(
        (min(names[a], names[b]), max(names[a], names[b]))
        for a, b in zip(upper.row, upper.col, strict=True)
    )


def sheet(**columns: Any) -> Sheet:
    """Build a sheet of columns that `pyarrow.array` accepts."""
    rows = len(next(iter(columns.values())))
    arrays = {name: pa.chunked_array([pa.array(cells)]) for name, cells in columns.items()}
    return Sheet(Path("nodes.csv"), arrays, rows, lambda row: f"line {row + 2}")


def learned(
    table: Sheet,
    kinds: dict[str, str] | None = None,
    *,
    text: tuple[str, ...] = (),
    edges: EdgeAttributes | None = None,
) -> tuple[Recipe, npt.NDArray[np.floating], list[str]]:
    """Learn the recipe of a table; kinds that are None are recognised."""
    ids = [str(row) for row in range(table.rows)]
    columns, features, notes = learn(
        table,
        ids,
        id=None,
        label=None,
        kinds=simple_kinds(table, text) if kinds is None else kinds,
        edges=edges,
        unused=(),
        progress=ignore_progress,
    )
    return columns, dense(features), notes


def simple_kinds(table: Sheet, text: tuple[str, ...]) -> dict[str, str]:
    """Kind of each column: text if it is named so, else numbers or categories."""
    return {
        name: "text" if name in text else "category" if table.numbers(name) is None else "number"
        for name in table.names
    }


def block(recipe: Recipe, key: str) -> dict[str, Any]:
    """Read a block of a recipe as it is stored."""
    return dict(recipe.to_json()["blocks"][key])


def node_table(
    table: Sheet, kinds: dict[str, str], edges: EdgeAttributes | None = None
) -> NodeTable:
    """Build the node table of a sheet; its nodes are called 0, 1, 2, …"""
    ids = [str(row) for row in range(table.rows)]
    return NodeTable(table, ids, kinds, edges, ignore_progress)


def dense(features: Features) -> npt.NDArray[np.floating]:
    return features.toarray() if isinstance(features, sp.csr_array) else features


def words(rows: int, width: int, density: float = 0.2) -> dict[str, list[str]]:
    """A bag of words, as columns of text."""
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 4, (rows, width)) * (rng.random((rows, width)) < density)
    return {f"w{at}": [str(cell) for cell in counts[:, at]] for at in range(width)}
