"""Page of one explanation, and its data for a panel on the page of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from markupsafe import Markup

from kryograph.labelling.explanation import Explanation
from kryograph.report.charts import line, rectangle, svg
from kryograph.report.html import render_page, shortened, template_text
from kryograph.text import percent

BAR_WIDTH, BAR_HEIGHT = 160, 14

TITLES = {
    "hops": ("By hops", "How many steps the contribution took along edges."),
    "neighbours": ("Through neighbours", "By which edge the contribution arrived at the node."),
    "nodes": ("From nodes", "Whose features contribute, over all paths."),
    "features": ("By features", "Which features contribute, those of all nodes together."),
}
"""Heading and description of each table that adds up to the log-odds."""


class ExplanationRow(NamedTuple):
    """A line of a table of the page."""

    name: str
    remark: str
    value: str
    bar: Markup


def explanation_data(explanation: Explanation) -> dict[str, Any]:
    """JSON object for a panel: names are cut, values are log-odds.

    Each of `hops`, `neighbours`, `nodes` and `features` is a list of [name, log-odds] that adds up
    with `intercept` to `log_odds`; `nearest` is a list of [name, label, cosine].
    """
    tables = {
        name: [
            [shortened(row["name"]), float(f"{row['log_odds']:.6g}")]
            for row in getattr(explanation, name).to_pylist()
        ]
        for name in TITLES
    }
    nearest = [
        [shortened(row["node"]), shortened(row["label"]), round(row["similarity"], 4)]
        for row in explanation.given_nearest.to_pylist()
    ]
    return {
        "node": shortened(explanation.node),
        "classes": [shortened(name) for name in explanation.classes],
        "probabilities": [round(p, 6) for p in explanation.probabilities],
        "log_odds": float(f"{explanation.log_odds:.6g}"),
        "intercept": float(f"{explanation.intercept:.6g}"),
        **tables,
        "nearest": nearest,
        "gap": float(f"{explanation.gap:.1e}"),
        "notes": list(explanation.notes),
    }


def render_explanation(explanation: Explanation, version: str) -> str:
    """Render the text of one HTML file that opens without network."""
    tables = {name: getattr(explanation, name).to_pylist() for name in TITLES}
    largest = max(
        abs(explanation.intercept),
        *(abs(row["log_odds"]) for rows in tables.values() for row in rows),
    )
    sections = []
    for name, (title, description) in TITLES.items():
        rows = [
            _row(row["name"], row.get("given"), row["log_odds"], largest) for row in tables[name]
        ]
        rows.append(_row("intercept", None, explanation.intercept, largest))
        sections.append((name, title, description, rows))
    p, q = explanation.probabilities
    first, second = explanation.classes
    return render_page(
        "explanation.html",
        style=template_text("page.css") + template_text("explanation.css"),
        scripts=[],
        page_title=f"Why {shortened(explanation.node)} is {shortened(first)}",
        version=version,
        embedded=explanation_data(explanation),
        embedded_id="explanation",
        explanation=explanation,
        sections=sections,
        figures=[
            ("Predicted", first, f"{percent(p)} %"),
            ("Compared with", second, f"{percent(q)} %"),
            ("Log-odds", f"{explanation.log_odds:+.3f}", "ln(p / q), calibrated"),
            ("Gap", f"{explanation.gap:.0e}", "sum less log-odds"),
        ],
        nearest=_nearest(explanation.given_nearest),
        members=_members(explanation.members, largest),
    )


def _row(name: str, remark: str | None, value: float, largest: float) -> ExplanationRow:
    return ExplanationRow(name, remark or "", f"{value:+.3f}", signed_bar(value / (largest or 1.0)))


def signed_bar(share: float) -> Markup:
    """Bar of a number between -1 and 1 to the left or the right of a line in the middle."""
    middle = BAR_WIDTH / 2
    length = max(abs(share) * middle, 0.5)
    left = middle if share >= 0 else middle - length
    bar = rectangle(left, 2, length, BAR_HEIGHT - 4, "bar for" if share >= 0 else "bar against")
    axis = line(middle, 0, middle, BAR_HEIGHT, "axis")
    return svg(BAR_WIDTH, BAR_HEIGHT, bar, axis, aria_hidden="true", class_="share")


def _nearest(table: pa.Table) -> Sequence[tuple[str, str, str]]:
    rows = table.to_pylist()
    return [(row["node"], row["label"], f"{row['similarity']:.3f}") for row in rows]


def _members(table: pa.Table, largest: float) -> Sequence[ExplanationRow]:
    return [
        _row(row["member"], None if row["divided"] else "not divided", row["log_odds"], largest)
        for row in table.to_pylist()
    ]
