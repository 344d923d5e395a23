"""Page of a labelled graph: one `Section` record and one block of templates/fit.html for each part.

A function of this module computes what a section states and the labelled graph does not; the
template, which has the `labelled` graph and `info` as variables too, holds markup and sentences.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from kryograph.graph import UNKNOWN
from kryograph.labelling.calibration import Bin, reliability
from kryograph.labelling.candidates import TriedSystem
from kryograph.labelling.labelled_graph import LabelledGraph
from kryograph.labelling.quality import ShareEstimate
from kryograph.labelling.table_columns import stored_recipe
from kryograph.report import charts, facts, threshold_chart
from kryograph.report.class_tables import class_labels, confusion_matrix, label_counts
from kryograph.report.html import bidi_isolated, render_page, template_text
from kryograph.report.layout import positions
from kryograph.report.node_data import MAX_NODES_ON_MAP, node_data, nodes_on_map
from kryograph.report.node_explanations import explain_nodes
from kryograph.report.systems_markdown import setting_value
from kryograph.text import quoted_list

FIRST_SUGGESTIONS = 15
"""Number of suggestions that are visible before the rest is unfolded."""

MAX_SYSTEMS_LISTED = 20

MAX_THRESHOLDS_LISTED = 20
"""About so many thresholds are in the table below the curve."""

MAX_DISPUTED_LISTED = 200
"""Further disputed labels are in the file disputed.csv only."""

MAX_COLUMNS_LISTED = 500
"""Further columns of the tables are counted; `kryograph fit --check` lists them."""

FIRST_COLUMNS = 40
"""Number of columns that are visible before the rest is unfolded."""

FEWEST_LABELS_OF_POINT = 5
"""Held-out labels behind a point of the reliability curve; bins with fewer are merged."""

SCRIPTS = ("common.js", "map.js", "panel.js", "list.js")
"""Scripts of every page; the first holds what the others use."""

Context = Mapping[str, Any]
"""Variables of one block of the template."""


@dataclass(frozen=True, eq=False)
class PageInfo:
    """Contents of the page that are not part of the labelled graph.

    Args:
        title: Heading of the page.
        notes: Sentences about the files that were read.
        command: Command line that repeats the fit; "" if there was none.
        version: Version of kryograph.
        seconds: Duration of the fit; None if it is not known.
        positions: N × 2 positions of the nodes on the map.
        seed: Seed of the fit; None if it is not known.
        run: Folder of the fit, as `kryograph explain` takes it.
    """

    title: str
    notes: Sequence[str]
    command: str
    version: str
    seconds: float | None
    positions: npt.NDArray[np.floating]
    seed: int | None = None
    run: str = "RUN"


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


def render_fit_page(labelled: LabelledGraph, info: PageInfo) -> str:
    """The page as the text of one HTML file that opens without network."""
    contexts = {section.key: section.context(labelled, info) for section in FIT_SECTIONS}
    scripts = [*SCRIPTS, *(["threshold.js"] if contexts["ranking"] else [])]
    nodes = nodes_on_map(labelled)
    explained = explain_nodes(labelled, nodes)
    embedded = node_data(labelled, info.positions, nodes) | {
        "run": shlex.quote(info.run),
        "explanations": explained.data,
        "unexplained": explained.refusal,
    }
    return render_page(
        "fit.html",
        style=template_text("page.css"),
        scripts=[template_text(name) for name in scripts],
        page_title=info.title,
        version=info.version,
        embedded=embedded,
        embedded_id="nodes",
        sections=[section for section in FIT_SECTIONS if contexts[section.key] is not None],
        labelled=labelled,
        info=info,
        explained=explained,
        **contexts,
    )


def page_of(
    labelled: LabelledGraph,
    *,
    command: str = "",
    seconds: float | None = None,
    run: str = "RUN",
) -> str:
    """The page of a labelled graph, with positions on the map that are computed here.

    Args:
        labelled: The labelled graph.
        command: Command line that repeats the fit; "" if there was none.
        seconds: Duration of the fit; None if it is not known.
        run: Folder of the fit, as `kryograph explain` takes it.
    """
    recipe, seed = stored_recipe(labelled), labelled.model.extra["seed"]
    name = (recipe.label if recipe is not None else None) or "label"
    notes = list(labelled.notes)
    if labelled.plan is not None:
        notes.insert(0, f"Read from {quoted_list(labelled.plan.tables)}.")
    info = PageInfo(
        title=f"{name.capitalize()} of {labelled.graph.n:,} nodes",
        notes=notes,
        command=command,
        version=version("kryograph"),
        seconds=seconds,
        positions=positions(labelled.model.embed(labelled.graph), seed),
        seed=seed,
        run=run,
    )
    return render_fit_page(labelled, info)


def _summary(labelled: LabelledGraph, info: PageInfo) -> Context:
    """Sentence and large numbers at the top of the page."""
    sizes = facts.set_sizes(labelled)
    return {
        "free": int(sizes.sum()),
        "interval": charts.interval(*labelled.accuracy),
        "frequent": labelled.classes[labelled.baseline.label],
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
        "labels": label_counts(labelled),
        "homophily": homophily,
        "edges": edges,
    }


def _columns(labelled: LabelledGraph, info: PageInfo) -> Context | None:
    """Use of every column of the tables; None if the graph was not read from tables."""
    if labelled.plan is None or not labelled.plan.lines:
        return None
    rows = [
        tuple(map(bidi_isolated, (line.table, line.column, line.use, line.detail)))
        for line in labelled.plan.lines[:MAX_COLUMNS_LISTED]
    ]
    return {
        "first": rows[:FIRST_COLUMNS],
        "rest": rows[FIRST_COLUMNS:],
        "unlisted": len(labelled.plan.lines) - len(rows),
    }


def _accuracy(labelled: LabelledGraph, info: PageInfo) -> Context:
    """Accuracy on held-out labels: overall, by class, and as a confusion matrix."""
    known = int((labelled.given_labels != UNKNOWN).sum())
    classes, counts = confusion_matrix(labelled)
    heat = np.round(10 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)).astype(int)
    return {
        "never_held": known - len(labelled.held_out.nodes),
        "baseline": labelled.classes[labelled.baseline.label],
        "scores": [
            (
                label,
                one.labels,
                *_with_interval(one.precision),
                *_with_interval(one.recall),
                one.f1,
                one.predicted,
            )
            for label, one in zip(class_labels(labelled), labelled.quality.per_class, strict=True)
        ],
        "classes": classes,
        "counts": counts.tolist(),
        "heat": heat.tolist(),
    }


def _with_interval(share: ShareEstimate | None) -> tuple[float | None, str]:
    """A share, and its interval such as "38–96"."""
    if share is None:
        return None, ""
    return share.value, f"{100 * share.low:.0f}–{100 * share.high:.0f}"


def _ranking(labelled: LabelledGraph, info: PageInfo) -> Context | None:
    """Precision against recall of the positive one of two classes, and a threshold to move."""
    ranking = labelled.quality.ranking
    if ranking is None:
        return None
    points = threshold_chart.slider_points(ranking)
    start = threshold_chart.default_position(points)
    thinned = points[:: max(1, len(points) // MAX_THRESHOLDS_LISTED)]
    return {
        "ranking": ranking,
        "positive": labelled.classes[ranking.positive],
        "sentence": ranking.sentence(tuple(bidi_isolated(name) for name in labelled.classes)),
        "chart": threshold_chart.draw_curve(ranking, points[start]),
        "points": [dataclasses.astuple(point) for point in points],
        "start": start,
        "now": points[start],
        "rows": [
            (f"{p.threshold:.4f}", p.precision, p.recall, p.selected, p.expected) for p in thinned
        ],
    }


def _disputed(labelled: LabelledGraph, info: PageInfo) -> Context | None:
    """Given labels that held-out predictions doubt; a node on the map has its number there."""
    if not labelled.disputed:
        return None
    position = {node: k for k, node in enumerate(nodes_on_map(labelled).tolist())}
    names, labels = labelled.graph.names, class_labels(labelled)
    rows = [
        {
            "node": names[one.node] if names else one.node,
            "position": position.get(one.node),
            "label": labels[one.label],
            "predicted": labels[one.predicted],
            "probability": one.probability,
        }
        for one in labelled.disputed
    ]
    return {"first": rows[:FIRST_SUGGESTIONS], "rest": rows[FIRST_SUGGESTIONS:MAX_DISPUTED_LISTED]}


def _certainty(labelled: LabelledGraph, info: PageInfo) -> Context:
    """Reliability before and after calibration, and sizes of the prediction sets."""
    held = labelled.held_out
    labels = labelled.given_labels[held.nodes]
    calibrated = labelled.calibration.probabilities(held.probabilities)
    before, after = (
        reliability(probabilities, labels, fewest=FEWEST_LABELS_OF_POINT)
        for probabilities in (held.probabilities, calibrated)
    )
    sizes = facts.set_sizes(labelled)
    used = int(np.flatnonzero(sizes).max(initial=0)) + 1
    bars = [(str(size), int(count)) for size, count in enumerate(sizes[:used], start=1)]
    free, single = int(sizes.sum()), int(sizes[0])
    return {
        "fewest": FEWEST_LABELS_OF_POINT,
        "curve": charts.reliability_curve(before, after) if after else None,
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


def _list(labelled: LabelledGraph, info: PageInfo) -> Context:
    """Whether nodes have a rank, and their number; the script of the list has the rows."""
    return {
        "ranked": labelled.positive is not None,
        "listed": min(labelled.graph.n, MAX_NODES_ON_MAP),
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
    Section("columns", "Columns", _columns),
    Section("accuracy", "Accuracy", _accuracy),
    Section("ranking", "Precision and recall", _ranking),
    Section("certainty", "Certainty", _certainty),
    Section("map", "Map of the nodes", _map),
    Section("list", "List of the nodes", _list),
    Section("suggestions", "What to label next", _suggestions),
    Section("disputed", "Labels to check", _disputed),
    Section("systems", "Systems", _systems),
    Section("reproduction", "Settings and reproduction", _reproduction),
)
"""Parts of the page in their order; the first stands in the header, without a heading."""
