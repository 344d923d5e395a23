"""Colours and shapes of classes, told apart by people who see few colours, or none.

Up to eight classes have the colours of Okabe and Ito; more are spread over the hues, in turns
light and dark. Shapes take turns as well, so that neighbours in the legend never share one.

Charts: small pictures as inline SVG, coloured by the style sheet of the page.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Callable, Sequence
from functools import cache

from kryograph.labelling.calibration import Bin
from kryograph.report.html import Safe, join_markup, tag

INK = "currentColor"
"""The colour of text, which is dark on a light page and light on a dark one."""

OKABE_ITO = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", INK)

SHAPES = ("circle", "square", "up", "diamond", "down", "plus", "hexagon", "cross")


@cache
def class_colours(count: int) -> tuple[str, ...]:
    """One for each class.

    >>> class_colours(2), class_colours(9)[:2]
    (('#0072b2', '#e69f00'), ('#c34f32', '#ddd078'))
    """
    if count <= len(OKABE_ITO):
        return OKABE_ITO[:count]
    made = []
    for c in range(count):
        lightness, saturation = (0.48, 0.59) if c % 2 == 0 else (0.67, 0.6)
        parts = colorsys.hls_to_rgb((c / count + 0.033) % 1, lightness, saturation)
        made.append("#" + "".join(f"{round(255 * part):02x}" for part in parts))
    return tuple(made)


def outline(shape: str) -> list[tuple[float, float]]:
    """The corners of a shape of about the area of the unit circle; a circle has none."""
    return _OUTLINES[shape]()


def _regular(corners: int, radius: float, turn: float = 0.0) -> list[tuple[float, float]]:
    angles = [turn + 2 * math.pi * k / corners for k in range(corners)]
    return [(radius * math.sin(angle), -radius * math.cos(angle)) for angle in angles]


def _plus(turn: float = 0.0) -> list[tuple[float, float]]:
    a, b = 0.38, 1.2
    quarter = [(a, -b), (a, -a), (b, -a)]
    points = []
    for k in range(4):
        angle = turn + k * math.pi / 2
        cos, sin = math.cos(angle), math.sin(angle)
        points += [(x * cos - y * sin, x * sin + y * cos) for x, y in quarter]
    return points


_OUTLINES: dict[str, Callable[[], list[tuple[float, float]]]] = {
    "circle": list,
    "square": lambda: _regular(4, 1.25, math.pi / 4),
    "up": lambda: _regular(3, 1.4),
    "diamond": lambda: _regular(4, 1.3),
    "down": lambda: _regular(3, 1.4, math.pi),
    "plus": _plus,
    "hexagon": lambda: _regular(6, 1.12),
    "cross": lambda: _plus(math.pi / 4),
}


def svg(width: float, height: float, *parts: object, label: str, class_: str = "chart") -> Safe:
    """A picture with a sentence for those who do not see it."""
    return tag(
        "svg",
        *parts,
        viewBox=f"0 0 {width:g} {height:g}",
        width=f"{width:g}",
        height=f"{height:g}",
        role="img",
        aria_label=label,
        class_=class_,
    )


def at(value: float) -> str:
    """A coordinate with as many digits as can be seen."""
    return f"{value:.1f}".removesuffix(".0")


def text(x: float, y: float, words: object, class_: str = "tick", anchor: str = "middle") -> Safe:
    """Words in a picture."""
    return tag("text", words, x=at(x), y=at(y), class_=class_, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Safe:
    """A straight one."""
    return tag("line", x1=at(x1), y1=at(y1), x2=at(x2), y2=at(y2), class_=class_)


def rectangle(x: float, y: float, width: float, height: float, class_: str) -> Safe:
    """With slightly round corners."""
    size = {"width": at(width), "height": at(height), "rx": "1.5"}
    return tag("rect", x=at(x), y=at(y), class_=class_, **size)


def swatch(c: int, classes: int) -> Safe:
    """The sign of a class on the map: its colour and its shape."""
    colour = class_colours(classes)[c]
    points = outline(SHAPES[c % len(SHAPES)])
    if points:
        corners = " ".join(f"{7 + 4.6 * x:.1f},{7 + 4.6 * y:.1f}" for x, y in points)
        sign = tag("polygon", points=corners, fill=colour)
    else:
        sign = tag("circle", cx="7", cy="7", r="4.6", fill=colour)
    edge = "sign inked" if colour == INK else "sign"
    return tag(
        "svg", sign, viewBox="0 0 14 14", width="14", height="14", class_=edge, aria_hidden="true"
    )


def histogram(bars: Sequence[tuple[str, int]], *, unit: str, label: str) -> Safe:
    """Columns with their counts above and their names below."""
    letters = max((len(name) for name, _ in bars), default=0)
    step, top, floor = max(44, 7 * letters + 6) if len(bars) <= 12 else 520 / len(bars), 22, 132
    width = max(step * len(bars), 200)
    most = max((count for _, count in bars), default=0) or 1
    # With many columns only some names have room.
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
    return svg(width, floor + 42, *parts, label=label)


def compact(count: int) -> str:
    """A count in little room.

    >>> [compact(n) for n in (999, 2708, 12_345, 1_234_567)]
    ['999', '2,708', '12k', '1.2M']
    """
    if count < 10_000:
        return f"{count:,}"
    return f"{count / 1e3:.0f}k" if count < 1e6 else f"{count / 1e6:.1f}M"


def share_bar(share: float) -> Safe:
    """A bar inside a table; the number beside it says the same."""
    return tag(
        "svg",
        rectangle(0, 2, 120 * share, 8, "bar"),
        viewBox="0 0 120 12",
        width="120",
        height="12",
        aria_hidden="true",
        class_="share",
    )


def interval(share: float, low: float, high: float) -> Safe:
    """A share with its interval, on a line from 0 to 100 %."""
    width = 200
    parts = [
        line(0, 9, width, 9, "axis"),
        rectangle(low * width, 5, max((high - low) * width, 1), 8, "band"),
        tag("circle", cx=at(share * width), cy="9", r="5", class_="dot"),
    ]
    said = f"{100 * share:.1f} %, interval {100 * low:.1f} to {100 * high:.1f} %"
    return svg(width, 18, *parts, label=said, class_="interval")


def reliability_curve(before: Sequence[Bin], after: Sequence[Bin]) -> Safe:
    """How often predictions are right, by how sure they are; the counts of both below."""
    left, top, size, room = 46, 28, 300, 64
    bottom = top + size
    width, height = left + size + 26, bottom + 34 + room + 22

    def x(value: float) -> float:
        return left + size * value

    def y(value: float) -> float:
        return bottom - size * value

    parts = [line(x(0), y(0), x(1), y(1), "ideal")]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts += [line(left, y(tick), left + size, y(tick), "grid")]
        parts += [text(left - 8, y(tick) + 4, f"{100 * tick:.0f} %", anchor="end")]
        parts += [text(x(tick), bottom + 18, f"{100 * tick:.0f} %")]
    for bins, kind in ((before, "before"), (after, "after")):
        points = " ".join(f"{at(x(b.confidence))},{at(y(b.accuracy))}" for b in bins)
        parts.append(tag("polyline", points=points, class_=f"curve {kind}"))
        for b in bins:
            parts.append(_point(x(b.confidence), y(b.accuracy), kind))
    parts.append(text(0, 12, "right, of held-out answers", "unit", "start"))
    floor = bottom + 34 + room
    most = max((b.count for b in (*before, *after)), default=1)
    for bins, kind, shift in ((before, "before", -5.5), (after, "after", 0.5)):
        for b in bins:
            high = max((room - 22) * b.count / most, 1)
            parts.append(rectangle(x(b.confidence) + shift, floor - high, 5, high, f"bin {kind}"))
    parts.append(line(left, floor + 0.5, left + size, floor + 0.5, "axis"))
    parts.append(text(left - 8, floor, "labels", anchor="end"))
    parts.append(text(left + size, floor + 18, "how sure they are", "unit", "end"))
    said = (
        "Reliability of held-out predictions: how often they are right against how sure they "
        "are, before and after calibration. The numbers are in the table that follows."
    )
    return svg(width, height, *parts, label=said, class_="chart curve-chart")


def _point(x: float, y: float, kind: str) -> Safe:
    """A square before calibration, a disc after it: not told apart by colour alone."""
    if kind == "before":
        return tag("rect", x=at(x - 4), y=at(y - 4), width="8", height="8", class_="point before")
    return tag("circle", cx=at(x), cy=at(y), r="4.5", class_="point after")


def key(*entries: tuple[str, str]) -> Safe:
    """What the signs of the reliability curve mean."""
    items = [
        tag(
            "li",
            tag(
                "svg",
                line(0, 8, 28, 8, f"curve {kind}"),
                _point(14, 8, kind),
                width="28",
                height="16",
                viewBox="0 0 28 16",
                aria_hidden="true",
            ),
            f" {words}",
        )
        for kind, words in entries
    ]
    return tag("ul", join_markup(items), class_="key")
