"""The folder that a fit leaves: predictions, suggestions, a model, a page; whole or not at all."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kryograph.errors import UsageError
from kryograph.files import check_output
from kryograph.graph import UNKNOWN, Graph, Indices
from kryograph.labelling.calibration import Calibration
from kryograph.labelling.label import LabelledGraph
from kryograph.systems.base import Probabilities

PREDICTIONS, SUGGESTIONS, MODEL, PAGE = "predictions.csv", "suggestions.csv", "model", "report.html"
PREDICTION_COLUMNS = ("id", "first", "second", "lead", "hops", "similar", "why")
"""Of the suggestions."""

SEPARATOR = " | "
"""Between the classes of a prediction set."""


def check_fit_output(out: Path, overwrite: bool, *, folder: bool) -> None:
    """An error, before any work is done, if `out` cannot or must not be written."""
    is_ours = _is_fit if folder else _is_prediction
    kind = "the folder of a fit" if folder else "a table of predictions"
    check_output(out, overwrite=overwrite, is_ours=is_ours, kind=f"{kind} that kryograph wrote")


def _is_fit(out: Path) -> bool:
    ours = {PREDICTIONS, SUGGESTIONS, MODEL, PAGE}
    found = {path.name for path in out.iterdir()} if out.is_dir() else set()
    return PREDICTIONS in found and found <= ours


def _is_prediction(out: Path) -> bool:
    if not out.is_file():
        return False
    with out.open(encoding="utf-8", errors="replace") as file:
        return file.readline().startswith("id,predicted,probability,set,")


def write_predictions(
    path: Path,
    graph: Graph,
    classes: Sequence[str],
    probabilities: Probabilities,
    sets: npt.NDArray[np.bool_],
    given: Indices | None = None,
) -> None:
    """A row for every node."""
    names = graph.names or [str(node) for node in range(graph.n)]
    head = ["id", *(["given"] if given is not None else []), "predicted", "probability", "set"]
    best = probabilities.argmax(axis=1)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*head, *(f"p({name})" for name in classes)])
        for node, name in enumerate(names):
            label = (
                []
                if given is None
                else ["" if given[node] == UNKNOWN else classes[int(given[node])]]
            )
            row = probabilities[node]
            likely = SEPARATOR.join(classes[int(c)] for c in np.flatnonzero(sets[node]))
            chances = [f"{p:.6f}" for p in row]
            writer.writerow(
                [name, *label, classes[int(best[node])], chances[best[node]], likely, *chances]
            )


def write_suggestions(path: Path, labelled: LabelledGraph) -> None:
    """A row for every node that is worth a label, best first."""
    names = labelled.graph.names or [str(node) for node in range(labelled.graph.n)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(PREDICTION_COLUMNS)
        for s in labelled.suggestions:
            first, second = (labelled.classes[c] for c in (s.first, s.second))
            hops = "" if s.hops is None else s.hops
            why = s.why(labelled.classes)
            writer.writerow([names[s.node], first, second, f"{s.lead:.4f}", hops, s.similar, why])


def read_suggestions(folder: Path) -> list[dict[str, str]]:
    """What `write_suggestions` wrote."""
    path = folder / SUGGESTIONS
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except FileNotFoundError:
        raise UsageError(f"There is no {path}: is {folder} the folder of a fit?") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path} cannot be read: {error}.") from None
    if any(set(row) != set(PREDICTION_COLUMNS) or None in row.values() for row in rows):
        raise UsageError(f"{path} does not have the columns {', '.join(PREDICTION_COLUMNS)}.")
    return rows


def calibration_of(extra: object) -> Calibration:
    """The calibration that goes with a model."""
    try:
        said = extra["calibration"]  # type: ignore[index]
        found = Calibration(*(float(said[k]) for k in ("temperature", "coverage", "threshold")))
    except (KeyError, TypeError, ValueError):
        raise UsageError(
            "The model has no calibration: was it written by `kryograph fit`?"
        ) from None
    if not (0 < found.temperature < 1e6 and 0 < found.coverage < 1 and 0 <= found.threshold <= 1):
        raise UsageError(f"The model's calibration cannot be: {found}.")
    return found
