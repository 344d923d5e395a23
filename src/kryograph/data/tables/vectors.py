"""Columns of vectors: lists of equally many numbers, such as embeddings.

In a table of text a vector is written as numbers between brackets or not, separated by commas,
semicolons or spaces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kryograph.data.tables.sheet import LARGEST_WHOLE, Sheet, is_text
from kryograph.errors import UsageError
from kryograph.text import quoted

_WRITTEN = r"^\[[-+.\deE,; \s]*\]$"


def is_vectors(sheet: Sheet, name: str) -> bool:
    """Whether a column holds lists of numbers, by its type or as text in square brackets."""
    kind = sheet.arrow_type(name)
    if is_list(kind):
        return bool(_is_number(kind.value_type))
    if not is_text(kind):
        return False
    some = sheet.text(name).slice(0, 1000)
    filled = some.filter(pc.not_equal(some, ""))
    return len(filled) > 0 and bool(pc.all(pc.match_substring_regex(filled, _WRITTEN)).as_py())


def is_list(kind: Any) -> bool:
    """Whether an Arrow type is one of lists; None, the type of a `NumberColumn`, is not."""
    return kind is not None and (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def convert_vectors(sheet: Sheet, name: str) -> int:
    """Replace a column by lists of equally many float64; null where a cell is empty.

    Returns the length of the lists. Lists of different lengths are an error.
    """
    kind = sheet.arrow_type(name)
    column = sheet.columns[name]
    if is_text(kind):
        column = _split(sheet, name)
    elif not is_list(kind) or not _is_number(kind.value_type):
        what = "numbers" if kind is None else kind
        raise UsageError(f"{sheet.path}, column {quoted(name)}: it holds {what}, not vectors.")
    lists = column.cast(pa.large_list(pa.float64())).combine_chunks()
    lengths = np.asarray(pc.list_value_length(lists).fill_null(-1))
    filled = np.flatnonzero(lengths >= 0)
    if not filled.size or not lengths[filled[0]]:
        raise UsageError(f"{sheet.path}, column {quoted(name)}: its vectors are empty.")
    length = int(lengths[filled[0]])
    bad = np.flatnonzero((lengths >= 0) & (lengths != length))
    if bad.size:
        row = int(bad[0])
        what = (
            f"the vector has {lengths[row]:,} numbers, but the first one, on "
            f"{sheet.place(int(filled[0]))}, has {length:,}; make them equally long, or leave the "
            f"column out with --ignore {name}"
        )
        raise sheet.fault(row, name, what, bad.size - 1)
    flat = lists.flatten()
    values = np.asarray(flat.to_numpy(zero_copy_only=False), dtype=np.float64)
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(~(np.abs(values) <= LARGEST_WHOLE))
    if wrong.size:
        row = int(filled[wrong[0] // length])
        what = "a number of the vector is empty, not finite or too large"
        raise sheet.fault(row, name, what, np.unique(wrong // length).size - 1)
    complete = np.zeros((sheet.rows, length))
    complete[filled] = values.reshape(-1, length)
    mask = None if filled.size == sheet.rows else pa.array(lengths < 0)
    sheet.columns[name] = pa.chunked_array(
        [pa.FixedSizeListArray.from_arrays(pa.array(complete.ravel()), length, mask=mask)]
    )
    return length


def _split(sheet: Sheet, name: str) -> Any:
    """Split text into lists of numbers."""
    cells = sheet.text(name)
    filled = pc.not_equal(cells, "")
    bare = pc.utf8_trim(cells, characters="[]() \t\n")
    spaced = pc.utf8_trim_whitespace(pc.replace_substring_regex(bare, r"[,;\s]+", " "))
    lists = pc.split_pattern(pc.if_else(filled, spaced, None), " ")
    try:
        return lists.cast(pa.list_(pa.float64()))
    except pa.ArrowInvalid:
        for row, cell in enumerate(lists.to_pylist()):
            try:
                [float(part) for part in cell or ()]
            except ValueError:
                what = f"{quoted(cells[row].as_py())} is not a list of numbers"
                raise sheet.fault(row, name, what) from None
        raise


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
