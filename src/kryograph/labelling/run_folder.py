"""Run folder: the folder of a fit, written as a whole and read again without the original tables.

`WRITERS` holds one function per file; another format is one more entry. `run.json` and `run.npz`
hold what the model does not: the graph, the given labels, the predictions and the held-out ones.
`run.json` has digests of itself, of `run.npz` and of the model. Reading runs no code from a folder.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from kryograph.data.tables import Plan, PlanLine
from kryograph.errors import UsageError
from kryograph.files import check_output, replaced, sha256
from kryograph.graph import Features, Graph
from kryograph.labelling.calibration import Calibration, positive_class
from kryograph.labelling.candidates import TriedSystem
from kryograph.labelling.cross_validation import HeldOut
from kryograph.labelling.labelled_graph import LabelledGraph
from kryograph.labelling.output import (
    is_prediction,
    write_disputed,
    write_predictions,
    write_suggestions,
)
from kryograph.labelling.suggestions import Suggestion
from kryograph.merging import Cleaning
from kryograph.model import DESCRIPTION, Model
from kryograph.systems import system

PREDICTIONS, SUGGESTIONS, MODEL, PAGE = "predictions.csv", "suggestions.csv", "model", "report.html"
DISPUTED, RUN, ARRAYS = "disputed.csv", "run.json", "run.npz"

RUN_FORMAT = 1
"""Version of `run.json` and `run.npz`. Versions up to this one can be read."""

AGAIN = "Fit again, or copy the whole folder again."


def check_fit_output(out: Path, overwrite: bool, *, folder: bool) -> None:
    """Check, before any work is done, that `out` may and can be written.

    With `folder`, it is the folder of `fit`; otherwise it is the file of `predict`.
    """
    is_ours = _is_fit if folder else is_prediction
    kind = "the folder of a fit" if folder else "a table of predictions"
    check_output(out, overwrite=overwrite, is_ours=is_ours, kind=f"{kind} that kryograph wrote")


def _is_fit(out: Path) -> bool:
    names = {path.name for path in out.iterdir()} if out.is_dir() else set()
    return PREDICTIONS in names and names <= {*WRITERS, RUN, PAGE}


def write(out: Path, labelled: LabelledGraph, page: str | None = None) -> None:
    """Write the folder of a fit, completely or not at all; `page` is HTML, None for no page."""
    with replaced(out) as new:
        new.mkdir()
        for name, writer in WRITERS.items():
            writer(new / name, labelled)
        _write_run(new, labelled)
        if page is not None:
            (new / PAGE).write_text(page, encoding="utf-8")


def load_run(folder: Path | str) -> LabelledGraph:
    """Read the folder of a fit: the result of `label_nodes` that it was written from.

    Raises:
        UsageError: If the folder is none of a fit, is damaged or was changed.
    """
    folder = Path(folder)
    path = folder / RUN
    run = _read_run(path)
    for name, expected in run["sha256"].items():
        if _sha256(folder / name) != expected:
            raise UsageError(
                f"{folder / name} is not the file that {RUN} belongs to: it was cut off or "
                f"changed. {AGAIN}"
            )
    model = Model.load(folder / MODEL)
    try:
        with np.load(io.BytesIO((folder / ARRAYS).read_bytes()), allow_pickle=False) as archive:
            arrays = dict(archive)
        return _build(model, arrays, run)
    except KeyError as error:
        raise UsageError(f"{path} or {ARRAYS} has no entry {error.args[0]!r}.") from None
    except (TypeError, ValueError, AttributeError, OSError, zipfile.BadZipFile) as error:
        raise UsageError(f"{path} or {ARRAYS} has a wrong entry: {error}. {AGAIN}") from None


def _build(model: Model, arrays: Mapping[str, Any], run: Mapping[str, Any]) -> LabelledGraph:
    graph = Graph(
        _matrix(arrays, "adjacency"),
        _matrix(arrays, "features"),
        _texts(arrays, "names"),
        Cleaning(**run["cleaning"]),
    )
    held = HeldOut(
        arrays["held_out.nodes"],
        arrays["held_out.labels"],
        arrays["held_out.probabilities"],
        arrays["held_out.importance"],
        float(run["variance"]),
    )
    tried = [
        TriedSystem(
            system(one["system"], one["settings"], operator=one["operator"]),
            one["accuracy"],
            one["epochs"],
            one["weight"],
        )
        for one in run["candidates"]
    ]
    return LabelledGraph(
        graph=graph,
        given_labels=arrays["given_labels"],
        classes=model.classes,
        candidates=tuple(tried),
        held_out=held,
        model=model,
        epochs=int(run["epochs"]),
        probabilities=arrays["probabilities"],
        calibration=Calibration.from_extra(model.extra),
        suggestions=tuple(Suggestion(**one) for one in run["suggestions"]),
        balanced=bool(run["balanced"]),
        notes=tuple(run["notes"]),
        feature_names=_texts(arrays, "feature_names"),
        positive=positive_class(model.extra, len(model.classes)),
        plan=None if run["plan"] is None else Plan([PlanLine(**line) for line in run["plan"]]),
    )


def _write_run(folder: Path, labelled: LabelledGraph) -> None:
    """Write `run.json`, with digests of files that are there already."""
    run = {
        "format": RUN_FORMAT,
        "kryograph": version("kryograph"),
        "sha256": {name: sha256(folder / name) for name in (ARRAYS, f"{MODEL}/{DESCRIPTION}")},
        "cleaning": asdict(labelled.graph.cleaning),
        "variance": labelled.held_out.variance,
        "candidates": [
            {
                "system": one.system.name,
                "settings": one.system.settings.as_dict(),
                "operator": one.system.operator,
                "accuracy": one.accuracy,
                "epochs": one.epochs,
                "weight": one.weight,
            }
            for one in labelled.candidates
        ],
        "epochs": labelled.epochs,
        "suggestions": [asdict(one) for one in labelled.suggestions],
        "balanced": labelled.balanced,
        "notes": list(labelled.notes),
        "plan": None if labelled.plan is None else labelled.plan.as_dicts(),
    }
    run["digest"] = _digest(run)
    text = json.dumps(run, indent=1, ensure_ascii=False)
    (folder / RUN).write_text(text + "\n", encoding="utf-8")


def _write_arrays(path: Path, labelled: LabelledGraph) -> None:
    graph, held = labelled.graph, labelled.held_out
    arrays = {
        **_matrix_arrays("adjacency", graph.adjacency),
        **_matrix_arrays("features", graph.features),
        **_text_arrays("names", graph.names),
        **_text_arrays("feature_names", labelled.feature_names),
        "given_labels": labelled.given_labels,
        "probabilities": labelled.probabilities,
        "held_out.nodes": held.nodes,
        "held_out.labels": held.labels,
        "held_out.probabilities": held.probabilities,
        "held_out.importance": held.importance,
    }
    np.savez(path, allow_pickle=False, **arrays)


WRITERS: dict[str, Callable[[Path, LabelledGraph], None]] = {
    PREDICTIONS: lambda path, labelled: write_predictions(path, labelled.predicted),
    DISPUTED: write_disputed,
    SUGGESTIONS: write_suggestions,
    MODEL: lambda path, labelled: labelled.model.write(path),
    ARRAYS: _write_arrays,
}
"""Functions that write the parts of the folder of a fit, by the names of the parts."""


def _matrix_arrays(name: str, matrix: Features) -> dict[str, Any]:
    """Arrays of a dense or CSR matrix."""
    if not isinstance(matrix, sp.csr_array):
        return {name: matrix}
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    shape = {f"{name}.shape": np.array(matrix.shape)}
    return {f"{name}.{part}": array for part, array in parts.items()} | shape


def _matrix(arrays: Mapping[str, Any], name: str) -> Any:
    if name in arrays:
        return arrays[name]
    data, indices, indptr, shape = (
        arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr", "shape")
    )
    matrix = sp.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
    matrix.check_format(full_check=True)
    return matrix


def _text_arrays(name: str, texts: Sequence[str] | None) -> dict[str, Any]:
    """Texts as one array of bytes and the ends of the texts in it; nothing for None."""
    if texts is None:
        return {}
    parts = [text.encode() for text in texts]
    return {
        name: np.frombuffer(b"".join(parts), dtype=np.uint8),
        f"{name}.ends": np.cumsum([len(part) for part in parts], dtype=np.int64),
    }


def _texts(arrays: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    if name not in arrays:
        return None
    content, ends = arrays[name].tobytes(), arrays[f"{name}.ends"].tolist()
    starts = [0, *ends][:-1] if ends else []
    return tuple(content[start:end].decode() for start, end in zip(starts, ends, strict=True))


def _read_run(path: Path) -> dict[str, Any]:
    """Read run.json; check its format and its digest."""
    try:
        run = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise UsageError(
            f"There is no {path}: is {path.parent} the folder of a fit? Folders of older versions "
            "cannot be read again: fit again."
        ) from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}. {AGAIN}") from None
    number = run.get("format") if isinstance(run, dict) else None
    if type(number) is not int or number < 1:
        raise UsageError(f"{path} does not describe a fit of kryograph.")
    if number > RUN_FORMAT:
        raise UsageError(
            f"{path} has format {number}, written by kryograph {run.get('kryograph')}. kryograph "
            f"{version('kryograph')} reads formats up to {RUN_FORMAT}: install a newer version."
        )
    if run.pop("digest", None) != _digest(run):
        raise UsageError(f"{path} was changed after it was written. {AGAIN}")
    return dict(run)


def _digest(run: Mapping[str, Any]) -> str:
    text = json.dumps(run, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _sha256(path: Path) -> str:
    try:
        return sha256(path)
    except FileNotFoundError:
        raise UsageError(f"There is no {path}: copy the whole folder again.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
