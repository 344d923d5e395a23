"""Figure 3: what nodes look like to the three proposals, trained on the public split of Cora.

The features are those of the last hidden layer; t-SNE places them in the plane (`report.map`).
Colours are the true classes, of all nodes: they are looked at when all is learned.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kryograph.data import Dataset
from kryograph.graph import UNKNOWN
from kryograph.report.map import positions
from kryograph.systems import system
from kryograph.training.loop import Conditions
from kryograph.training.protocol import final_score

PROPOSALS = {
    "linear-snowball": "Linear Snowball",
    "snowball": "Snowball",
    "truncated-krylov": "Truncated Krylov",
}


@dataclass(frozen=True)
class Placed:
    """A trained system, and where its features lie."""

    system: str
    test_accuracy: float
    features: int
    places: npt.NDArray[np.float64]


def placed(
    dataset: Dataset,
    name: str,
    seed: int,
    conditions: Conditions | None = None,
) -> Placed:
    """Train a system with its default settings, and place what its output layer is given."""
    method = system(name)
    fit = method.fit(dataset.task(), seed=seed, conditions=conditions)
    seen = method.embed(fit.weights, dataset.graph, len(dataset.classes))
    return Placed(name, final_score(fit, dataset), seen.shape[1], positions(seen, seed))


def rows(dataset: Dataset, found: list[Placed]) -> list[dict[str, object]]:
    """A row for each system and node; a class that nobody knows is empty."""
    return [
        {
            "system": each.system,
            "node": node,
            "class": "" if label == UNKNOWN else dataset.classes[label],
            "x": float(x),
            "y": float(y),
        }
        for each in found
        for node, (label, (x, y)) in enumerate(zip(dataset.labels, each.places, strict=True))
    ]
