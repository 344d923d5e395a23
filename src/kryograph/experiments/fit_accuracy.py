"""What `kryograph fit` comes to on graphs whose labels are known: its own choice, on random draws.

Each draw gives it some labels of every class and no others. Test nodes are read once, after it has
chosen, trained and calibrated; `prototypes` is scored on the same nodes beside it.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from kryograph.data import Dataset
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN
from kryograph.labelling import label_nodes
from kryograph.labelling.label import FitProgress, ignore_progress
from kryograph.systems import system
from kryograph.systems.base import Probabilities


@dataclass(frozen=True)
class FitEvaluation:
    """What came of one draw of labels."""

    dataset: str
    per_class: int
    seed: int
    split_digest: str
    chosen: str
    held_out_accuracy: float
    """What a person is told."""
    test_accuracy: float
    prototypes_accuracy: float
    coverage: float
    """The share of test nodes whose true class is in their 90 % prediction set."""
    set_size: float
    """Classes in such a set, on average."""


def draw(
    dataset: Dataset, per_class: int, seed: int, progress: FitProgress = ignore_progress
) -> FitEvaluation:
    """Label the whole graph from the training labels of a random split, and look at its test nodes.

    Args:
        dataset: A graph with labels.
        per_class: How many of each class are given.
        seed: Of the split, and of all that is random in labelling.
        progress: Told after every fit.
    """
    split = dataset.split(per_class, seed=seed)
    given = np.full(dataset.graph.n, UNKNOWN)
    given[split.train] = dataset.labels[split.train]
    case = f"seed {seed} of {dataset.name}, {per_class} labels per class"
    found = label_nodes(
        dataset.graph,
        given,
        dataset.classes,
        seed=seed,
        suggestions=1,
        progress=lambda stage, done, total: progress(f"{case}, {stage}", done, total),
    )
    closed = system("prototypes").fit(dataset.task(split, validation=False), seed=seed)
    true = dataset.labels[split.test]

    def accuracy(probabilities: Probabilities) -> float:
        return float((probabilities[split.test].argmax(axis=1) == true).mean())

    sets = found.sets[split.test]
    chosen = found.model.system
    return FitEvaluation(
        dataset.name,
        per_class,
        seed,
        split.digest,
        str(chosen.settings.as_dict().get("members", chosen.name)),
        found.accuracy[0],
        accuracy(found.probabilities),
        accuracy(closed.predict_proba()),
        float(sets[np.arange(true.size), true].mean()),
        float(sets.sum(axis=1).mean()),
    )


def draws(
    dataset: Dataset,
    per_class: int,
    count: int,
    out: Path | None = None,
    progress: FitProgress = ignore_progress,
    on_draw: Callable[[FitEvaluation], None] = lambda made: None,
) -> list[FitEvaluation]:
    """Several draws, seeds 0, 1, …

    Args:
        dataset: A graph with labels.
        per_class: How many of each class are given.
        count: How many draws.
        out: A CSV file; draws that it has are not made again, each new one is added at once.
        progress: Told after every fit.
        on_draw: Told of each.
    """
    if count < 1:
        raise UsageError(f"--draws must be at least 1; it is {count}.")
    made = {(d.dataset, d.per_class, d.seed): d for d in _read(out)} if out else {}
    found = []
    for seed in range(count):
        one = made.get((dataset.name, per_class, seed))
        if one is None:
            one = draw(dataset, per_class, seed, progress)
            if out is not None:
                _add(out, one)
        found.append(one)
        on_draw(one)
    return found


def _read(path: Path) -> list[FitEvaluation]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    kinds = {"str": str, "int": int, "float": float}
    try:
        return [
            FitEvaluation(
                **{
                    each.name: kinds[str(each.type)](row[each.name])
                    for each in fields(FitEvaluation)
                }
            )
            for row in rows
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path} was not written by `kryograph bench fit`: {error}.") from None


def _add(path: Path, made: FitEvaluation) -> None:
    """One write for each row, so that no other process's is inside it."""
    values = {
        name: f"{value:.4f}" if isinstance(value, float) else str(value)
        for name, value in asdict(made).items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    heading = "" if path.exists() else ",".join(values) + "\n"
    with path.open("a", encoding="utf-8") as file:
        file.write(heading + ",".join(values.values()) + "\n")
        file.flush()
        os.fsync(file.fileno())
