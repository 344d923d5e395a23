"""Recipe: how tables become features of nodes, learned once and then repeated.

The blocks of `FEATURE_BLOCKS` stand side by side. Each block but counts and the identity is
multiplied by a factor, so that the mean length of its rows is 0.2, about that of bags of words: no
block outweighs another.

A recipe is plain data: it is stored as JSON, and reading it runs no code.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc
import scipy.sparse as sp

from kryograph.data.tables.date_blocks import Dates
from kryograph.data.tables.edge_blocks import EdgeAmounts, EdgeTypes, require_edge_columns
from kryograph.data.tables.edge_features import EdgeAttributes
from kryograph.data.tables.feature_blocks import (
    FeatureBlock,
    parse_floats,
    parse_names,
    row_lengths,
    stack_columns,
)
from kryograph.data.tables.node_table import NodeTable
from kryograph.data.tables.number_blocks import Booleans, Counts, Numbers
from kryograph.data.tables.options import Reading
from kryograph.data.tables.sheet import NumberColumn, Sheet
from kryograph.data.tables.vector_blocks import Vectors
from kryograph.data.tables.vectors import is_vector
from kryograph.data.tables.word_blocks import Categories, Identity, Text
from kryograph.errors import UsageError
from kryograph.features import ROW_LENGTH
from kryograph.graph import Features
from kryograph.text import OnProgress, plural, quoted, quoted_list

RECIPE_FORMAT = 2

FEATURE_BLOCKS: tuple[type[FeatureBlock], ...] = (
    *(Identity, Counts, Numbers, Booleans, Dates, Vectors, Categories, Text),
    *(EdgeAmounts, EdgeTypes),
)
"""Every kind of feature block, in the order of their features."""


@dataclass(frozen=True)
class Recipe:
    """How features are made of a table of nodes, and of the columns of a table of edges."""

    id: str | None
    """Column of ids; None if the table had none."""
    label: str | None
    """Column of labels; None if there was none."""
    blocks: tuple[FeatureBlock, ...]
    """One block of each kind of `FEATURE_BLOCKS`, in this order; it may have no columns."""
    factors: tuple[float, ...]
    """Factor of each scaled block."""
    unused: tuple[str, ...]
    """Columns of the table of nodes that are not used."""
    reading: Reading | None = None
    """How the tables were read, so that others are read alike; None if that is not known."""

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the columns that a table of nodes must have."""
        return tuple(name for block in self.blocks for name in block.columns)

    @property
    def edge_columns(self) -> tuple[str, ...]:
        """Names of the columns that a table of edges must have."""
        return tuple(name for block in self.blocks for name in block.edge_columns)

    @property
    def features(self) -> tuple[str, ...]:
        """Name of each feature, such as "colour = red"."""
        return tuple(name for block in self.blocks for name in block.features)

    def to_json(self) -> dict[str, Any]:
        """Return the recipe as names, numbers and lists."""
        return {
            "format": RECIPE_FORMAT,
            "id": self.id,
            "label": self.label,
            "blocks": {block.key: block.to_json() for block in self.blocks},
            "factors": list(self.factors),
            "unused": list(self.unused),
            "reading": None if self.reading is None else self.reading.to_json(),
        }

    @classmethod
    def from_json(cls, value: object) -> Recipe:
        """Read what `to_json` returned; anything else is an error."""
        if not isinstance(value, dict) or value.get("format") != RECIPE_FORMAT:
            raise UsageError("The recipe for the features is not one that this version knows.")
        try:
            recipe = cls(
                id=_name_or_none(value["id"]),
                label=_name_or_none(value["label"]),
                blocks=tuple(kind.from_json(value["blocks"][kind.key]) for kind in FEATURE_BLOCKS),
                factors=parse_floats(value["factors"]),
                unused=parse_names(value["unused"]),
                reading=None if value["reading"] is None else Reading.from_json(value["reading"]),
            )
            if len(recipe.factors) != sum(block.scaled for block in recipe.blocks):
                raise ValueError("its factors do not match")
            for names in (recipe.used, recipe.edge_columns):
                if len(set(names)) != len(names):
                    raise ValueError("a column is used twice")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UsageError(f"The recipe for the features is damaged ({error!r}).") from error
        return recipe

    def apply(
        self,
        sheet: Sheet,
        ids: Sequence[str],
        progress: OnProgress,
        edges: EdgeAttributes | None = None,
    ) -> tuple[Features, list[str]]:
        """Make the features of other tables; also returns notes on what was done."""
        missing = [name for name in self.used if name not in sheet.columns]
        if missing:
            more = f" and {len(missing) - 5:,} more" if len(missing) > 5 else ""
            raise UsageError(
                f"{sheet.path} lacks the column{'s' * (len(missing) > 1)} "
                f"{quoted_list(missing[:5])}{more}, which the model was trained on."
            )
        table = NodeTable(sheet, ids, {}, edges, progress)
        if edges is not None:
            require_edge_columns(edges, self.edge_columns)
        elif self.edge_columns:
            table.notes.append(
                f"There is no table of edges: {quoted_list(self.edge_columns)} count as those of "
                "nodes without an edge."
            )
        known = {*self.used, *self.unused, self.id, self.label}
        extra = [name for name in sheet.names if name not in known]
        if extra:
            more = ", …" if len(extra) > 5 else ""
            table.notes.append(
                f"{plural(len(extra), 'column')} of {sheet.path} that the model does not know, "
                f"ignored: {quoted_list(extra[:5])}{more}."
            )
        return self._scaled([block.apply(table) for block in self.blocks]), table.notes

    def _scaled(self, parts: list[Features]) -> Features:
        """Multiply blocks by their factors, in place to save memory, and put them side by side."""
        scaled = [part for block, part in zip(self.blocks, parts, strict=True) if block.scaled]
        for part, factor in zip(scaled, self.factors, strict=True):
            values = part.data if isinstance(part, sp.csr_array) else part
            values *= factor
        return stack_columns(parts)


