"""Block of dates: how long ago, at what time of the year and on which day of the week."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kryograph.data.tables.empty_cells import (
    empty_notes,
    mark_empty,
    mark_names,
    marked_shares,
    parse_shares,
)
from kryograph.data.tables.feature_blocks import (
    FeatureBlock,
    parse_float_lists,
    parse_floats,
    parse_names,
)
from kryograph.data.tables.node_table import NodeTable
from kryograph.data.tables.sheet import Floats, NumberColumn, RowNumbers, Sheet
from kryograph.errors import UsageError
from kryograph.graph import Features
from kryograph.text import quoted

PARTS = ("days", "month, sin", "month, cos", "weekday, sin", "weekday, cos")
"""Features of a date: days since the median, and points on the circles of months and weekdays."""

MOST_SPREADS = 5.0
"""A date this many spreads from the median counts as this far: 9999-12-31 often means "never"."""

NORMAL_QUARTILES = 1.349
"""Distance between the quartiles of a normal distribution, in standard deviations."""

ISO_DATE = (
    r"^\d{4}(-?\d{2}(-?\d{2})?)?$|"
    r"^\d{4}-\d{2}-\d{2}[T ]\d{2}(:\d{2}(:\d{2}([.,]\d+)?)?)?( ?(Z|[+-]\d{2}(:?\d{2})?))?$"
)
"""Spellings of a date that are read, as a regular expression: year, month and day with or without
hyphens, the time and the time zone. A year alone is its first day, a month alone as well."""

_ZONE = r"[T ]\d{2}[\d:.,]* ?(Z|[+-]\d{2}(:?\d{2})?)$"
_UNITS_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


@dataclass(frozen=True)
class Dates(FeatureBlock):
    """Columns of dates, five features for each; an empty cell is an average date."""

    names: tuple[str, ...] = field(metadata={"parse": parse_names})
    medians: tuple[float, ...] = field(metadata={"parse": parse_floats})
    """Median of each column, in days since 1970-01-01, UTC."""
    spreads: tuple[float, ...] = field(metadata={"parse": parse_floats})
    """Days that count as 1; 0 for a column with one date only, whose days become zeros."""
    centres: tuple[tuple[float, ...], ...] = field(metadata={"parse": parse_float_lists})
    """Mean of the four other features of each column, which is subtracted from them."""
    empty_shares: tuple[float, ...] = field(metadata={"parse": parse_shares})
    """Share of empty cells, 0 if they are too few for a feature."""
    key = "dates"
    parallel = ("names", "medians", "spreads", "centres", "empty_shares")

    def __post_init__(self) -> None:
        if any(len(centre) != len(PARTS) - 1 for centre in self.centres):
            raise ValueError("its lists do not match")

    @classmethod
    def learn(cls, table: NodeTable) -> Dates:
        names = table.of_kind("date")
        medians, spreads, centres = [], [], []
        empty: list[RowNumbers] = []
        for name in names:
            days = table.parsed(name, read_days)
            known = days[~np.isnan(days)]
            medians.append(float(np.median(known)))
            spreads.append(_spread(known))
            points = _points(known)
            same = points.min(axis=0) == points.max(axis=0)
            centres.append(tuple(np.where(same, points[0], points.mean(axis=0)).tolist()))
            empty.append(_empty(days))
        shares = marked_shares(table.sheet.rows, empty)
        return cls(names, tuple(medians), tuple(spreads), tuple(centres), shares)

    @property
    def features(self) -> tuple[str, ...]:
        parts = [f"{name} ({part})" for name in self.names for part in PARTS]
        return (*parts, *mark_names(self.names, self.empty_shares))

    def apply(self, table: NodeTable) -> Features:
        rows = table.sheet.rows
        features = np.zeros((rows, len(PARTS) * len(self.names)))
        empty: list[RowNumbers] = []
        columns = zip(self.names, self.medians, self.spreads, self.centres, strict=True)
        for at, (name, median, spread, centre) in enumerate(columns):
            days = table.parsed(name, read_days)
            known = ~np.isnan(days)
            first = at * len(PARTS)
            if spread > 0:
                spreads = (days[known] - median) / spread
                features[known, first] = np.clip(spreads, -MOST_SPREADS, MOST_SPREADS)
            features[known, first + 1 : first + len(PARTS)] = _points(days[known]) - centre
            empty.append(_empty(days))
        table.notes += empty_notes(self.names, empty, "average")
        return np.hstack([features, mark_empty(rows, empty, self.empty_shares)])


def read_days(sheet: Sheet, name: str) -> Floats:
    """Read a column of dates in days since 1970-01-01, UTC; NaN where a cell is empty.

    A date without a time zone counts as one of UTC.
    """
    column = sheet.columns[name]
    kind = None if isinstance(column, NumberColumn) else column.type
    if kind is not None and pa.types.is_date(kind):
        return _days(column.cast(pa.timestamp("ms")))
    if kind is not None and pa.types.is_timestamp(kind):
        return _days(column)
    if kind is not None and pa.types.is_nested(kind):
        raise UsageError(f"{sheet.path}, column {quoted(name)}: it holds {kind}, not dates.")
    cells = sheet.keys(name)
    filled = pc.not_equal(cells, "")
    spelled = pc.match_substring_regex(cells, ISO_DATE)
    bad = pc.index(pc.and_(filled, pc.invert(spelled)), True).as_py()
    if bad >= 0:
        raise _not_a_date(sheet, bad, name)
    cells = pc.if_else(filled, cells, None)
    try:
        return _parse_days(cells)
    except pa.ArrowInvalid:  # such as the 30th of February
        raise _not_a_date(sheet, _first_impossible(cells), name) from None


def _parse_days(cells: Any) -> Floats:
    """Parse dates that are spelled like `ISO_DATE`; raises ArrowInvalid if there is no such day."""
    with suppress(pa.ArrowInvalid):  # most columns are spelled as Arrow reads them
        return _days(cells.cast(pa.timestamp("s")))
    zoned = pc.match_substring_regex(cells, _ZONE)
    for pattern, spelling in (  # month and day, no parts of a second
        (r"^(\d{4})(\d{2})(\d{2})$", r"\1-\2-\3"),
        (r"^(\d{4})$", r"\1-01-01"),
        (r"^(\d{4})-?(\d{2})$", r"\1-\2-01"),
        (r"[.,]\d+", ""),
        (r" (Z|[+-])", r"\1"),
    ):
        cells = pc.replace_substring_regex(cells, pattern, spelling)
    days = _days(pc.if_else(zoned, None, cells).cast(pa.timestamp("s")))
    if pc.any(zoned).as_py():
        with_zone = _days(pc.if_else(zoned, cells, None).cast(pa.timestamp("s", "UTC")))
        days = np.where(np.isnan(days), with_zone, days)
    return days


def _days(column: Any) -> Floats:
    """Convert an Arrow array of timestamps to days since 1970-01-01, NaN where it is null."""
    units = _UNITS_PER_DAY[column.type.unit]
    return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.float64) / units


def _first_impossible(cells: Any) -> int:
    """Find the first cell that `_parse_days` refuses, by bisection."""
    parsed, refused = 0, len(cells)
    while refused - parsed > 1:
        middle = (parsed + refused) // 2
        try:
            _parse_days(cells.slice(parsed, middle - parsed))
            parsed = middle
        except pa.ArrowInvalid:
            refused = middle
    return parsed


def _not_a_date(sheet: Sheet, row: int, name: str) -> UsageError:
    cell = quoted(sheet.text(name)[row].as_py())
    what = (
        f"{cell} is not a date such as 2024-12-31 (ISO 8601); leave the cell empty if it is unknown"
    )
    return sheet.fault(row, name, what)


def _points(days: Floats) -> Floats:
    """Points on the circles of months (January first) and weekdays (Monday first): N × 4."""
    whole = np.floor(days).astype(np.int64)
    month = whole.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12
    weekday = (whole + 3) % 7  # 1970-01-01 was a Thursday
    angles = 2 * np.pi * np.stack([month / 12, weekday / 7], axis=1)
    return np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(-1, 4)


def _spread(days: Floats) -> float:
    """Robust standard deviation: from the quartiles, or the plain one if they are equal."""
    first, third = np.quantile(days, [0.25, 0.75])
    if first < third:
        return float(third - first) / NORMAL_QUARTILES
    return float(days.std()) if days.min() < days.max() else 0.0


def _empty(days: Floats) -> RowNumbers:
    return np.flatnonzero(np.isnan(days)).astype(np.int32)
