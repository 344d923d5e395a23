"""Dates: one parser for columns of text, of years and of Arrow's types.

Dates in text are ISO 8601: year, month and day with or without hyphens, a time and a time zone if
they have one; a year alone is its first day, a month alone as well. Whether 03/04/2024 is in March
or in April is never guessed; the caller says "day-first" or "month-first".
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kryograph.data.tables.sheet import Sheet, is_text
from kryograph.errors import UsageError
from kryograph.text import quoted

DATE_SHARE = 0.95
"""A column of text of which at least this share of the filled cells are dates is one of dates, and
its other cells are errors."""
TIMESTAMP = pa.timestamp("us")

_SPELLED = (is_text, pa.types.is_null, pa.types.is_integer, pa.types.is_floating)
_TIME = r"([01]\d|2[0-3])(:[0-5]\d(:[0-5]\d([.,]\d+)?)?)?"
_ZONE = r"(Z|[+-]([01]\d|2[0-3])(:?[0-5]\d)?)"
_MONTH, _DAY = r"(0[1-9]|1[0-2])", r"(0[1-9]|[12]\d|3[01])"
_FULL = rf"\d{{4}}-{_MONTH}-{_DAY}([T ]{_TIME}( ?{_ZONE})?)?"
# Years and numbers such as 20240131 are dates only in a column that is named as one of dates.
_RECOGNISED = rf"^{_FULL}$"
_READ = rf"^({_FULL}|\d{{4}}({_MONTH}{_DAY}|-?{_MONTH})?)$"
_ZONED = rf"[T ]{_TIME} ?{_ZONE}$"
_UNORDERED = r"^(\d{1,2})[./-](\d{1,2})[./-](\d{4})(?:[T ](\d{2}:\d{2}(?::\d{2})?))?$"


def is_dates(sheet: Sheet, name: str) -> bool:
    """Whether a column holds dates by its type, or ISO 8601 dates with a day as text."""
    return _is_date_type(sheet.arrow_type(name)) or _share(sheet, name, _RECOGNISED)


def is_ambiguous(sheet: Sheet, name: str) -> bool:
    """Whether a column of text holds dates that may be day-first or month-first."""
    return _share(sheet, name, _UNORDERED)


def ambiguity(sheet: Sheet, name: str) -> UsageError:
    """Build the error for a column of dates whose order is not known."""
    cells = sheet.text(name)
    row = pc.index(pc.match_substring_regex(cells, _UNORDERED), True).as_py()
    return sheet.fault(
        row,
        name,
        f"{quoted(cells[row].as_py())} may be day-first or month-first; say "
        f"--date {name}=day-first or --date {name}=month-first, or write it as 2024-12-31",
    )


def convert_dates(sheet: Sheet, name: str, order: str | None = None) -> None:
    """Replace a column by its dates, see `parse_dates`."""
    sheet.columns[name] = parse_dates(sheet, name, order)


def parse_dates(sheet: Sheet, name: str, order: str | None = None) -> Any:
    """Parse a column as Arrow timestamps without a zone, in UTC; null where a cell is empty.

    A date without a time zone counts as one of UTC. With `order`, "day-first" or "month-first",
    cells may also be dates such as 31/12/2024.
    """
    column = sheet.columns[name]
    kind = sheet.arrow_type(name)
    if _is_date_type(kind):
        # The zone is dropped after the conversion to UTC, which is how Arrow stores timestamps.
        unit = pa.timestamp("us", tz=kind.tz) if pa.types.is_timestamp(kind) else TIMESTAMP
        try:
            return column.cast(unit, safe=False).cast(TIMESTAMP)
        except pa.ArrowInvalid as error:
            raise UsageError(f"{sheet.path}, column {quoted(name)}: {error}.") from error
    if kind is not None and not any(is_kind(kind) for is_kind in _SPELLED):
        raise UsageError(f"{sheet.path}, column {quoted(name)}: it holds {kind}, not dates.")
    return _parse_text(sheet, name, order)


def _parse_text(sheet: Sheet, name: str, order: str | None) -> Any:
    """Parse dates that are spelled; all cells that are no dates are one error."""
    cells = sheet.keys(name)
    if order is not None:
        cells = _reordered(cells, order)
    filled = pc.not_equal(cells, "")
    with suppress(pa.ArrowInvalid):  # most columns are spelled as Arrow reads them
        if pc.all(pc.match_substring_regex(cells, r"^$|^\d{4}-")).as_py():
            return pc.if_else(filled, cells, None).cast(TIMESTAMP)
    spelled = pc.match_substring_regex(cells, _READ)
    plain = pc.if_else(spelled, _as_arrow_reads(cells), None)
    bad = np.flatnonzero(np.asarray(pc.and_(filled, pc.invert(spelled))) | ~_days_exist(plain))
    if bad.size:
        raise _not_dates(sheet, name, bad, order)
    zoned = pc.match_substring_regex(cells, _ZONED)
    local = pc.if_else(zoned, None, plain).cast(TIMESTAMP)
    world = pc.if_else(zoned, plain, None).cast(pa.timestamp("us", tz="UTC"))
    return pc.coalesce(local, world.cast(TIMESTAMP))


def _as_arrow_reads(cells: Any) -> Any:
    """Spell dates as Arrow reads them: month and day, and at most six digits after the seconds."""
    for pattern, spelling in (
        (r"^(\d{4})(\d{2})(\d{2})$", r"\1-\2-\3"),
        (r"^(\d{4})$", r"\1-01-01"),
        (r"^(\d{4})-?(\d{2})$", r"\1-\2-01"),
        (r"[.,](\d{1,6})\d*", r".\1"),
        (r" (Z|[+-])", r"\1"),
    ):
        cells = pc.replace_substring_regex(cells, pattern, spelling)
    return cells


def _days_exist(cells: Any) -> Any:
    """Whether the month of each date has its day; True where there is no date."""
    months = np.asarray(pc.utf8_slice_codeunits(cells, 0, 7).fill_null("1970-01"), "datetime64[M]")
    last = (months + 1).astype("datetime64[D]") - months.astype("datetime64[D]")
    day = pc.utf8_slice_codeunits(cells, 8, 10).fill_null("01").cast(pa.int64())
    # Arrow's calendar has no year 0.
    year_zero = np.asarray(pc.starts_with(cells, "0000").fill_null(False))
    return (np.asarray(day) <= last.astype(np.int64)) & ~year_zero


def _not_dates(sheet: Sheet, name: str, rows: Any, order: str | None) -> UsageError:
    row = int(rows[0])
    cell = sheet.text(name)[row].as_py()
    if order is None and pc.match_substring_regex(cell, _UNORDERED).as_py():
        return ambiguity(sheet, name)
    what = (
        f"{quoted(cell)} is not a date such as 2024-12-31; leave the cell empty if it is unknown, "
        f"or read the column as --category {name}"
    )
    return sheet.fault(row, name, what, rows.size - 1)


def _is_date_type(kind: Any) -> bool:
    """Whether an Arrow type is one of dates; None, the type of a `NumberColumn`, is not."""
    return kind is not None and (pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _share(sheet: Sheet, name: str, pattern: str) -> bool:
    """Whether most filled cells of a column of text match a pattern."""
    if not is_text(sheet.arrow_type(name)):
        return False
    cells = sheet.text(name)
    some = cells.slice(0, 1000)
    for part in (some, cells):  # the first rows are enough to say no to most columns
        filled = pc.sum(pc.not_equal(part, "")).as_py() or 0
        matching = pc.sum(pc.match_substring_regex(part, pattern)).as_py() or 0
        if matching < DATE_SHARE * filled or (not filled and part is cells):
            return False
    return True


def _reordered(cells: Any, order: str) -> Any:
    """Spell dates such as 31/12/2024 as 2024-12-31."""
    day, month = (r"\1", r"\2") if order == "day-first" else (r"\2", r"\1")
    padded = pc.replace_substring_regex(cells, r"^(\d)([./-])", r"0\1\2")
    padded = pc.replace_substring_regex(padded, r"^(\d\d)([./-])(\d[./-])", r"\1-0\3")
    pattern = r"^(\d\d)[./-](\d\d)[./-](\d{4})"
    return pc.replace_substring_regex(padded, pattern, rf"\3-{month}-{day}")
