"""Vectors: one parser for columns of lists of equally many numbers, such as embeddings.

In a table of text a vector is written as numbers between brackets or not, separated by commas,
semicolons or spaces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kryograph.data.tables.sheet import (
    LARGEST_WHOLE,
    NUMBER_SPELLING,
    Floats,
    RowNumbers,
    Sheet,
    is_text,
)
from kryograph.errors import UsageError
from kryograph.text import plural, quoted

_WRITTEN = r"^\[[-+.\deE,; \s]*\]$"


def is_vectors(sheet: Sheet, name: str) -> bool:
    """Whether a column holds lists of numbers, by its type or as text in square brackets."""
    kind = sheet.arrow_type(name)
    if not is_text(kind):
        return is_vector(kind)
    some = sheet.text(name).slice(0, 1000)
    filled = some.filter(pc.not_equal(some, ""))
    return len(filled) > 0 and bool(pc.all(pc.match_substring_regex(filled, _WRITTEN)).as_py())


def is_vector(kind: Any) -> bool:
    """Whether an Arrow type is a list of numbers; None, the type of a `NumberColumn`, is not."""
    is_list = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if kind is None or not any(is_kind(kind) for is_kind in is_list):
        return False
    return bool(pa.types.is_integer(kind.value_type) or pa.types.is_floating(kind.value_type))


def convert_vectors(sheet: Sheet, name: str) -> int:
    """Replace a column by lists of equally many float64; null where a cell is empty.

    Returns the length of the lists.
    """
    vectors, empty = read_vectors(sheet, name)
    length = int(vectors.shape[1])
    mask = None
    if empty.size:
        missing = np.zeros(sheet.rows, dtype=bool)
        missing[empty] = True
        mask = pa.array(missing)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), length, mask=mask)
    sheet.columns[name] = pa.chunked_array([lists])
    return int(length)


def read_vectors(sheet: Sheet, name: str, width: int | None = None) -> tuple[Floats, RowNumbers]:
    """Read a column of lists: N × d numbers, 0 where a cell is empty, and the rows of empty cells.

    All lists must have the length `width`, or that of the first one if it is None.
    """
    kind = sheet.arrow_type(name)
    if is_text(kind):
        column = _split(sheet, name)
    elif is_vector(kind):
        column = sheet.columns[name].combine_chunks()
    else:
        what = "numbers" if kind is None else kind
        raise UsageError(f"{sheet.path}, column {quoted(name)}: it holds {what}, not vectors.")
    lengths = np.asarray(pc.fill_null(pc.list_value_length(column), -1))
    filled = np.flatnonzero(lengths >= 0)
    width = _check_lengths(sheet, name, lengths, filled, width)
    numbers = pc.list_flatten(column).cast(pa.float64(), safe=False)
    values = np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero(~(np.abs(values) <= LARGEST_WHOLE))
    if bad.size:
        row = int(filled[bad[0] // width])
        what = (
            f"number {bad[0] % width + 1:,} of the vector is empty, not finite or too large; leave "
            "the whole cell empty if the vector is unknown"
        )
        raise sheet.fault(row, name, what, np.unique(bad // width).size - 1)
    if filled.size == sheet.rows:
        return values.reshape(-1, width), np.empty(0, np.int32)
    vectors = np.zeros((sheet.rows, width))
    vectors[filled] = values.reshape(-1, width)
    return vectors, np.flatnonzero(lengths < 0).astype(np.int32)


def _check_lengths(sheet: Sheet, name: str, lengths: Any, filled: Any, width: int | None) -> int:
    """Return the common length of the vectors; raise an error if they have none."""
    expected = f"the model was trained on {width}"
    if width is None:
        if not filled.size or not lengths[filled[0]]:
            raise UsageError(f"{sheet.path}, column {quoted(name)}: its vectors are empty.")
        width = int(lengths[filled[0]])
        expected = f"the first one, on {sheet.place(int(filled[0]))}, has {width:,}"
    bad = filled[lengths[filled] != width]
    if bad.size:
        row = int(bad[0])
        what = (
            f"the vector has {plural(int(lengths[row]), 'number')}, but {expected}; make them "
            f"equally long, or leave the column out with --ignore {name}"
        )
        raise sheet.fault(row, name, what, bad.size - 1)
    return width


def _split(sheet: Sheet, name: str) -> Any:
    """Split text into lists of numbers."""
    cells = sheet.text(name).combine_chunks()
    filled = pc.not_equal(cells, "")
    bare = pc.utf8_trim(cells, characters="[]() \t\n")
    spaced = pc.utf8_trim_whitespace(pc.replace_substring_regex(bare, r"[,;\s]+", " "))
    lists = pc.split_pattern(pc.if_else(filled, spaced, None), " ")
    wrong = pc.invert(pc.match_substring_regex(pc.list_flatten(lists), NUMBER_SPELLING))
    if pc.any(wrong).as_py():
        rows = pc.unique(pc.list_parent_indices(lists).filter(wrong))
        row = rows[0].as_py()
        what = f"{quoted(cells[row].as_py())} is not a list of numbers"
        raise sheet.fault(row, name, what, len(rows) - 1)
    return lists.cast(pa.list_(pa.float64()))
