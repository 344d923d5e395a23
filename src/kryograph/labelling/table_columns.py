"""Columns of a table of nodes among the features of a labelled graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kryograph.basis import to_dense
from kryograph.data.tables.recipe import Recipe
from kryograph.data.tables.sheet import Sheet, text_column
from kryograph.errors import UsageError, near_misses
from kryograph.labelling.explanation_tables import vector_name
from kryograph.text import ignore_progress, quoted

if TYPE_CHECKING:
    from kryograph.labelling.labelled_graph import LabelledGraph


def stored_recipe(labelled: LabelledGraph) -> Recipe | None:
    """The recipe that made the features of tables; None if the graph had its features already."""
    if "columns" not in labelled.model.extra:
        return None
    return Recipe.from_json(labelled.model.extra["columns"])


def columns_named(labelled: LabelledGraph, name: str) -> list[int]:
    """Numbers of the features of a column of the table, or of the feature with a name."""
    recipe = stored_recipe(labelled)
    if recipe is None:
        features = [f"feature {f}" for f in range(labelled.graph.features.shape[1])]
        owners = features
    else:
        features, owners = list(recipe.features), _columns_of_features(recipe)
    numbers = [
        f
        for f, (feature, owner) in enumerate(zip(features, owners, strict=True))
        if name in (feature, owner, vector_name(feature))
    ]
    if not numbers:
        known = list(dict.fromkeys([*owners, *features]))
        near = " or ".join(map(quoted, near_misses(name, known[:20_000])))
        hint = f"did you mean {near}?" if near else "no column or feature has this name."
        raise UsageError(f"There is no feature {quoted(name)}: {hint}")
    return numbers


def value_of_cell(
    labelled: LabelledGraph, column: str, value: str
) -> tuple[list[int], np.ndarray, list[str]]:
    """Features of a cell with a new value: their numbers, their values, and notes on them."""
    recipe = stored_recipe(labelled)
    assert recipe is not None
    if column not in recipe.used:
        near = " or ".join(map(quoted, near_misses(column, recipe.used)))
        hint = (
            f"did you mean {near}?" if near else "only columns of the table of nodes have values."
        )
        raise UsageError(f"The model uses no column {quoted(column)}: {hint}")
    block = next(block for block in recipe.blocks if column in block.columns)
    if not block.scaled:
        raise UsageError(
            f"{quoted(column)} belongs to a bag of words, whose counts are shares of their sum: "
            "its value cannot be set alone. --without-feature leaves it out."
        )
    if has_vector_names(column, block.features):
        raise UsageError(
            f"{quoted(column)} holds vectors, whose values cannot be set one by one. "
            "--without-feature leaves it out."
        )
    numbers = [f for f, owner in enumerate(_columns_of_features(recipe)) if owner == column]
    if not numbers:
        raise UsageError(
            f"{quoted(column)} is text that is read together with other columns: its value cannot "
            "be set alone."
        )
    cells = {
        name: text_column([value]) if name == column else empty_cell(name, part.features)
        for part in recipe.blocks
        for name in part.columns
    }
    sheet = Sheet(Path("--set"), cells, 1, lambda row: "the new value")
    features, notes = recipe.apply(sheet, ["node"], ignore_progress)
    entries = to_dense(features)[0, numbers]
    return numbers, entries, [note for note in notes if quoted(column) in note]


def has_vector_names(column: str, features: Sequence[str]) -> bool:
    """Whether some features are the entries of a column of vectors.

    >>> has_vector_names("place", ["place[0]", "place[1]"]), has_vector_names("age", ["age"])
    (True, False)
    """
    return any(name != column and vector_name(name) == column for name in features)


def empty_cell(column: str, features: Sequence[str]) -> Any:
    """Build one empty cell, as an Arrow array, of a column whose block has these features."""
    if has_vector_names(column, features):
        return pa.chunked_array([pa.nulls(1, pa.list_(pa.float64()))])
    return text_column([""])


def _columns_of_features(recipe: Recipe) -> list[str]:
    """Name of the column that each feature comes from; "" if it comes from several together."""
    return [
        _owner(feature, (*block.columns, *block.edge_columns))
        for block in recipe.blocks
        for feature in block.features
    ]


def _owner(feature: str, columns: Sequence[str]) -> str:
    """Column of a feature: its name begins the name of the feature, as in "country = NO"."""
    if len(columns) == 1:
        return columns[0]
    fitting = [
        name
        for name in columns
        if feature == name or (feature.startswith(name) and feature[len(name)] in " [(")
    ]
    return max(fitting, key=len, default="")
