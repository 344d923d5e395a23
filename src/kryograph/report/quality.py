"""Quality: sections of a page that say how good the answers are, and how sure."""

from __future__ import annotations

from itertools import zip_longest

import numpy as np

from kryograph.graph import UNKNOWN, Indices
from kryograph.labelling.calibration import Bin, reliability
from kryograph.labelling.fit import Labelled
from kryograph.report import charts, facts
from kryograph.report.markup import Safe, joined, safe, table, tag
from kryograph.report.parts import (
    MOST_CLASSES,
    class_name,
    figure,
    others,
    paragraph,
    percent,
    plural,
    section,
    sets_named,
)


def accuracy(labelled: Labelled) -> Safe:
    """How good the answers are, by labels that were held out."""
    share, low, high = labelled.accuracy
    held, known = len(labelled.held_out.nodes), int((labelled.given != UNKNOWN).sum())
    never = known - held
    words = (
        f"Given labels were hidden in turns and asked for: {percent(share)} of {held:,} answers "
        f"were right, with a 95 % interval from {100 * low:.1f} to {percent(high)} (Wilson)."
    )
    if never:
        were = "was never hidden, being" if never == 1 else "were never hidden, each"
        words += f" {plural(never, 'label')} {were} the only one of its class."
    scores = facts.class_scores(labelled)
    rows = [
        (
            class_name(labelled, c),
            f"{score.given:,}",
            percent(score.precision),
            percent(score.recall),
            percent(score.f1),
            f"{score.predicted:,}",
        )
        for c, score in enumerate(scores)
    ]
    headings = ("Class", "Labels", "Precision", "Recall", "F1", "Predicted")
    explained = (
        "Precision: of the answers that name the class, how many are right. Recall: of the labels "
        "of the class, how many were found. Predicted: nodes without a label that now have it."
    )
    return section(
        "accuracy",
        "How good the answers are",
        paragraph(words),
        tag("h3", "By class"),
        table(headings, rows, caption="Held-out scores, by class"),
        paragraph(explained, class_="note"),
        tag("h3", "What is taken for what"),
        confusion_matrix(labelled),
        paragraph(
            "Rows are given labels, columns held-out answers; a cell is stronger the larger its "
            "share of the row. Right answers are on the diagonal, framed.",
            class_="note",
        ),
    )


def confusion_matrix(labelled: Labelled) -> Safe:
    """A heat map that is a table."""
    counts = facts.confusion(labelled)
    kept = facts.most_frequent(counts.sum(axis=1) + counts.sum(axis=0), MOST_CLASSES)
    titles: list[Safe] = [class_name(labelled, c) for c in kept.tolist()]
    rest = np.setdiff1d(np.arange(len(counts)), kept)
    if rest.size:
        titles.append(safe(others(rest.size)))
        counts = _merged(_merged(counts, kept, rest).T, kept, rest).T
    head = [tag("th", tag("span", title), scope="col", class_="upright") for title in titles]
    rows = []
    for r, row in enumerate(counts):
        cells = []
        for c, count in enumerate(row.tolist()):
            heat = round(10 * count / row.sum()) if count else 0
            kind = f"heat heat-{heat}" + " right" * (r == c)
            cells.append(tag("td", f"{count:,}" if count else "·", class_=kind))
        rows.append(tag("tr", tag("th", titles[r], scope="row"), *cells))
    caption = "Held-out answers: given label by row, answer by column"
    corner = tag("td", "given ↓  answer →", class_="corner")
    made = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", corner, *head)),
        tag("tbody", *rows),
        class_="confusion",
    )
    return tag("div", made, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _merged(counts: Indices, kept: Indices, rest: Indices) -> Indices:
    """The kept rows, then the sum of the rest."""
    return np.concatenate([counts[kept], counts[rest].sum(axis=0, keepdims=True)])


def certainty(labelled: Labelled) -> Safe:
    """How sure the answers are, and whether rightly so."""
    held, calibration = labelled.held_out, labelled.calibration
    asked = labelled.given[held.nodes]
    before = reliability(held.probabilities, asked)
    after = reliability(calibration.probabilities(held.probabilities), asked)
    curve = figure(
        "Reliability",
        joined(
            [
                charts.key(("before", "before calibration"), ("after", "after calibration")),
                charts.reliability_curve(before, after),
            ]
        ),
        f"A point on the dotted line is as often right as it is sure. Calibration divides "
        f"log-probabilities by the temperature {calibration.temperature:.2f}, learned from these "
        "same held-out labels. Columns below: how many labels each point stands for.",
        _reliability_table(before, after),
    )
    sizes = facts.set_sizes(labelled)
    used = int(np.flatnonzero(sizes).max(initial=0)) + 1
    bars = [(str(size), int(count)) for size, count in enumerate(sizes[:used], start=1)]
    free = int(sizes.sum())
    one = int(sizes[0])
    promise = (
        f"A set holds every class that the node may well be of. The sets are made so that the true "
        f"class of a new node is in its set in {100 * calibration.coverage:g} % of cases: classes "
        f"of probability {calibration.threshold:.3f} or more. {one:,} of "
        f"{plural(free, 'node')} without a label have a single class in their set."
    )
    sets = figure(
        f"Size of the {sets_named(labelled)}",
        charts.histogram(
            bars, unit="classes in the set", label=f"{one:,} of {free:,} sets hold one class."
        ),
        promise,
        table(("Classes in the set", "Nodes"), [(k, f"{v:,}") for k, v in bars], caption="Sizes"),
    )
    return section(
        "certainty", "How sure the answers are", tag("div", curve, sets, class_="pair even")
    )


def _reliability_table(before: list[Bin], after: list[Bin]) -> Safe:
    def three(b: Bin | None) -> tuple[str, str, str]:
        return (percent(b.confidence), percent(b.accuracy), f"{b.count:,}") if b else ("", "", "")

    rows = [(*three(b), *three(a)) for b, a in zip_longest(before, after)]
    headings = ("Sure, before", "Right", "Labels", "Sure, after", "Right", "Labels")
    return table(headings, rows, caption="Reliability of held-out answers", words=())
