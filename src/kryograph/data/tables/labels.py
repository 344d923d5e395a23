"""Labels of the nodes: a column of the node table, or a table of their own.

A table of labels has a row for each decision, as a journal of labelling has: the last row of a node
counts, also if its label is empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kryograph.data.tables.node_table import distinct, too_many
from kryograph.data.tables.options import TableOptions
from kryograph.data.tables.overlap import can_be_ids, share_of_ids
from kryograph.data.tables.roles import ID, LABEL, by_name, is_id_name, plain
from kryograph.data.tables.sheet import NUMBER_SPELLING, Sheet, text_column, whole_keys
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Indices
from kryograph.text import plural, quoted, quoted_list

NOT_KNOWN = {"na", "n/a", "nan", "null", "none", "?", "-", "unknown", "unlabeled", "unlabelled"} | {
    *("-1", "missing", "tbd", "todo", "undefined", "not known", "nil")
}
"""Labels in lower case that may be meant as "the label is not known"."""


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of all nodes, as numbers, and the names of the classes."""

    numbers: Indices
    """N class numbers, `UNKNOWN` where the label is not known."""
    classes: tuple[str, ...]
    """Names of the classes, sorted, as numbers if they are."""
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> str:
        """Number of nodes of each class, for the plan; of many classes the first five.

        >>> Labels(np.array([1, -1, 0, 1]), ("no", "yes")).counts
        'no 1, yes 2, unknown 1'
        """
        times = np.bincount(self.numbers + 1, minlength=len(self.classes) + 1).tolist()
        parts = [f"{name} {n:,}" for name, n in zip(self.classes, times[1:], strict=True)]
        if len(parts) > 6:
            parts = [f"{len(parts):,} classes", *parts[:5], "…"]
        return ", ".join([*parts, f"unknown {times[0]:,}"] if times[0] else parts)


@dataclass(frozen=True)
class LabelColumns:
    """Columns of a table of labels."""

    id: str
    label: str


def read_labels(sheet: Sheet, column: str, options: TableOptions) -> Labels:
    """Read the labels of the rows of a sheet."""
    most = too_many(sheet)
    names = distinct(sheet, column, most + len(options.unknown_label))
    classes = tuple(name for name in names or () if name not in options.unknown_label)
    if names is None or len(classes) > most:
        advice = "is this the column of labels?"
        if pc.all(pc.match_substring_regex(sheet.text(column), rf"^$|{NUMBER_SPELLING}")).as_py():
            advice = (
                "labels are classes, not numbers: write ranges such as 'low' and 'high', or name "
                "another column."
            )
        raise UsageError(
            f"{sheet.path}, column {quoted(column)}: more than {most:,} different values, too "
            f"many for classes; {advice}"
        )
    with suppress(ValueError):  # names that are not numbers are sorted already
        classes = tuple(sorted(classes, key=int))
    values = pa.array(classes, type=pa.string())
    codes = pc.index_in(sheet.keys(column), value_set=values).fill_null(UNKNOWN)
    numbers = np.asarray(codes.to_numpy(), dtype=np.int64)
    notes = [
        f"The label {quoted(name)} counts as a class; if it means that the label is not known, "
        f"add --unknown-label {name}."
        for name in classes
        if name.lower() in NOT_KNOWN
    ]
    return Labels(numbers, classes, tuple(notes))


def label_columns(sheet: Sheet, options: TableOptions, id: str | None, ids: Any) -> LabelColumns:
    """Find the columns of a table of labels; `id` is the column of ids of the node table."""
    names = [name for name in sheet.names if can_be_ids(sheet, name)]
    label = options.label if options.label in sheet.names else None
    spelled = {plain(name): name for name in reversed(names)}
    candidates = [options.id, id, *(spelled.get(known) for known in ID)]
    candidates += [name for name in names if is_id_name(name)]
    known = [name for name in candidates if name in names and name != label]
    others = [name for name in names if name not in known and name != label]
    best = max(
        dict.fromkeys([*known, *others]),
        key=lambda name: share_of_ids(sheet.keys(str(name)).slice(0, 1000), ids),
        default=None,
    )
    if best is None:
        raise UsageError(f"{sheet.path} has no column of ids of nodes: name it with --id.")
    rest = [name for name in sheet.names if name != best]
    if label is None:
        label = by_name(rest, LABEL) or (rest[0] if len(rest) == 1 else None)
    if label is None and options.label is not None:
        sheet.require(options.label, " of labels")
    if label is None:
        raise UsageError(
            f"Which column of {sheet.path} has the labels? Say --label NAME. Its columns are: "
            f"{quoted_list(rest[:12])}{', …' if len(rest) > 12 else ''}."
        )
    return LabelColumns(best, label)


def last_labels(
    sheet: Sheet, columns: LabelColumns, rows: Indices, nodes: Sheet
) -> tuple[Sheet, list[str]]:
    """Build a sheet of one column, the labels, with a row for each node.

    `rows` are the node numbers of the rows of the table of labels, negative for a row that is left
    out. Also returns notes.
    """
    cells = whole_keys(sheet.text(columns.label)).to_pylist()
    values = [""] * nodes.rows
    last = np.full(nodes.rows, -1)
    for row, node in enumerate(rows.tolist()):
        if node >= 0:
            values[node] = cells[row]
            last[node] = row
    listed = rows[rows >= 0]
    repeated = listed.size - np.unique(listed).size
    notes = []
    if repeated:
        notes.append(
            f"{plural(repeated, 'row')} of {sheet.path} replaced by a later row of the same node: "
            "the last one counts."
        )

    def place(node: int) -> str:
        return sheet.place(int(last[node])) if last[node] >= 0 else nodes.place(node)

    table = Sheet(
        sheet.path,
        {columns.label: text_column(values)},
        nodes.rows,
        place,
        missing=sheet.missing,
    )
    return table, notes


def likely_unknown(classes: Sequence[str]) -> list[str]:
    """Return the classes whose names may mean that the label is not known."""
    return [name for name in classes if name.lower() in NOT_KNOWN]
