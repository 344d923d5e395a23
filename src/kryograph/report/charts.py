"""SVG charts, and the colours and shapes of classes.

Up to eight classes have the colours of Okabe and Ito, which people with any kind of colour vision
can tell apart. The colours of more classes are spread over the hues, alternately dark and light.
Shapes alternate too, so a class is never recognised by its colour alone. Other colours come from
the style sheet of the page.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Sequence
from functools import cache

from markupsafe import Markup

from kryograph.labelling.calibration import Bin
from kryograph.report.html import clean

INK = "currentColor"
"""Colour of text: dark on a light page, light on a dark page."""

OKABE_ITO = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", INK)


@cache
def class_colours(count: int) -> tuple[str, ...]:
    """Colours of `count` classes, all different.

    >>> class_colours(2), class_colours(9)[:2]
    (('#0072b2', '#e69f00'), ('#c34f32', '#ddd078'))
    """
    if count <= len(OKABE_ITO):
        return OKABE_ITO[:count]
    colours = []
    for c in range(count):
        lightness, saturation = (0.48, 0.59) if c % 2 == 0 else (0.67, 0.6)
        channels = colorsys.hls_to_rgb((c / count + 0.033) % 1, lightness, saturation)
        colours.append("#" + "".join(f"{round(255 * channel):02x}" for channel in channels))
    return tuple(colours)


def _regular(corners: int, radius: float, turn: float = 0.0) -> list[tuple[float, float]]:
    angles = [turn + 2 * math.pi * k / corners for k in range(corners)]
    return [(radius * math.sin(angle), -radius * math.cos(angle)) for angle in angles]


def _plus(turn: float = 0.0) -> list[tuple[float, float]]:
    a, b = 0.38, 1.2
    points = []
    for k in range(4):
        cos, sin = math.cos(turn + k * math.pi / 2), math.sin(turn + k * math.pi / 2)
        points += [(x * cos - y * sin, x * sin + y * cos) for x, y in ((a, -b), (a, -a), (b, -a))]
    return points


SHAPES: dict[str, list[tuple[float, float]]] = {
    "circle": [],
    "square": _regular(4, 1.25, math.pi / 4),
    "up": _regular(3, 1.4),
    "diamond": _regular(4, 1.3),
    "down": _regular(3, 1.4, math.pi),
    "plus": _plus(),
    "hexagon": _regular(6, 1.12),
    "cross": _plus(math.pi / 4),
}
"""Corners of each shape, which is about as large as the unit circle; the circle itself has none."""


def element(name: str, *children: object, **attributes: object) -> Markup:
    """An SVG element; text is escaped, and `_` in the name of an attribute is written `-`.

    >>> element("text", "x < y", x=1, class_="tick")
    Markup('<text x="1" class="tick">x &lt; y</text>')
    """
    written = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), clean(value))
        for key, value in attributes.items()
    )
    inside = Markup("").join(c if isinstance(c, Markup) else clean(c) for c in children)
    return Markup("<{0}{1}>{2}</{0}>").format(name, written, inside)


def svg(width: float, height: float, *children: object, **attributes: object) -> Markup:
    """An SVG picture of this size in pixels."""
    size = {"viewBox": f"0 0 {at(width)} {at(height)}", "width": at(width), "height": at(height)}
    return element("svg", *children, **size, **attributes)


def at(value: float) -> str:
    """A coordinate with one decimal, which is as fine as a screen shows."""
    return f"{value:.1f}".removesuffix(".0")


def text(x: float, y: float, words: object, class_: str = "tick", anchor: str = "middle") -> Markup:
    """SVG text; `anchor` says whether its start, middle or end is at (x, y)."""
    return element("text", words, x=at(x), y=at(y), class_=class_, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """SVG line from (x1, y1) to (x2, y2)."""
    return element("line", x1=at(x1), y1=at(y1), x2=at(x2), y2=at(y2), class_=class_)


def rectangle(x: float, y: float, width: float, height: float, class_: str) -> Markup:
    """SVG rectangle with slightly round corners; (x, y) is its upper left corner."""
    size = {"width": at(width), "height": at(height), "rx": "1.5"}
    return element("rect", x=at(x), y=at(y), class_=class_, **size)


def class_mark(x: float, y: float, c: int, classes: int, radius: float) -> Markup:
    """Shape and colour of class number `c` of `classes` around (x, y)."""
    colour = class_colours(classes)[c]
    points = list(SHAPES.values())[c % len(SHAPES)]
    class_ = "sign inked" if colour == INK else "sign"
    if not points:
        return element("circle", cx=at(x), cy=at(y), r=f"{radius:g}", fill=colour, class_=class_)
    corners = " ".join(f"{x + radius * dx:.1f},{y + radius * dy:.1f}" for dx, dy in points)
    return element("polygon", points=corners, fill=colour, class_=class_)


def swatch(c: int, classes: int) -> Markup:
    """Sign of class number `c` of `classes`: its colour and shape, as on the map."""
    class_ = "sign inked" if class_colours(classes)[c] == INK else "sign"
    return svg(14, 14, class_mark(7, 7, c, classes, 4.6), class_=class_, aria_hidden="true")


def histogram(bars: Sequence[tuple[str, int]], *, unit: str, label: str) -> Markup:
    """Draw columns with their counts above and their names below; `unit` names the horizontal axis.

    `label` is the chart in one sentence, for screen readers.
    """
    letters = max((len(name) for name, _ in bars), default=0)
    step, top, floor = max(44, 7 * letters + 6) if len(bars) <= 12 else 520 / len(bars), 22, 132
    width = max(step * len(bars), 200)
    most = max((count for _, count in bars), default=0) or 1
    # Among many columns only some names have room.
    every = max(1, -(-len(bars) // 12))
    parts = [line(0, floor + 0.5, step * len(bars), floor + 0.5, "axis")]
    for k, (name, count) in enumerate(bars):
        middle = (k + 0.5) * step
        height = (floor - top) * count / most
        parts.append(rectangle(middle - 0.36 * step, floor - height, 0.72 * step, height, "bar"))
        if k % every == 0:
            parts.append(text(middle, floor + 17, name))
            if count:
                parts.append(text(middle, floor - height - 6, compact(count), "value"))
    parts.append(text(0, floor + 37, unit, "unit", "start"))
    return svg(width, floor + 42, *parts, role="img", aria_label=label, class_="chart")


def compact(count: int) -> str:
    """A count in at most five characters.

    >>> [compact(n) for n in (999, 2708, 12_345, 1_234_567)]
    ['999', '2,708', '12k', '1.2M']
    """
    if count < 10_000:
        return f"{count:,}"
    return f"{count / 1e3:.0f}k" if count < 1e6 else f"{count / 1e6:.1f}M"


def share_bar(share: float) -> Markup:
    """Bar of a share between 0 and 1 inside a table; the number stands beside it."""
    return svg(120, 12, rectangle(0, 2, 120 * share, 8, "bar"), aria_hidden="true", class_="share")


def interval(share: float, low: float, high: float) -> Markup:
    """A share and its interval on a line from 0 to 100 %."""
    width = 200
    parts = [
        line(0, 9, width, 9, "axis"),
        rectangle(low * width, 5, max((high - low) * width, 1), 8, "band"),
        element("circle", cx=at(share * width), cy="9", r="5", class_="dot"),
    ]
    label = f"{100 * share:.1f} %, interval {100 * low:.1f} to {100 * high:.1f} %"
    return svg(width, 18, *parts, role="img", aria_label=label, class_="interval")


def reliability_curve(before: Sequence[Bin], after: Sequence[Bin]) -> Markup:
    """Accuracy against confidence before and after calibration, with the counts below."""
    left, top, size, room = 46, 28, 300, 64
    bottom = top + size
    width, height = left + size + 26, bottom + 34 + room + 22

    def x(value: float) -> float:
        return left + size * value

    def y(value: float) -> float:
        return bottom - size * value

    parts = [line(x(0), y(0), x(1), y(1), "ideal"), text(0, 12, "correct", "unit", "start")]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts += [
            line(left, y(tick), left + size, y(tick), "grid"),
            text(left - 8, y(tick) + 4, f"{100 * tick:.0f} %", anchor="end"),
            text(x(tick), bottom + 18, f"{100 * tick:.0f} %"),
        ]
    for bins, kind in ((before, "before"), (after, "after")):
        points = " ".join(f"{at(x(b.confidence))},{at(y(b.accuracy))}" for b in bins)
        parts.append(element("polyline", points=points, class_=f"curve {kind}"))
        parts += [_point(x(b.confidence), y(b.accuracy), kind) for b in bins]
    floor = bottom + 34 + room
    most = max((b.count for b in (*before, *after)), default=1)
    for bins, kind, shift in ((before, "before", -5.5), (after, "after", 0.5)):
        for b in bins:
            high = max((room - 22) * b.count / most, 1)
            parts.append(rectangle(x(b.confidence) + shift, floor - high, 5, high, f"bin {kind}"))
    parts.append(line(left, floor + 0.5, left + size, floor + 0.5, "axis"))
    parts.append(text(left - 8, floor, "labels", anchor="end"))
    parts.append(text(left + size, floor + 18, "confidence", "unit", "end"))
    label = (
        "Share of correct held-out predictions against their confidence, before and after "
        "calibration. The table that follows has the numbers."
    )
    return svg(width, height, *parts, role="img", aria_label=label, class_="chart curve-chart")


def _point(x: float, y: float, kind: str) -> Markup:
    """A square before calibration, a disc after it, so that colour is not the only difference."""
    if kind == "before":
        corner = {"x": at(x - 4), "y": at(y - 4)}
        return element("rect", **corner, width="8", height="8", class_="point before")
    return element("circle", cx=at(x), cy=at(y), r="4.5", class_="point after")


def curve_sign(kind: str) -> Markup:
    """Legend sign of a reliability curve; `kind` is "before" or "after"."""
    return svg(28, 16, line(0, 8, 28, 8, f"curve {kind}"), _point(14, 8, kind), aria_hidden="true")
