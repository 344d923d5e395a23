"""Classes with their signs, and tables that have a row for each class."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from kryograph.graph import UNKNOWN, Indices
from kryograph.labelling.labelled_graph import LabelledGraph
from kryograph.report import charts, facts
from kryograph.text import plural

MAX_CLASSES_CHARTED = 24
"""A chart of more classes cannot be read; the rarest classes are summed."""


class ClassLabel(NamedTuple):
    """A class with its sign on the map; `sign` is SVG, or empty for classes that are summed."""

    name: str
    sign: Markup


def class_labels(labelled: LabelledGraph) -> list[ClassLabel]:
    """All classes with their signs."""
    count = len(labelled.classes)
    return [ClassLabel(name, charts.swatch(c, count)) for c, name in enumerate(labelled.classes)]


def other_classes(count: int) -> ClassLabel:
    """Heading of `count` classes that are summed."""
    return ClassLabel(plural(count, "other class", "other classes"), Markup())


def label_counts(labelled: LabelledGraph) -> list[tuple[ClassLabel, int, Markup]]:
    """Class, number of given labels and bar of each row; the rarest of many classes are summed."""
    known = labelled.given_labels[labelled.given_labels != UNKNOWN]
    counts = np.bincount(known, minlength=len(labelled.classes))
    kept = facts.most_frequent(counts, MAX_CLASSES_CHARTED)
    labels, most = class_labels(labelled), max(counts)
    rows = [(labels[c], int(counts[c]), charts.share_bar(counts[c] / most)) for c in kept]
    if rest := len(counts) - len(kept):
        rows.append((other_classes(rest), int(counts.sum() - counts[kept].sum()), Markup()))
    return rows


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
