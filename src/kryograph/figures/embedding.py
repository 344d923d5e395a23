"""Figure 3: the hidden features that the three proposals learn, placed in the plane by t-SNE.

The systems are trained on one split. Colours are the true classes of all nodes, which are
read after training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from kryograph.data import Dataset
from kryograph.data.splits import PUBLIC
from kryograph.figures import style
from kryograph.figures.figure import FigureResult
from kryograph.figures.style import add_legend, letter_titles, panels, styled
from kryograph.graph import UNKNOWN
from kryograph.report.layout import FINE, positions
from kryograph.runs.job import DEFAULT_STOP
from kryograph.runs.perform import final_score, true_classes
from kryograph.systems import system
from kryograph.text import OnProgress, ignore_progress, percent
from kryograph.training.loop import Conditions
from kryograph.training.stopping import stop_rule

EMBEDDED_SYSTEMS = {
    "linear-snowball": "Linear Snowball",
    "snowball": "Snowball",
    "truncated-krylov": "Truncated Krylov",
}
"""Systems of the figure, with the titles of their panels."""

CLASS_COLOURS = (
    *(style.BLUE, style.ORANGE, style.GREEN, style.PINK, style.SKY, style.RED),
    *(style.YELLOW, style.BLACK, style.GREY),
)
CLASS_LOOKS = tuple(zip(CLASS_COLOURS, "os^DvPX<>", strict=True))
"""Colour and marker of each class; more classes than these begin again at the first."""


@dataclass(frozen=True)
class PlacedFeatures:
    """Hidden features of a trained system in the plane."""

    system: str
    test_accuracy: float  # from 0 to 1
    width: int  # number of hidden features
    positions: npt.NDArray[np.float64]  # N × 2


def compute_embedding(
    dataset: Dataset,
    *,
    seed: int = 0,
    split: str = PUBLIC,
    stop: str = DEFAULT_STOP,
    progress: OnProgress = ignore_progress,
) -> FigureResult:
    """Train the three proposals on a split of a data set, and draw their features."""
    embeddings = []
    for index, name in enumerate(EMBEDDED_SYSTEMS):
        progress(f"training and placing {name}", index / len(EMBEDDED_SYSTEMS))
        embeddings.append(embed_nodes(dataset, name, seed, split, stop))
    about = {
        **{"dataset": dataset.name, "split": split, "settings": "default", "seed": seed},
        "systems": {e.system: {"test_accuracy": e.test_accuracy} for e in embeddings},
    }
    lines = [(e.system, str(e.width), percent(e.test_accuracy)) for e in embeddings]
    return FigureResult(
        {"": draw_embeddings(dataset, embeddings)},
        embedding_rows(dataset, embeddings),
        about,
        [(("system", "features", "test %"), lines)],
    )


def embed_nodes(
    dataset: Dataset, name: str, seed: int, split: str = PUBLIC, stop: str = DEFAULT_STOP
) -> PlacedFeatures:
    """Train a system with its default settings, and place its last hidden layer by t-SNE."""
    method = system(name)
    task = dataset.task(split, seed=seed)
    fit = method.fit(task, seed=seed, conditions=Conditions(stop_rule(stop)))
    hidden = method.embed(fit.weights, dataset.graph, len(dataset.classes))
    return PlacedFeatures(
        name, final_score(fit, dataset), hidden.shape[1], positions(hidden, seed, FINE)
    )


def embedding_rows(
    dataset: Dataset, embeddings: Sequence[PlacedFeatures]
) -> list[dict[str, object]]:
    """Class and position of every node for each system; an unknown class is an empty text."""
    names = ["" if c == UNKNOWN else dataset.classes[c] for c in true_classes(dataset)]
    return [
        {"system": e.system, "node": node, "class": name, "x": float(x), "y": float(y)}
        for e in embeddings
        for node, (name, (x, y)) in enumerate(zip(names, e.positions, strict=True))
    ]


@styled
def draw_embeddings(dataset: Dataset, embeddings: Sequence[PlacedFeatures]) -> Figure:
    """Draw a panel for each system with every node in the colour of its class."""
    figure, axes = panels(1, len(embeddings), 2.75)
    order, true = np.random.default_rng(0).permutation(dataset.graph.n), true_classes(dataset)
    for axis, embedding in zip(axes, embeddings, strict=True):
        low, high = embedding.positions.min(axis=0), embedding.positions.max(axis=0)
        # The scale of t-SNE means nothing, so each panel is filled.
        places = (embedding.positions - (low + high) / 2) / (high - low).max()
        for c, name in enumerate(dataset.classes):
            colour, marker = CLASS_LOOKS[c % len(CLASS_LOOKS)]
            x, y = places[order[true[order] == c]].T
            axis.scatter(x, y, s=3.5, marker=marker, color=colour, linewidth=0, label=name)
        axis.set(xlim=(-0.52, 0.52), ylim=(-0.52, 0.52), box_aspect=1, xticks=[], yticks=[])
        axis.grid(False)
        axis.spines[:].set_visible(False)
        axis.set_xlabel(f"test accuracy {percent(embedding.test_accuracy)} %")
    letter_titles(axes, [EMBEDDED_SYSTEMS[e.system] for e in embeddings])
    add_legend(figure, loc="outside lower center", ncols=4, markerscale=2.5)
    # The first layout of square panels places their titles too high.
    figure.draw_without_rendering()
    return figure
