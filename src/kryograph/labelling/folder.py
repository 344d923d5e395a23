"""The folder that a fit leaves: predictions, suggestions, a model, a page; whole or not at all."""

from __future__ import annotations

import csv
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kryograph.errors import KryographError, UsageError
from kryograph.graph import UNKNOWN, Graph, Indices
from kryograph.labelling.calibration import Calibration
from kryograph.labelling.fit import Labelled
from kryograph.systems.base import Probabilities

PREDICTIONS, SUGGESTIONS, MODEL, PAGE = "predictions.csv", "suggestions.csv", "model", "report.html"
SEPARATOR = " | "
"""Between the classes of a prediction set."""


def check_free(out: Path, overwrite: bool) -> None:
    """An error if something is there that must not be written over."""
    if out.exists() and not overwrite:
        raise UsageError(f"{out} exists already: choose another name, or add --overwrite.")
    if out.exists() and overwrite and not _is_ours(out):
        raise UsageError(f"{out} was not written by kryograph, so it is not overwritten.")


def _is_ours(out: Path) -> bool:
    """Whether it is something that a fit or a prediction wrote."""
    if out.is_file():
        with out.open(encoding="utf-8", errors="replace") as file:
            return file.readline().startswith("id,")
    return (out / MODEL / "model.json").is_file() and (out / PREDICTIONS).is_file()


@contextmanager
def replaced(out: Path) -> Iterator[Path]:
    """A new place beside `out`, which takes its name when everything is written."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        half = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    except OSError as error:
        raise KryographError(f"{out} cannot be written: {error.strerror}.") from None
    try:
        new = half / out.name
        yield new
        if out.exists():
            os.replace(out, half / "old")
        os.replace(new, out)
    except OSError as error:
        raise KryographError(f"{out} cannot be written: {error.strerror or error}.") from None
    finally:
        shutil.rmtree(half, ignore_errors=True)


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


def write_suggestions(path: Path, labelled: Labelled) -> None:
    """A row for every node that is worth a label, best first."""
    names = labelled.graph.names or [str(node) for node in range(labelled.graph.n)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "first", "second", "lead", "hops", "similar", "why"])
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
            return list(csv.DictReader(file))
    except FileNotFoundError:
        raise UsageError(f"There is no {path}: is {folder} the folder of a fit?") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path} cannot be read: {error}.") from None


def calibration_of(extra: object) -> Calibration:
    """The calibration that goes with a model."""
    try:
        said = extra["calibration"]  # type: ignore[index]
        found = Calibration(*(float(said[k]) for k in ("temperature", "coverage", "threshold")))
    except (KeyError, TypeError, ValueError):
        raise UsageError(
            "The model has no calibration: was it written by `kryograph fit`?"
        ) from None
    if not (found.temperature > 0 and 0 < found.coverage < 1 and 0 <= found.threshold <= 1):
        raise UsageError(f"The model's calibration cannot be: {found}.")
    return found
