"""Curve of precision against recall, with a threshold that a slider moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from kryograph.labelling.node_ranking import NodeRanking
from kryograph.report.charts import at, element, line, svg, text

LEFT, TOP, SIZE = 46, 28, 300
"""Margins and side of the square in which the curve is drawn, in pixels."""


@dataclass(frozen=True)
class SliderPoint:
    """A threshold, what it gives, and its place on the chart in pixels."""

    threshold: float
    precision: float
    recall: float
    selected: int
    expected: float
    x: float
    y: float


def slider_points(ranking: NodeRanking) -> list[SliderPoint]:
    """Points of the slider: the lowest threshold is on the left, the highest on the right."""
    return [
        SliderPoint(
            round(point.threshold, 6),
            round(point.precision, 4),
            round(point.recall, 4),
            point.selected,
            round(point.expected, 1),
            round(_x(point.recall), 1),
            round(_y(point.precision), 1),
        )
        for point in reversed(ranking.points)
    ]


def default_position(points: Sequence[SliderPoint]) -> int:
    """Index of the lowest threshold of at least 1/2, which is the one of the predicted classes.

    Without such a threshold it is the highest one.
    """
    above = (k for k, point in enumerate(points) if point.threshold >= 0.5)
    return next(above, len(points) - 1)


def draw_curve(ranking: NodeRanking, now: SliderPoint) -> Markup:
    """SVG of the curve, with the point of the slider; dotted is the precision of a random order."""
    bottom = TOP + SIZE
    parts = [text(0, 12, "precision", "unit", "start")]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts += [
            line(LEFT, _y(tick), LEFT + SIZE, _y(tick), "grid"),
            text(LEFT - 8, _y(tick) + 4, f"{100 * tick:.0f} %", anchor="end"),
            text(_x(tick), bottom + 18, f"{100 * tick:.0f} %"),
        ]
    parts.append(line(LEFT, _y(ranking.share), LEFT + SIZE, _y(ranking.share), "ideal"))
    corners = " ".join(f"{at(_x(p.recall))},{at(_y(p.precision))}" for p in ranking.points)
    parts += [
        element("polyline", points=corners, class_="curve after"),
        element("circle", cx=at(now.x), cy=at(now.y), r="7", class_="dot", id="threshold-mark"),
        text(LEFT + SIZE, bottom + 38, "recall", "unit", "end"),
    ]
    label = (
        f"Precision against recall on held-out labels; the average precision is "
        f"{100 * ranking.average_precision:.1f} %. The table that follows has the numbers."
    )
    chart = {"role": "img", "aria_label": label, "class_": "chart curve-chart"}
    return svg(LEFT + SIZE + 26, bottom + 44, *parts, **chart)


def _x(recall: float) -> float:
    return LEFT + SIZE * recall


def _y(precision: float) -> float:
    return TOP + SIZE * (1 - precision)
