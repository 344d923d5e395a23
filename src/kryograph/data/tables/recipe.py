"""Recipe: how a table of nodes becomes features, learned once and then repeated.

The blocks of `FEATURE_BLOCKS` stand side by side. Each block but counts and the identity is
multiplied by a factor, so that the mean length of its rows is 0.2, about that of bags of words: no
block outweighs another.

A recipe is plain data: it is stored as JSON, and reading it runs no code.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from kryograph.data.tables.feature_blocks import (
    FEATURE_BLOCKS,
    FeatureBlock,
    parse_floats,
    parse_names,
    stack_columns,
)
from kryograph.data.tables.node_table import NodeTable
from kryograph.data.tables.options import Reading
from kryograph.data.tables.sheet import Sheet
from kryograph.errors import UsageError
from kryograph.features import ROW_LENGTH
from kryograph.graph import Features
from kryograph.text import OnProgress, plural, quoted, quoted_list

RECIPE_FORMAT = 1


@dataclass(frozen=True)
class Recipe:
    """How features are made of a table of nodes."""

    id: str | None
    """Column of ids; None if the table had none."""
    label: str | None
    blocks: tuple[FeatureBlock, ...]
    """One block of each kind of `FEATURE_BLOCKS`, in this order; it may have no columns."""
    factors: tuple[float, ...]
    """Factor of each scaled block."""
    ignored: tuple[str, ...]
    """Columns that are not used."""
    reading: Reading | None = None
    """How the tables were read; None if the features were not made of tables."""

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the columns that a table must have."""
        return tuple(name for block in self.blocks for name in block.columns)

    @property
    def features(self) -> tuple[str, ...]:
        """Name of each feature, such as "colour = red"."""
        return tuple(name for block in self.blocks for name in block.features)

    def to_json(self) -> dict[str, Any]:
        """Return the recipe as names, numbers and lists."""
        values = {key: value for block in self.blocks for key, value in block.to_json().items()}
        return {
            "format": RECIPE_FORMAT,
            "id": self.id,
            "label": self.label,
            **values,
            "factors": list(self.factors),
            "ignored": list(self.ignored),
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
                blocks=tuple(kind.from_json(value) for kind in FEATURE_BLOCKS),
                factors=parse_floats(value["factors"]),
                ignored=parse_names(value["ignored"]),
                reading=None if value["reading"] is None else Reading.from_json(value["reading"]),
            )
            if len(recipe.factors) != sum(block.scaled for block in recipe.blocks):
                raise ValueError("its factors do not match")
            if len(set(recipe.used)) != len(recipe.used):
                raise ValueError("a column is used twice")
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"The recipe for the features is damaged ({error!r}).") from error
        return recipe

    def apply(
        self, sheet: Sheet, ids: Sequence[str], progress: OnProgress
    ) -> tuple[Features, list[str]]:
        """Make the features of another table; also returns notes on what was done."""
        missing = [name for name in self.used if name not in sheet.columns]
        if missing:
            more = f" and {len(missing) - 5:,} more" if len(missing) > 5 else ""
            raise UsageError(
                f"{sheet.path} lacks the column{'s' * (len(missing) > 1)} "
                f"{quoted_list(missing[:5])}{more}, which the model was trained on."
            )
        table = NodeTable(sheet, ids, progress)
        known = {*self.used, *self.ignored, self.id, self.label}
        extra = [name for name in sheet.names if name not in known]
        if extra:
            more = ", …" if len(extra) > 5 else ""
            table.notes.append(
                f"{plural(len(extra), 'column')} of {sheet.path} that the model does not know, "
                f"ignored: {quoted_list(extra[:5])}{more}."
            )
        return self._scaled([block.apply(table) for block in self.blocks]), table.notes

    def _scaled(self, parts: list[Features]) -> Features:
        factors = iter(self.factors)
        pairs = zip(self.blocks, parts, strict=True)
        return stack_columns([part * next(factors) if b.scaled else part for b, part in pairs])


def learn(
    sheet: Sheet,
    ids: Sequence[str],
    *,
    id: str | None,
    label: str | None,
    text: Collection[str],
    ignore: Collection[str],
    progress: OnProgress,
) -> tuple[Recipe, Features, list[str]]:
    """Learn the recipe for a table; also returns the features and notes on what was done."""
    ignored = [name for name in sheet.names if name in ignore]
    taken = {id, label, *text, *ignored}
    notes = []
    for name in sheet.names:
        column = None if name in taken else sheet.numbers(name)
        if column is not None and column.missing.size == sheet.rows:
            notes.append(f"The column {quoted(name)} of {sheet.path} is empty and was ignored.")
            ignored.append(name)
    taken.update(ignored)
    others = tuple(name for name in sheet.names if name not in taken)
    table = NodeTable(sheet, ids, progress, tuple(text), others, notes)
    blocks = tuple(kind.learn(table) for kind in FEATURE_BLOCKS)
    parts = [block.apply(table) for block in blocks]
    factors = [_factor(part) for block, part in zip(blocks, parts, strict=True) if block.scaled]
    recipe = Recipe(id, label, blocks, parse_floats(factors), tuple(ignored))
    return recipe, recipe._scaled(parts), table.notes


def _factor(block: Features) -> float:
    squares = block.multiply(block) if isinstance(block, sp.csr_array) else block * block
    mean = float(np.sqrt(np.asarray(squares.sum(axis=1))).mean())
    return ROW_LENGTH / mean if mean > 0 else 1.0


def _name_or_none(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError("a name was expected")
    return value
