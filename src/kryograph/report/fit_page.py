"""Page of a labelled graph: one `Section` record and one block of templates/fit.html for each part.

A function of this module computes what a section states and the labelled graph does not; the
template, which has the `labelled` graph and `info` as variables too, holds markup and sentences.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from kryograph.graph import UNKNOWN, Indices
from kryograph.labelling.calibration import Bin, reliability
from kryograph.labelling.candidates import TriedSystem
from kryograph.labelling.label import LabelledGraph
from kryograph.report import charts, facts
from kryograph.report.html import bidi_isolated, render_page, template_text
from kryograph.report.node_data import MAX_NODES_ON_MAP, node_data, nodes_on_map
from kryograph.report.systems_markdown import setting_value
from kryograph.text import plural

FIRST_SUGGESTIONS = 15
"""Number of suggestions that are visible before the rest is unfolded."""

MAX_SYSTEMS_LISTED = 20

MAX_CLASSES_CHARTED = 24
"""A chart of more classes cannot be read; the rarest classes are summed."""

Context = Mapping[str, Any]
"""Variables of one block of the template."""


@dataclass(frozen=True, eq=False)
class PageInfo:
    """Contents of the page that are not part of the labelled graph.

    Args:
        title: Heading of the page.
        notes: Sentences about the files that were read.
        command: Command line that repeats the fit.
        version: Version of kryograph.
        seconds: Duration of the fit.
        positions: N × 2 positions of the nodes on the map.
        seed: Seed of the fit; None if it is not known.
        plan: What became of every column of the tables, a line for each; "" if there were none.
    """

    title: str
    notes: Sequence[str]
    command: str
    version: str
    seconds: float
    positions: npt.NDArray[np.floating]
    seed: int | None = None
    plan: str = ""


@dataclass(frozen=True)
class Section:
    """One part of the page.

    Args:
        key: Name of its block in templates/fit.html, of the variable with its context, and of the
            anchor that links point to.
        title: Heading of the section, and its link at the top of the page.
        context: Computes the variables of the block; None leaves the section out.
    """

    key: str
    title: str
    context: Callable[[LabelledGraph, PageInfo], Context | None]


class ClassLabel(NamedTuple):
    """A class with its sign on the map; `sign` is SVG, or empty for classes that are summed."""

    name: str
    sign: Markup


def render_fit_page(labelled: LabelledGraph, info: PageInfo) -> str:
    """The page as the text of one HTML file that opens without network."""
    contexts = {section.key: section.context(labelled, info) for section in FIT_SECTIONS}
    return render_page(
        "fit.html",
        style=template_text("page.css"),
        script=template_text("page.js"),
        page_title=info.title,
        version=info.version,
        embedded=node_data(labelled, info.positions, nodes_on_map(labelled)),
        embedded_id="nodes",
        sections=[section for section in FIT_SECTIONS if contexts[section.key] is not None],
        labelled=labelled,
        info=info,
        **contexts,
    )


def class_labels(labelled: LabelledGraph) -> list[ClassLabel]:
    """All classes with their signs."""
    count = len(labelled.classes)
    return [ClassLabel(name, charts.swatch(c, count)) for c, name in enumerate(labelled.classes)]


def other_classes(count: int) -> ClassLabel:
    """Heading of `count` classes that are summed."""
    return ClassLabel(plural(count, "other class", "other classes"), Markup())


def _summary(labelled: LabelledGraph, info: PageInfo) -> Context:
    """Sentence and large numbers at the top of the page."""
    sizes = facts.set_sizes(labelled)
    return {
        "free": int(sizes.sum()),
        "interval": charts.interval(*labelled.accuracy),
        "single": sizes[0] / sizes.sum() if sizes.any() else None,
    }


def _data(labelled: LabelledGraph, info: PageInfo) -> Context:
    """Size, degrees and homophily of the graph, and the number of labels of each class."""
    degrees = facts.degrees(labelled.graph)
    bins = facts.degree_bins(degrees)
    most_frequent, _ = max(bins, key=lambda named_count: named_count[1])
    homophily, edges = facts.homophily(labelled.graph, labelled.given_labels)
    return {
        "components": facts.components(labelled.graph),
        "degrees": degrees,
        "median_degree": f"{np.median(degrees):g}",
        "bins": bins,
        "chart": charts.histogram(
            bins, unit="neighbours", label=f"Degrees: most nodes have {most_frequent}."
        ),
        "labels": _label_counts(labelled),
        "homophily": homophily,
        "edges": edges,
    }


def _label_counts(labelled: LabelledGraph) -> list[tuple[ClassLabel, int, Markup]]:
    """Class, number of given labels and bar of each row."""
    known = labelled.given_labels[labelled.given_labels != UNKNOWN]
    counts = np.bincount(known, minlength=len(labelled.classes))
    kept = facts.most_frequent(counts, MAX_CLASSES_CHARTED)
    labels, most = class_labels(labelled), max(counts)
    rows = [(labels[c], int(counts[c]), charts.share_bar(counts[c] / most)) for c in kept]
    if rest := len(counts) - len(kept):
        rows.append((other_classes(rest), int(counts.sum() - counts[kept].sum()), Markup()))
    return rows


def _accuracy(labelled: LabelledGraph, info: PageInfo) -> Context:
    """Accuracy on held-out labels: overall, by class, and as a confusion matrix."""
    known = int((labelled.given_labels != UNKNOWN).sum())
    classes, counts = confusion_matrix(labelled)
    heat = np.round(10 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)).astype(int)
    return {
        "never_held": known - len(labelled.held_out.nodes),
        "scores": [
            (label, *score)
            for label, score in zip(
                class_labels(labelled), facts.class_scores(labelled), strict=True
            )
        ],
        "classes": classes,
        "counts": counts.tolist(),
        "heat": heat.tolist(),
    }


def confusion_matrix(labelled: LabelledGraph) -> tuple[list[ClassLabel], Indices]:
    """Classes and their counts: given class by row, held-out prediction by column.

    Of many classes the most frequent are kept; the last row and column sum the others.
    """
    counts = facts.confusion(labelled)
    kept = facts.most_frequent(counts.sum(axis=1) + counts.sum(axis=0), MAX_CLASSES_CHARTED)
    labels = class_labels(labelled)
    classes = [labels[c] for c in kept]
    rest = np.setdiff1d(np.arange(len(counts)), kept)
    if rest.size:
        classes.append(other_classes(rest.size))
        counts = _summed(_summed(counts, kept, rest).T, kept, rest).T
    return classes, counts


def _summed(counts: Indices, kept: Indices, rest: Indices) -> Indices:
    """The kept rows, then one row with the sum of the others."""
    return np.concatenate([counts[kept], counts[rest].sum(axis=0, keepdims=True)])


def _certainty(labelled: LabelledGraph, info: PageInfo) -> Context:
    """Reliability before and after calibration, and sizes of the prediction sets."""
    held = labelled.held_out
    labels = labelled.given_labels[held.nodes]
    before = reliability(held.probabilities, labels)
    after = reliability(labelled.calibration.probabilities(held.probabilities), labels)
    sizes = facts.set_sizes(labelled)
    used = int(np.flatnonzero(sizes).max(initial=0)) + 1
    bars = [(str(size), int(count)) for size, count in enumerate(sizes[:used], start=1)]
    free, single = int(sizes.sum()), int(sizes[0])
    return {
        "curve": charts.reliability_curve(before, after),
        "before_sign": charts.curve_sign("before"),
        "after_sign": charts.curve_sign("after"),
        "bins": [(*_bin(b), *_bin(a)) for b, a in zip_longest(before, after)],
        "free": free,
        "single": single,
        "sizes": bars,
        "chart": charts.histogram(
            bars, unit="classes in the set", label=f"{single:,} of {free:,} sets have one class."
        ),
    }


def _bin(one: Bin | None) -> tuple[float | int | str, ...]:
    return dataclasses.astuple(one) if one else ("", "", "")


def _map(labelled: LabelledGraph, info: PageInfo) -> Context:
    """Kind of embedding and number of nodes on the map, which the script of the page draws."""
    hidden = labelled.model.system.has_hidden_layer
    return {
        "embedding": "the last hidden layer" if hidden else "log-probabilities",
        "drawn": min(labelled.graph.n, MAX_NODES_ON_MAP),
        "most_labelled": MAX_NODES_ON_MAP // 2,
    }


def _suggestions(labelled: LabelledGraph, info: PageInfo) -> Context:
    """Nodes to label next; a node on the map has the number by which the script finds it."""
    position = {node: k for k, node in enumerate(nodes_on_map(labelled).tolist())}
    names, labels = labelled.graph.names, class_labels(labelled)
    in_sentences = tuple(bidi_isolated(name) for name in labelled.classes)
    rows = [
        {
            "rank": rank,
            "node": names[suggestion.node] if names else suggestion.node,
            "position": position.get(suggestion.node),
            "predicted": labels[suggestion.first],
            "probability": float(labelled.probabilities[suggestion.node, suggestion.first]),
            "why": suggestion.why(in_sentences),
        }
        for rank, suggestion in enumerate(labelled.suggestions, start=1)
    ]
    return {"first": rows[:FIRST_SUGGESTIONS], "rest": rows[FIRST_SUGGESTIONS:]}


def _systems(labelled: LabelledGraph, info: PageInfo) -> Context:
    """Candidates with their settings; the first candidate was chosen."""
    listed = labelled.candidates[:MAX_SYSTEMS_LISTED]
    return {
        "rows": [(candidate, _changed_settings(candidate) or "–") for candidate in listed],
        "unlisted": len(labelled.candidates) - len(listed),
    }


def _changed_settings(candidate: TriedSystem) -> str:
    """Settings that differ from the defaults of the system, such as 'hidden 64, rate 0.01'."""
    settings = candidate.system.settings
    defaults = {field.name: field.default for field in dataclasses.fields(settings)}
    return ", ".join(
        f"{key} {setting_value(value)}"
        for key, value in settings.as_dict().items()
        if value != defaults[key]
    )


def _reproduction(labelled: LabelledGraph, info: PageInfo) -> Context:
    """Values and meanings of all settings of the chosen system."""
    system = labelled.model.system
    settings = [
        (field.name, setting_value(getattr(system.settings, field.name)), field.metadata["summary"])
        for field in dataclasses.fields(system.settings)
    ]
    if system.uses_operator:
        settings.append(("operator", system.operator, "diffusion matrix of the graph"))
    return {"settings": settings}


FIT_SECTIONS = (
    Section("summary", "Summary", _summary),
    Section("data", "Data", _data),
    Section("accuracy", "Accuracy", _accuracy),
    Section("certainty", "Certainty", _certainty),
    Section("map", "Map of the nodes", _map),
    Section("suggestions", "What to label next", _suggestions),
    Section("systems", "Systems", _systems),
    Section("reproduction", "Settings and reproduction", _reproduction),
)
"""Parts of the page in their order; the first stands in the header, without a heading."""
