"""Summary of a labelled graph as lines of text, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from kryograph.features import is_identity
from kryograph.graph import UNKNOWN
from kryograph.labelling.labelled_graph import LabelledGraph
from kryograph.labelling.quality import ShareEstimate
from kryograph.text import percent, plural, quoted

MAX_CLASS_NAME = 30
"""Longer names of classes are cut."""


def summary_lines(labelled: LabelledGraph, most_classes: int) -> list[str]:
    """Sizes, accuracy beside the baseline, a table of the classes, and the ranking.

    Args:
        labelled: The labelled graph.
        most_classes: Number of rows of the table; the classes with most labels are kept.
    """
    return [
        _size_line(labelled),
        "",
        *_accuracy_lines(labelled),
        "",
        *_class_lines(labelled, most_classes),
        "",
        *_ranking_lines(labelled),
    ]


def _size_line(labelled: LabelledGraph) -> str:
    graph = labelled.graph
    # A graph without features has the identity in their place.
    none = is_identity(graph.features)
    number = "no features" if none else plural(graph.features.shape[1], "feature")
    known = int((labelled.given_labels != UNKNOWN).sum())
    return (
        f"Read {plural(graph.n, 'node')}, {plural(graph.edges, 'edge')}, {number}, "
        f"{plural(known, 'label')} of {len(labelled.classes)} classes."
    )


def _accuracy_lines(labelled: LabelledGraph) -> list[str]:
    quality = labelled.quality
    accuracy, baseline = quality.accuracy, quality.baseline
    always = f"Always {quoted(labelled.classes[baseline.label], MAX_CLASS_NAME)}"
    estimated = "" if labelled.labels_taken_as == "as drawn" else ", by estimated shares"
    frequent = f"the most frequent class for every node{estimated}"
    rows = [
        (
            "Held-out accuracy",
            percent(accuracy.value),
            f"95 % interval {percent(accuracy.low)} to {percent(accuracy.high)}, "
            f"{plural(len(labelled.held_out.nodes), 'label')}, by {labelled.model.system.name}",
        ),
        (always, percent(baseline.accuracy), frequent),
        ("Balanced accuracy", percent(quality.balanced_accuracy), "mean recall of the classes"),
    ]
    if quality.ranking is not None and quality.ranking.lopsided:
        ranking = quality.ranking
        name = quoted(labelled.classes[ranking.positive], MAX_CLASS_NAME)
        remark = f"of {name}; {percent(ranking.share)} % in a random order"
        rows.append(("Average precision", percent(ranking.average_precision), remark))
    width = max(len(title) for title, *_ in rows)
    return [f"{title:<{width}}  {value:>5} %  ({remark})" for title, value, remark in rows]


def _class_lines(labelled: LabelledGraph, most: int) -> list[str]:
    """Table of precision and recall by class."""
    named = list(labelled.per_class.items())
    order = sorted(range(len(named)), key=lambda c: -named[c][1].labels)[:most]
    rows = [("class", "labels", "precision", "", "recall", "", "predicted")]
    for c in sorted(order):
        name, one = named[c]
        short = name if len(name) <= MAX_CLASS_NAME else name[: MAX_CLASS_NAME - 1] + "…"
        numbers = (*_cells(one.precision), *_cells(one.recall))
        rows.append((short, f"{one.labels:,}", *numbers, f"{one.predicted:,}"))
    lines = _aligned(rows)
    if len(named) > most:
        lines.append(f"  … and {plural(len(named) - most, 'class', 'classes')} with fewer labels")
    return lines


def _cells(share: ShareEstimate | None) -> tuple[str, str]:
    """A share in per cent and its interval, such as "80.0 %" and "(38–96)"."""
    if share is None:
        return "–", ""
    return f"{percent(share.value)} %", f"({100 * share.low:.0f}–{100 * share.high:.0f})"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines: the first column and intervals start, numbers end at one place."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if k == 0 or rows[0][k] == "" else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _ranking_lines(labelled: LabelledGraph) -> list[str]:
    ranking = labelled.quality.ranking
    if ranking is None or not ranking.lopsided or not ranking.unlabelled:
        return []
    return [ranking.sentence(labelled.classes), ""]
