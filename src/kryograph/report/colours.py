"""Colours and shapes of classes, told apart by people who see few colours, or none.

Up to eight classes have the colours of Okabe and Ito; more are spread over the hues, in turns
light and dark. Shapes take turns as well, so that neighbours in the legend never share one.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Callable
from functools import cache

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
