"""Rows of a benchmark on many graphs: one method on one draw of labels, and files of rows."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, cast

from kryograph.errors import UsageError

PORTFOLIO = "portfolio"
"""Name of the rows of `label_nodes` with its defaults, which is what `kryograph fit` does."""

BASIS = "basis"
"""Name of the row whose seconds are those of the basis that the heads share."""


@dataclass(frozen=True)
class GraphRow:
    """Result of one method on one draw of labels. Shares are between 0 and 1.

    Args:
        graph: Name of the graph.
        n: Number of nodes.
        per_class: Number of labels of each class, or half of a class if that is less; 0 for the
            row of the basis.
        seed: Seed of the draw and of everything random in the method.
        split_digest: Digest of the split.
        method: `PORTFOLIO`, `BASIS`, or a system as `member_systems` reads it.
        accuracy: Accuracy on the test nodes; None in the row of the basis and after an error.
        balanced_accuracy: Mean over the classes of the share of their test nodes that are right.
        coverage: Share of test nodes whose true class is in their 90 % set; portfolio only.
        set_size: Mean number of classes in these sets.
        calibration_error: Expected calibration error on the test nodes, in ten bins.
        held_out_accuracy: Accuracy on held-out labels, which the user of `fit` is told; portfolio
            only.
        held_out_low: Lower end of its 95 % interval.
        held_out_high: Upper end of its 95 % interval.
        interval_holds: Whether the interval contains the accuracy on the test nodes.
        seconds: Processor time; None if the method was not tried.
        error: Why there is no result; "" if there is one.
    """

    graph: str
    n: int
    per_class: int
    seed: int
    split_digest: str
    method: str
    accuracy: float | None = None
    balanced_accuracy: float | None = None
    coverage: float | None = None
    set_size: float | None = None
    calibration_error: float | None = None
    held_out_accuracy: float | None = None
    held_out_low: float | None = None
    held_out_high: float | None = None
    interval_holds: bool | None = None
    seconds: float | None = None
    error: str = ""

    @property
    def key(self) -> tuple[str, int, int, str]:
        """Graph, number of labels per class, seed and method."""
        return self.graph, self.per_class, self.seed, self.method


AnyRow = TypeVar("AnyRow")
"""A frozen dataclass whose fields are text, numbers or truth values, or None."""


def read_rows(path: Path, kind: type[AnyRow], command: str = "bench graphs") -> list[AnyRow]:
    """Rows of a CSV file that `append_row` wrote; none if there is no file.

    Args:
        path: The file.
        kind: Class of its rows.
        command: The command that writes such files, for the message about another file.
    """
    if not path.exists():
        return []
    columns = fields(cast(Any, kind))
    with path.open(newline="", encoding="utf-8") as file:
        try:
            return [
                kind(**{f.name: _value(str(f.type), row[f.name]) for f in columns})
                for row in csv.DictReader(file)
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"{path} was not written by `kryograph {command}`: {error}.") from None


def append_row(path: Path, row: Any) -> None:
    """Add a row by one write, so that rows of two processes do not mix."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        writer.writerow(f.name for f in fields(row))
    writer.writerow(_cell(getattr(row, f.name)) for f in fields(row))
    with path.open("a", encoding="utf-8") as file:
        file.write(text.getvalue())
        file.flush()
        os.fsync(file.fileno())


def _cell(value: object) -> object:
    return f"{value:.5f}" if isinstance(value, float) else value


def _value(kind: str, text: str) -> Any:
    """Value of a cell: the type is the first word of the field's annotation."""
    if kind.endswith("None") and text == "":
        return None
    if kind.startswith("bool"):
        return {"True": True, "False": False}[text]
    return {"str": str, "int": int, "float": float}[kind.split()[0]](text)
