"""Columns of dates: text or Arrow's types become one type, timestamps in UTC.

Dates are ISO 8601, such as 2024-12-31 or 2024-12-31T09:30:00Z. Whether 03/04/2024 is in March or in
April is never guessed; the caller says "day-first" or "month-first".
"""

from __future__ import annotations

from datetime import UTC, datetime
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

_DAY = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
_TIME = r"\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?"
_ZONE = r"(Z|[+-]\d{2}:?\d{2})"
_ISO = rf"^{_DAY}([T ]{_TIME} ?{_ZONE}?)?$"
_PARTS = r"^(\d{1,2})[./-](\d{1,2})[./-](\d{4})(?:[T ](\d{2}:\d{2}(?::\d{2})?))?$"


def is_dates(sheet: Sheet, name: str) -> bool:
    """Whether a column holds dates by its type, or ISO 8601 dates as text."""
    return is_date_type(sheet.arrow_type(name)) or _share(sheet, name, _ISO)


def is_date_type(kind: Any) -> bool:
    """Whether an Arrow type is one of dates; None, the type of a `NumberColumn`, is not."""
    return kind is not None and (pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def is_ambiguous(sheet: Sheet, name: str) -> bool:
    """Whether a column of text holds dates that may be day-first or month-first."""
    return _share(sheet, name, _PARTS)


def ambiguity(sheet: Sheet, name: str) -> UsageError:
    """Build the error for a column of dates whose order is not known."""
    cells = sheet.text(name)
    row = pc.index(pc.match_substring_regex(cells, _PARTS), True).as_py()
    return sheet.fault(
        row,
        name,
        f"{quoted(cells[row].as_py())} may be day-first or month-first; say "
        f"--date {name}=day-first or --date {name}=month-first, or write it as 2024-12-31",
    )


def convert_dates(sheet: Sheet, name: str, order: str | None) -> None:
    """Replace a column by timestamps without a zone, in UTC; null where a cell is empty.

    With `order`, "day-first" or "month-first", the cells are dates such as 31/12/2024.
    """
    kind = sheet.arrow_type(name)
    column = sheet.columns[name]
    if is_date_type(kind):
        # The zone is dropped after the conversion to UTC, which is how Arrow stores timestamps.
        unit = pa.timestamp("us", tz=kind.tz) if pa.types.is_timestamp(kind) else TIMESTAMP
        try:
            sheet.columns[name] = column.cast(unit, safe=False).cast(TIMESTAMP)
        except pa.ArrowInvalid as error:
            raise UsageError(f"{sheet.path}, column {quoted(name)}: {error}.") from error
        return
    if kind is not None and not is_text(kind):
        raise UsageError(f"{sheet.path}, column {quoted(name)}: it holds {kind}, not dates.")
    cells = sheet.text(name)
    if order is not None:
        cells = _reordered(cells, order)
    sheet.columns[name] = _parsed(sheet, name, cells)


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


def _parsed(sheet: Sheet, name: str, cells: Any) -> Any:
    """Parse text as timestamps; the first cell that is no date is an error."""
    filled = pc.not_equal(cells, "")
    fitting = pc.match_substring_regex(cells, _ISO)
    bad = np.flatnonzero(np.asarray(pc.and_(filled, pc.invert(fitting))))
    values = None
    if not bad.size:
        zoned = pc.match_substring_regex(cells, rf"[T ]{_TIME} ?{_ZONE}$")
        plain = pc.replace_substring_regex(cells, r"[ ]?(Z|[+-]\d{2}:?\d{2})$", r"\1")
        try:
            local = pc.if_else(pc.and_(filled, pc.invert(zoned)), cells, None).cast(TIMESTAMP)
            world = pc.if_else(zoned, plain, None).cast(pa.timestamp("us", tz="UTC"))
            values = pc.coalesce(local, world.cast(TIMESTAMP))
        except pa.ArrowInvalid:
            values = None  # a day that its month does not have, or more digits than microseconds
    if values is None:
        rows: list[datetime | None] = []
        wrong = []
        for row, cell in enumerate(sheet.text(name).to_pylist()):
            rows.append(_moment(cells[row].as_py()))
            if cell and rows[-1] is None:
                wrong.append(row)
        if wrong:
            cell = quoted(sheet.text(name)[wrong[0]].as_py())
            what = (
                f"{cell} is not a date such as 2024-12-31; leave the cell empty if it is unknown, "
                f"or read the column as --category {name}"
            )
            raise sheet.fault(wrong[0], name, what, len(wrong) - 1)
        values = pa.chunked_array([pa.array(rows, type=TIMESTAMP)])
    return values


def _moment(cell: str) -> datetime | None:
    """Parse one ISO 8601 date, in UTC; None if it is none."""
    try:
        moment = datetime.fromisoformat(cell.replace(",", "."))
    except ValueError:
        return None
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
