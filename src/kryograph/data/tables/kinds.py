"""Kinds of columns: what a column of a table holds, recognised by its type and its cells.

A column is of one of the `KINDS`, or it is not used, with a reason: all its cells are empty or
equal, or they only name the rows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kryograph.data.tables.dates import ambiguity, convert_dates, is_ambiguous, is_dates
from kryograph.data.tables.faults import Faults
from kryograph.data.tables.node_table import categories, distinct, too_many
from kryograph.data.tables.options import TableOptions
from kryograph.data.tables.roles import is_id_name
from kryograph.data.tables.sheet import NumberColumn, Sheet, is_text
from kryograph.data.tables.vectors import convert_vectors, is_vectors
from kryograph.text import plural

TEXT_WORDS = 4
"""Mean number of words of a cell from which on a column is text."""
NAME_WORDS = 2
"""Cells of at most this many words that all differ only name the rows."""
FEWEST_NAMES = 20
"""In a table with fewer rows all categories may differ by chance."""
SAMPLE_ROWS = 10_000
"""Number of rows whose words are counted."""


@dataclass(frozen=True)
class ColumnKind:
    """Kind of a column, or the reason why it is not used."""

    kind: str | None
    """One of `KINDS`; None if the column is not used."""
    detail: str = ""


def recognise_columns(
    sheet: Sheet,
    taken: Collection[str | None],
    options: TableOptions,
    faults: Faults,
    known: Mapping[str, str] | None = None,
    *,
    convert: bool = True,
) -> dict[str, ColumnKind]:
    """Recognise all columns of a table that are not `taken`; faults are collected.

    `known` has the kinds that a model knows; with it, other columns are not used. See `recognise`
    for `convert`.
    """
    columns = {}
    named = {name: kind for kind, names in options.kinds.items() for name in names}
    for name in sheet.names:
        if name in taken:
            continue
        if name in options.ignore:
            columns[name] = ColumnKind(None, "--ignore")
        elif known is not None and name not in known:
            columns[name] = ColumnKind(None, "the model does not use it")
        else:
            kind = named.get(name) if known is None else known[name]
            columns[name] = ColumnKind(None, "see the fault")
            with faults.collected(sheet.title):
                order = options.date_orders.get(name)
                columns[name] = recognise(sheet, name, kind, order, convert=convert)
    return columns


def recognise(
    sheet: Sheet,
    name: str,
    kind: str | None = None,
    date_order: str | None = None,
    *,
    convert: bool = True,
) -> ColumnKind:
    """Recognise the kind of a column, or check that it is of the named `kind`.

    Columns of dates and of vectors are converted in the sheet, unless `convert` is false because
    such columns are not used: then their faults do not matter.
    """
    if kind is None and date_order is None:
        empty = _empty(sheet, name)
        if empty == sheet.rows:
            return ColumnKind(None, "every cell is empty")
        if _is_constant(sheet, name, empty):
            return ColumnKind(None, "all cells are equal")
        if _is_list_of_rows(sheet, name):
            return ColumnKind(None, "it only names the rows")
    if kind == "date" or (kind is None and is_dates(sheet, name)):
        if convert:
            convert_dates(sheet, name, date_order)
        return ColumnKind("date", _count_empty(sheet, name))
    if kind == "vector" or (kind is None and is_vectors(sheet, name)):
        return ColumnKind("vector", f"{convert_vectors(sheet, name):,} numbers" if convert else "")
    if kind == "boolean" or (kind is None and _is_boolean(sheet, name)):
        return ColumnKind("boolean", _count_empty(sheet, name))
    if kind == "number" or (kind is None and not _has_other_type(sheet, name)):
        numbers = sheet.numbers(name, required=kind is not None)
        if numbers is not None:
            return ColumnKind("number", _count_empty(sheet, name))
    if kind is None and is_ambiguous(sheet, name):
        if convert:
            raise ambiguity(sheet, name)
        return ColumnKind("date")
    return _words(sheet, name, kind)


def _words(sheet: Sheet, name: str, kind: str | None) -> ColumnKind:
    """Tell text, categories and names apart."""
    cells = sheet.text(name)
    words = _mean_words(cells)
    if kind == "text":
        return ColumnKind("text", f"{words:.0f} words on average")
    filled = sheet.rows - (pc.sum(pc.equal(cells, "")).as_py() or 0)
    values = pc.count_distinct(cells).as_py() - (filled < sheet.rows)
    if kind != "category" and words >= TEXT_WORDS and values > filled / 2:
        return ColumnKind("text", f"{words:.0f} words on average")
    all_differ = values == filled and words <= NAME_WORDS and sheet.rows >= FEWEST_NAMES
    if all_differ and kind != "category":
        return ColumnKind(None, "every value is different")
    if distinct(sheet, name, too_many(sheet)) is not None:
        empty = sheet.rows - filled
        detail = plural(values, "value") + (f", {empty:,} empty" if empty else "")
        return ColumnKind("category", detail)
    if kind == "category":
        categories(sheet, name)  # raises the error
    if words >= TEXT_WORDS or values <= filled / 2:
        return ColumnKind("text", f"{values:,} different values")
    reason = f"{values:,} different values; --text {name} reads them as text"
    return ColumnKind(None, reason)


def _has_other_type(sheet: Sheet, name: str) -> bool:
    """Whether a column has a type that can be neither numbers nor text."""
    kind = sheet.arrow_type(name)
    return kind is not None and (pa.types.is_nested(kind) or pa.types.is_temporal(kind))


def _empty(sheet: Sheet, name: str) -> int:
    """Count the empty cells of a column."""
    column = sheet.columns[name]
    if isinstance(column, NumberColumn):
        return int(column.missing.size)
    if is_text(column.type):
        return int(pc.sum(pc.equal(sheet.text(name), "")).as_py() or 0)
    nans = pc.sum(pc.is_nan(column)).as_py() or 0 if pa.types.is_floating(column.type) else 0
    return int(column.null_count + nans)


def _count_empty(sheet: Sheet, name: str) -> str:
    empty = _empty(sheet, name)
    return f"{empty:,} empty" if empty else ""


def _is_constant(sheet: Sheet, name: str, empty: int) -> bool:
    """Whether all cells are filled and equal; a single row says nothing.

    Zeros are kept: they count something, such as a word, that another table may have.
    """
    column = sheet.columns[name]
    if empty or sheet.rows < 2:
        return False
    if isinstance(column, NumberColumn):
        if column.rows.size not in (0, column.n):
            return False
        return column.values.size > 0 and bool((column.values == column.values[0]).all())
    if pa.types.is_nested(column.type) or len(pc.unique(column.slice(0, 100))) > 1:
        return False
    cells = sheet.text(name) if is_text(column.type) else column
    return cells[0].as_py() not in (0, "0") and bool(pc.all(pc.equal(cells, cells[0])).as_py())


def _is_list_of_rows(sheet: Sheet, name: str) -> bool:
    """Whether a column only names or numbers the rows again: an index without a name, or ids."""
    nameless = re.fullmatch(r"column \d+", name) is not None
    if sheet.rows < 2 or _has_other_type(sheet, name) or not (nameless or is_id_name(name)):
        return False
    keys = sheet.keys(name)
    if nameless and not pc.all(pc.match_substring_regex(keys, r"^\d+$")).as_py():
        return False
    return len(pc.unique(keys)) == sheet.rows


def _is_boolean(sheet: Sheet, name: str) -> bool:
    kind = sheet.arrow_type(name)
    if kind is None or not is_text(kind):
        return kind is not None and bool(pa.types.is_boolean(kind))
    words = pc.unique(sheet.text(name).slice(0, 100)).to_pylist()
    if not {word.lower() for word in words} <= {"true", "false", ""}:
        return False
    words = pc.unique(pc.utf8_lower(sheet.text(name))).to_pylist()
    return set(words) <= {"true", "false", ""}


def _mean_words(cells: Any) -> float:
    """Mean number of words of the filled cells."""
    some = cells.slice(0, SAMPLE_ROWS)
    some = some.filter(pc.not_equal(some, ""))
    return float(pc.mean(pc.count_substring_regex(some, r"\S+")).as_py() or 0.0)
