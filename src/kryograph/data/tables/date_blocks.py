"""Block of dates: how long ago, at what time of the year and on which day of the week."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from kryograph.data.tables.dates import parse_dates
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
from kryograph.data.tables.sheet import Floats, RowNumbers, Sheet
from kryograph.graph import Features

PARTS = ("days", "month, sin", "month, cos", "weekday, sin", "weekday, cos")
"""Features of a date: days since the median, and points on the circles of months and weekdays."""

MOST_SPREADS = 5.0
"""A date this many spreads from the median counts as this far: 9999-12-31 often means "never"."""

NORMAL_QUARTILES = 1.349
"""Distance between the quartiles of a normal distribution, in standard deviations."""

_MICROSECONDS_PER_DAY = 86_400_000_000


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
    """Read a column of dates in days since 1970-01-01, UTC; NaN where a cell is empty."""
    ticks = parse_dates(sheet, name).cast(pa.int64()).to_numpy()
    return np.asarray(ticks, dtype=np.float64) / _MICROSECONDS_PER_DAY


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
