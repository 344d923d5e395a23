"""Tables that labelling writes: predictions and suggestions, as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from itertools import compress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph, Indices
from kryograph.labelling.label import LabelledGraph
from kryograph.labelling.node_names import node_names
from kryograph.labelling.node_ranking import node_ranks
from kryograph.systems.base import Probabilities

SUGGESTION_COLUMNS = ("id", "first", "second", "lead", "hops", "similar", "why")


def is_prediction(path: Path) -> bool:
    """Whether a file is a table of predictions that `write_predictions` wrote."""
    if not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.readline().startswith("id,predicted,probability,set,")


def write_predictions(
    path: Path,
    graph: Graph,
    classes: Sequence[str],
    probabilities: Probabilities,
    sets: npt.NDArray[np.bool_],
    known_labels: Indices | None = None,
    positive: int | None = None,
) -> None:
    """Write a CSV file with a row for each node.

    Args:
        path: The file.
        graph: The graph, for the names of its nodes.
        classes: Names of the classes.
        probabilities: Calibrated class probabilities, N × C.
        sets: Mask N × C of the classes in the prediction set of each node.
        known_labels: N class numbers for a column "given"; None leaves the column out.
        positive: Number of the positive one of two classes, for a last column "p_rank": the rank of
            the node by its probability; None leaves the column out.
    """
    heading = ["id", "predicted", "probability", "set", *(f"p({name})" for name in classes)]
    names, best = node_names(graph), probabilities.argmax(axis=1).tolist()
    rows = []
    for name, c, chances, members in zip(names, best, probabilities, sets, strict=True):
        numbers = [f"{p:.6f}" for p in chances]
        listed = " | ".join(compress(classes, members))
        rows.append([name, classes[c], numbers[c], listed, *numbers])
    if known_labels is not None:
        heading.insert(1, "given")
        for row, label in zip(rows, known_labels, strict=True):
            row.insert(1, "" if label == UNKNOWN else classes[label])
    if positive is not None:
        heading.append("p_rank")
        for row, rank in zip(rows, node_ranks(probabilities[:, positive]).tolist(), strict=True):
            row.append(str(rank))
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
