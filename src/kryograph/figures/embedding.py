"""Figure 3: what nodes look like to the three proposals, trained on the public split of Cora.

The features are those of the last hidden layer; t-SNE places them in the plane (`report.map`).
Colours are the true classes, of all nodes: they are looked at when all is learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kryograph.data import Dataset
from kryograph.figures import style
from kryograph.figures.style import letter, panels, styled
from kryograph.graph import UNKNOWN
from kryograph.report.layout import positions
from kryograph.runs.perform import final_score
from kryograph.systems import system
from kryograph.training.loop import Conditions

CLASSES = (
    style.BLUE,
    style.ORANGE,
    style.GREEN,
    style.PINK,
    style.SKY,
    style.RED,
    style.YELLOW,
    style.BLACK,
    style.GREY,
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")


@styled
def draw_scatter(dataset: Dataset, found: Sequence[Placed]) -> Figure:
    """A panel for each system: every node where t-SNE puts it, in the colour of its class."""
    figure, axes = panels(1, len(found), 2.75)
    order = np.random.default_rng(0).permutation(dataset.graph.n)
    for axis, placed in zip(axes, found, strict=True):
        low, high = placed.places.min(axis=0), placed.places.max(axis=0)
        # t-SNE's scale means nothing: each cloud fills its square.
        places = (placed.places - (low + high) / 2) / (high - low).max()
        for label, name in enumerate(dataset.classes):
            nodes = order[dataset.labels[order] == label]
            x, y = places[nodes].T
            axis.scatter(
                x,
                y,
                s=3.5,
                marker=MARKERS[label % len(MARKERS)],
                color=CLASSES[label % len(CLASSES)],
                linewidth=0,
                label=name,
            )
        axis.set(xlim=(-0.52, 0.52), ylim=(-0.52, 0.52), box_aspect=1)
        _bare(axis)
        axis.set_xlabel(f"test accuracy {100 * placed.test_accuracy:.1f} %")
    letter(axes, [EMBEDDED_SYSTEMS[placed.system] for placed in found])
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, markerscale=2.5)
    return figure


def _bare(axis: Axes) -> None:
    """Without ticks and frame: places of t-SNE have no unit."""
    axis.set_xticks([])
    axis.set_yticks([])
    axis.grid(False)
    for spine in axis.spines.values():
        spine.set_visible(False)


EMBEDDED_SYSTEMS = {
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


def embedding_rows(dataset: Dataset, found: list[Placed]) -> list[dict[str, object]]:
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
