"""Tables that labelling writes: predictions and suggestions, as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from kryograph.errors import UsageError
from kryograph.labelling.labelled_graph import LabelledGraph
from kryograph.labelling.node_names import node_names
from kryograph.labelling.predicted import PredictedGraph

SUGGESTION_COLUMNS = ("id", "first", "second", "lead", "hops", "similar", "why")


def is_prediction(path: Path) -> bool:
    """Whether a file is a table of predictions that `write_predictions` wrote."""
    if not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.readline().startswith("id,predicted,probability,set,")


def write_predictions(path: Path, predicted: PredictedGraph) -> None:
    """Write a CSV file with a row for each node."""
    heading, *rows = predicted.rows()
    _write_csv(path, heading, rows)


def write_suggestions(path: Path, labelled: LabelledGraph) -> None:
    """Write a CSV file with a row for each suggestion, the best one first."""
    names, classes = node_names(labelled.graph), labelled.classes
    rows = []
    for s in labelled.suggestions:
        hops = "" if s.hops is None else str(s.hops)
        first, second, lead = classes[s.first], classes[s.second], f"{s.lead:.4f}"
        rows.append([names[s.node], first, second, lead, hops, str(s.similar), s.why(classes)])
    _write_csv(path, SUGGESTION_COLUMNS, rows)


def write_disputed(path: Path, labelled: LabelledGraph) -> None:
    """Write a CSV file with a row for each disputed label; without any there is no file."""
    names, classes = node_names(labelled.graph), labelled.classes
    rows = [
        [names[one.node], classes[one.label], classes[one.predicted], f"{one.probability:.6f}"]
        for one in labelled.disputed
    ]
    if rows:
        _write_csv(path, ("id", "given", "predicted", "probability"), rows)


def read_suggestions(folder: Path) -> list[dict[str, str]]:
    """Read the suggestions in the folder of a fit, the best one first."""
    path = folder / "suggestions.csv"
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except FileNotFoundError:
        raise UsageError(f"There is no {path}: is {folder} the folder of a fit?") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path} cannot be read: {error}.") from None
    if any(set(row) != set(SUGGESTION_COLUMNS) or None in row.values() for row in rows):
        raise UsageError(f"{path} does not have the columns {', '.join(SUGGESTION_COLUMNS)}.")
    return rows


def _write_csv(path: Path, heading: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(heading)
        writer.writerows(rows)