def learn(
    sheet: Sheet,
    ids: Sequence[str],
    *,
    id: str | None,
    label: str | None,
    kinds: Mapping[str, str],
    edges: EdgeAttributes | None,
    unused: Collection[str],
    progress: OnProgress,
    reading: Reading | None = None,
) -> tuple[Recipe, Features, list[str]]:
    """Learn the recipe for tables; also returns the features and notes on what was done.

    Args:
        sheet: Table of nodes.
        ids: Name of each node, in the order of the rows.
        id: Column of the ids; None if there is none.
        label: Column of the labels; None if there is none.
        kinds: Kind of each column that becomes features: "number", "boolean", "category", "date",
            "text" or "vector".
        edges: Columns of the table of edges that become features; None if there are none.
        unused: Other columns of the table of nodes, which a table for `Recipe.apply` may lack.
        progress: Called now and then with a stage and the fraction of it that is done.
        reading: How the tables were read; stored in the recipe.
    """
    empty = [name for name, kind in kinds.items() if kind != "text" and _is_empty(sheet, name)]
    notes = [
        f"The column {quoted(name)} of {sheet.path} is empty and was ignored." for name in empty
    ]
    filled = {name: kind for name, kind in kinds.items() if name not in empty}
    table = NodeTable(sheet, ids, filled, edges, progress, notes)
    blocks = tuple(kind.learn(table) for kind in FEATURE_BLOCKS)
    parts = [block.apply(table) for block in blocks]
    factors = [_factor(part) for block, part in zip(blocks, parts, strict=True) if block.scaled]
    unused = tuple(name for name in sheet.names if name in unused or name in empty)
    recipe = Recipe(id, label, blocks, parse_floats(factors), unused, reading)
    return recipe, recipe._scaled(parts), table.notes


def _is_empty(sheet: Sheet, name: str) -> bool:
    """Whether no cell of a column is filled."""
    column = sheet.columns[name]
    if isinstance(column, NumberColumn):
        return bool(column.missing.size == sheet.rows)
    if column.null_count == sheet.rows or is_vector(column.type):
        return bool(column.null_count == sheet.rows)
    return bool(pc.all(pc.equal(sheet.text(name), "")).as_py())


def _factor(block: Features) -> float:
    mean = float(row_lengths(block).mean())
    return ROW_LENGTH / mean if mean > 0 else 1.0


def _name_or_none(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError("a name was expected")
    return value
