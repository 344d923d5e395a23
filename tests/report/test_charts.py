from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from markupsafe import Markup

from kryograph.labelling.calibration import Bin
from kryograph.report.charts import (
    INK,
    SHAPES,
    class_colours,
    element,
    histogram,
    interval,
    reliability_curve,
    swatch,
)


def numbers(picture: Markup, element: str, attribute: str) -> list[float]:
    return [float(v) for v in re.findall(rf'<{element}[^>]* {attribute}="([-0-9.]+)"', picture)]


def test_element_escapes_text_and_keeps_elements() -> None:
    inner = element("b", "a < b")
    made = element("p", inner, " & c", "\x00", title='"x"')
    assert made == '<p title="&#34;x&#34;"><b>a &lt; b</b> &amp; c\ufffd</p>'


def test_columns_are_as_high_as_their_counts() -> None:
    picture = histogram([("a", 10), ("b", 5), ("c", 0)], unit="letters", label="Letters")
    high = numbers(picture, "rect", "height")
    assert high == [pytest.approx(2 * high[1]), high[1], 0]
    assert 'aria-label="Letters"' in picture


@pytest.mark.parametrize("count", [1, 3, 12, 13, 400])
def test_columns_stay_inside_the_picture(count: int) -> None:
    picture = histogram([(str(k), k) for k in range(count)], unit="u", label="l")
    ElementTree.fromstring(picture)
    [width] = re.findall('viewBox="0 0 ([0-9.]+) ', picture)
    ends = zip(numbers(picture, "rect", "x"), numbers(picture, "rect", "width"), strict=True)
    assert all(x >= 0 and x + wide <= float(width) for x, wide in ends)


def test_a_point_of_the_curve_is_where_its_bin_says() -> None:
    picture = reliability_curve([Bin(0.0, 0.0, 1), Bin(1.0, 1.0, 2)], [Bin(0.5, 0.5, 4)])
    ElementTree.fromstring(picture)
    x, y = numbers(picture, "circle", "cx")[0], numbers(picture, "circle", "cy")[0]
    [line] = re.findall('points="([-0-9., ]+)" class="curve before"', picture)
    (x0, y0), (x1, y1) = (map(float, point.split(",")) for point in line.split())
    assert (x, y) == (pytest.approx((x0 + x1) / 2), pytest.approx((y0 + y1) / 2))
    assert x0 < x1
    assert y0 > y1  # upwards


def test_an_interval_of_nothing_can_still_be_seen() -> None:
    assert numbers(interval(1.0, 1.0, 1.0), "rect", "width") == [1]


@pytest.mark.parametrize("count", [1, 8, 9, 40])
def test_no_two_classes_share_colour_and_shape(count: int) -> None:
    signs = [(colour, c % len(SHAPES)) for c, colour in enumerate(class_colours(count))]
    assert len(set(signs)) == count
    assert len(set(class_colours(count))) == count
    for c in range(count):
        ElementTree.fromstring(swatch(c, count))


def test_the_eighth_colour_is_that_of_the_text() -> None:
    assert class_colours(8)[7] == INK
    assert 'fill="currentColor"' in swatch(7, 8)


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_are_about_as_large_as_the_unit_circle(shape: str) -> None:
    corners = SHAPES[shape]
    assert (corners == []) == (shape == "circle")
    ring = zip(corners, corners[1:] + corners[:1], strict=True)
    area = abs(sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in ring)) / 2
    assert area == 0 or 2.4 < area < 3.8
    assert all(x * x + y * y <= 1.45**2 for x, y in corners)
