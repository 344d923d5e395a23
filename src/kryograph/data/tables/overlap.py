"""Overlap: which columns of two tables name the same nodes.

The column of ids and the two ends of the edges are recognised by their names, and by how many of
their values the other table has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kryograph.data.tables.delimited import CsvTable
from kryograph.data.tables.options import NO_WEIGHT, TableOptions
from kryograph.data.tables.roles import (
    ID,
    WEIGHT,
    by_name,
    ends_by_name,
    is_id_name,
    is_row_number,
    plain,
)
from kryograph.data.tables.sheet import Sheet, is_text
from kryograph.errors import UsageError
from kryograph.text import plural

SAMPLE_ROWS_OF_EDGES = 1000
"""Number of edges whose cells are looked up among the ids."""
MOST_ID_COLUMNS = 50
"""Number of columns without a well-known name that are tried as ids."""
FEWEST_ROWS = 20
"""In a table with fewer rows all values of a column may differ by chance."""
MOST_SCALE_VALUES = 12
"""Number of different values of a scale such as that of ratings."""
ENOUGH = 0.5
"""Share of the values of a column that must be ids of nodes if it is an end of the edges."""

BY_NAME, BY_OPTION, BY_ORDER = "by its name", "", "by its position"
BY_OVERLAP = "most of its values are ids of nodes"


@dataclass(frozen=True)
class EdgeColumns:
    """Columns of an edge table: its source and target, and its weight."""

    ends: tuple[str, str]
    weight: str | None
    reasons: Mapping[str, str]
    """Why each column has its role; "" if the caller named it."""


@dataclass(frozen=True)
class EdgeSample:
    """Cells of the first edges, by column, as ids are spelled."""

    keys: dict[str, Any]
    """Arrow arrays of text."""
    ends: tuple[str, str] | None
    """The columns of the ends if their names say so."""


def sample_edges(table: CsvTable | Sheet, options: TableOptions) -> EdgeSample:
    """Read the first edges of a table whose header is not known yet."""
    if isinstance(table, Sheet):
        names = list(table.names)
        sheet = Sheet(
            table.path,
            {name: _head(table, name) for name in names},
            min(table.rows, SAMPLE_ROWS_OF_EDGES),
            table.place,
            missing=table.missing,
        )
    else:
        first = min(1, table.rows - 1)  # the first row may be a header
        names = _unique_names(table.first)
        cells = [column.slice(first, SAMPLE_ROWS_OF_EDGES) for column in table.columns]
        columns = dict(zip(names, cells, strict=True))
        sheet = Sheet(table.path, columns, min(table.rows - first, SAMPLE_ROWS_OF_EDGES), str)
        # Without a header the caller counts the columns.
        numbered = {str(at + 1): name for at, name in enumerate(names)}
        options = _renamed(options, names, numbered)
    usable = [name for name in names if name not in options.ignore and can_be_ids(sheet, name)]
    ends = _named_ends(usable, options)
    if len(usable) > 2 and ends is None and is_row_number(sheet, usable[0]):
        usable = usable[1:]
    return EdgeSample({name: sheet.keys(name).combine_chunks() for name in usable}, ends)


def edge_columns(sheet: Sheet, options: TableOptions, ids: Any | None) -> EdgeColumns:
    """Find source, target and weight: named by the caller, by their names, or by their values.

    `ids` are the ids of all nodes, an Arrow array, or None if there is no node table. Without any
    sign they are the first two columns.
    """
    names = [name for name in sheet.names if name not in options.ignore]
    if len(names) > 2 and is_row_number(sheet, names[0]):
        names = names[1:]
    if len(names) < 2:
        raise UsageError(
            f"{sheet.path} has {plural(len(names), 'column')}; edges need two, source and target "
            "(separated by comma, tab or semicolon)."
        )
    for name, what in ((options.source, " of sources"), (options.target, " of targets")):
        if name is not None:
            sheet.require(name, what)
    if options.weight not in (None, NO_WEIGHT):
        sheet.require(str(options.weight), " of weights")
    usable = [name for name in names if name != options.weight and can_be_ids(sheet, name)]
    ends, reason = _ends(sheet, usable, names, options, ids)
    weight, why = _weight(sheet, names, ends, options)
    named = {options.source, options.target}
    reasons = {name: BY_OPTION if name in named else reason for name in ends}
    return EdgeColumns(ends, weight, {**reasons, **({weight: why} if weight else {})})


def _ends(
    sheet: Sheet, usable: list[str], names: list[str], options: TableOptions, ids: Any | None
) -> tuple[tuple[str, str], str]:
    named = _named_ends(usable, options)
    if named is not None and options.source and options.target:
        return named, BY_OPTION
    shares: dict[str, float] = {}
    if ids is not None:
        shares = {name: share_of_ids(_sample(sheet, name), ids) for name in usable}
    likely = [name for name in usable if shares.get(name, 0) >= ENOUGH]
    if len(usable) > 2 and named is None and ids is not None:
        likely = [name for name in likely if not _is_scale(_sample(sheet, name), len(ids))]
    if named is not None and (not likely or any(name in likely for name in named)):
        return named, BY_NAME
    fixed = [name for name in (options.source, options.target) if name is not None]
    pair = () if fixed else _id_names(sheet, usable)
    if len(pair) == 2 and (ids is None or any(name in likely for name in pair)):
        return (pair[0], pair[1]), BY_NAME
    others = [name for name in likely if name not in fixed]
    others.sort(key=lambda name: -shares[name])
    best = sorted(others[: 2 - len(fixed)], key=names.index)
    if len(best) + len(fixed) < 2:
        best = [name for name in (usable or names) if name not in fixed][: 2 - len(fixed)]
        reason = BY_ORDER
        if len(best) + len(fixed) < 2:
            best = [name for name in names if name not in fixed][: 2 - len(fixed)]
    else:
        reason = BY_OVERLAP
    if options.source is not None:
        return (options.source, best[0]), reason
    if options.target is not None:
        return (best[0], options.target), reason
    return (best[0], best[1]), reason


def _id_names(sheet: Sheet, names: Sequence[str]) -> list[str]:
    """Columns whose names say that they hold ids, such as "user_id", and not those of the rows."""
    columns = [name for name in names if is_id_name(name)]
    if sheet.rows < FEWEST_ROWS:
        return columns
    cells = {name: _sample(sheet, name) for name in columns}
    return [name for name in columns if pc.count_distinct(cells[name]).as_py() < len(cells[name])]


def _is_scale(cells: Any, nodes: int) -> bool:
    """Whether many cells hold few small numbers, such as ratings, which are ids by chance only."""
    values = pc.unique(cells)
    if len(values) > MOST_SCALE_VALUES or len(cells) < 10 * len(values) or nodes < 2 * len(values):
        return False
    return bool(pc.all(pc.match_substring_regex(values, r"^\d{1,2}$")).as_py())


def _named_ends(names: Sequence[str], options: TableOptions) -> tuple[str, str] | None:
    """Ends that the caller or their names say."""
    source, target = options.source, options.target
    if source is not None and target is not None:
        return (source, target) if {source, target} <= set(names) else None
    ends = ends_by_name([name for name in names if name != options.weight])
    if ends is None or source in ends[1:] or target in ends[:1]:
        return None
    return source or ends[0], target or ends[1]


def _weight(
    sheet: Sheet, names: list[str], ends: tuple[str, str], options: TableOptions
) -> tuple[str | None, str]:
    """Find the column of weights; a third column without a name may be one too."""
    if options.weight == NO_WEIGHT:
        return None, ""
    if options.weight is not None:
        return options.weight, BY_OPTION
    others = [name for name in names if name not in ends and name != options.edge_type]
    weight = by_name(others, WEIGHT)
    if weight is not None:
        return weight, BY_NAME
    # A third column with a name of its own, such as "year", is not a weight.
    if others and others[0].isdigit():
        third = sheet.numbers(others[0])
        if third is not None and third.missing.size < sheet.rows:
            return others[0], BY_ORDER
    return None, ""


def id_column(sheet: Sheet, not_ids: Collection[str], edges: EdgeSample | None) -> tuple[str, str]:
    """Find the column of ids of a node table, and the reason.

    It has a well-known name or unique values, and holds ends of the edges if there are edges.
    """
    names = [name for name in sheet.names if name not in not_ids and can_be_ids(sheet, name)]
    if not names:
        raise UsageError(
            f"{sheet.path} has no column left for the ids of the nodes: name it with --id."
        )
    spelled = {plain(name): name for name in reversed(names)}
    known = [spelled[name] for name in ID if name in spelled]
    known += [name for name in names if is_id_name(name) and name not in known]
    others = [name for name in names if name not in known][:MOST_ID_COLUMNS]
    if edges is not None and edges.keys:
        for name in (*known, *others):
            possible = name in known or _is_unique(sheet, name)
            if possible and _score(sheet, name, edges) >= ENOUGH:
                return name, BY_NAME if name in known else BY_OVERLAP
    if known:
        return known[0], BY_NAME
    return next((name for name in others if _is_unique(sheet, name)), names[0]), BY_ORDER


def share_of_ids(keys: Any, ids: Any) -> float:
    """Share of the cells that are ids of nodes, also if one side is padded with zeros."""
    if not len(keys):
        return 0.0
    exact = pc.mean(pc.is_in(keys, value_set=ids)).as_py()
    if exact >= ENOUGH:
        return float(exact)
    stripped = pc.is_in(folded(keys), value_set=folded(ids))
    return float(max(exact, pc.mean(stripped).as_py()))


def folded(cells: Any) -> Any:
    """Spell ids without leading zeros, white space and capital letters."""
    bare = pc.replace_substring_regex(pc.utf8_lower(cells), r"\s+", "")
    return pc.replace_substring_regex(bare, r"^0+(.)", r"\1")


def can_be_ids(sheet: Sheet, name: str) -> bool:
    """Whether a column has a type that can name nodes."""
    kind = sheet.arrow_type(name)
    if kind is None or is_text(kind):
        return True
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return bool(numeric or pa.types.is_null(kind) or pa.types.is_boolean(kind))


def _score(sheet: Sheet, name: str, edges: EdgeSample) -> float:
    """Share of the ends of the first edges that a column of the node table has."""
    ids = sheet.keys(name).combine_chunks()
    if edges.ends is not None:
        shares = [share_of_ids(edges.keys[end], ids) for end in edges.ends]
    else:
        shares = sorted(share_of_ids(keys, ids) for keys in edges.keys.values())[-2:]
    return sum(shares) / 2


def _is_unique(sheet: Sheet, name: str) -> bool:
    return len(pc.unique(sheet.keys(name))) == sheet.rows


def _sample(sheet: Sheet, name: str) -> Any:
    part = Sheet(
        sheet.path,
        {name: _head(sheet, name)},
        min(sheet.rows, SAMPLE_ROWS_OF_EDGES),
        sheet.place,
        missing=sheet.missing,
    )
    return part.keys(name).combine_chunks()


def _head(sheet: Sheet, name: str) -> Any:
    kind = sheet.arrow_type(name)
    column = sheet.text(name) if kind is None else sheet.columns[name]
    return column.slice(0, SAMPLE_ROWS_OF_EDGES)


def _unique_names(first: Sequence[str]) -> list[str]:
    """Cells of the first row, each followed by its position if it occurs again."""
    names: list[str] = []
    for at, name in enumerate(first):
        names.append(name if name not in names else f"{name} {at + 1}")
    return names


def _renamed(
    options: TableOptions, names: Sequence[str], numbered: Mapping[str, str]
) -> TableOptions:
    """Replace numbers of columns by the cells of the first row where no column has that name."""

    def name_of(name: str | None) -> str | None:
        return numbered.get(name, name) if name is not None and name not in names else name

    ignore = tuple(name_of(name) or "" for name in options.ignore)
    return TableOptions(
        source=name_of(options.source), target=name_of(options.target), ignore=ignore
    )
