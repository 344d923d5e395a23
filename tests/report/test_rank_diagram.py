from __future__ import annotations

from xml.etree import ElementTree

import pytest

from kryograph.experiments.comparison import Comparison
from kryograph.experiments.ranking import Ranking
from kryograph.report.rank_diagram import comparison_text, probability, rank_svg, rank_text

SVG = "{http://www.w3.org/2000/svg}"
THIRTY = tuple(f"c{j}" for j in range(30))
FOUR = Ranking(("first", "second", "third", "fourth"), (1.0, 1.8, 2.6, 4.0), THIRTY, 0.0004)
"""The critical difference is 0.86: neighbours among the first three do not differ significantly."""


def test_small_probabilities_are_not_zero() -> None:
    assert [probability(p) for p in (1.0, 0.0311, 0.001, 0.0009)] == [
        *("1.000", "0.031", "0.001", "< 0.001"),
    ]


def test_a_comparison_is_a_row() -> None:
    six = Comparison("a", "b", "Cora 1%", (0.01, 0.02, 0.03, 0.04, 0.05, 0.06))
    two = Comparison("a", "c", "Cora 1%", (-0.01, 0.0))
    out = " ".join(comparison_text([six]).split())
    # 3.5 ± 2.5706 · 1.8708 / √6.
    assert "Cora 1% b 6 +3.50 +1.54 to +5.46 0.031 6 / 0 / 0" in out
    assert "p-value in brackets" not in out
    out = " ".join(comparison_text([six, two]).split())
    assert "Cora 1% c 2 −0.50 −6.85 to +5.85 (1.000) 0 / 1 / 1" in out
    assert "A p-value in brackets cannot be below 0.05" in out


def test_the_text_has_a_line_for_each_system_and_a_bar_for_each_group() -> None:
    lines = rank_text(FOUR).splitlines()
    assert lines[0] == (
        "Average ranks over 30 columns, 1 is best; critical difference 0.86 (Nemenyi, 5 %); "
        "Friedman p < 0.001"
    )
    names = [line.split() for line in lines if "●" in line]
    assert [name for name, *_ in names] == list(FOUR.systems)
    bars = [line[line.index("●") :].count("┃") for line in lines if "●" in line]
    assert bars == [1, 2, 1, 0]
    places = [line.index("●") for line in lines if "●" in line]
    assert places == sorted(places)
    # The first is at rank 1, the last at rank 4: the ends of the scale.
    assert places[-1] - places[0] == 47


def test_of_two_systems_there_is_no_friedman_test() -> None:
    apart = Ranking(("first", "second"), (1.0, 2.0), THIRTY, None)
    said = rank_text(apart)
    assert "Friedman" not in said
    assert "All systems differ significantly." in said


def picture(ranking: Ranking, title: str = "Systems") -> ElementTree.Element:
    return ElementTree.fromstring(rank_svg(ranking, title))


def test_the_picture_says_all_in_text() -> None:
    root = picture(FOUR, "A & <b>")
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert texts[0] == "A & <b>"
    assert {"first", "second", "third", "fourth", "1.00", "4.00"} <= set(texts)
    description = root.find(f"{SVG}desc")
    assert description is not None
    assert "first 1.00, second 1.80, third 2.60, fourth 4.00" in str(description.text)


def test_the_picture_has_a_bar_from_the_first_of_a_group_to_its_last() -> None:
    root = picture(FOUR)
    dots = [float(each.get("cx", "")) for each in root.iter(f"{SVG}circle")]
    bars = [each for each in root.iter(f"{SVG}rect") if each.get("class") == "group"]
    starts = [float(bar.get("x", "")) for bar in bars]
    assert starts == pytest.approx([dots[0] - 3, dots[1] - 3], abs=0.2)
    widths = [float(bar.get("width", "")) for bar in bars]
    assert widths == pytest.approx([dots[1] - dots[0] + 6, dots[2] - dots[1] + 6], abs=0.2)


@pytest.mark.parametrize("k", [2, 3, 14, 23])
def test_nothing_of_the_picture_is_outside_it(k: int) -> None:
    names = tuple(f"truncated-krylov-{i}" for i in range(k))
    # Two columns: the critical difference is longer than the axis.
    root = picture(Ranking(names, tuple(1.0 + i for i in range(k)), ("x", "y"), None))
    width, height = float(root.get("width", "")), float(root.get("height", ""))
    for element in root.iter(f"{SVG}text"):
        room = 7.6 * len(element.text or "") if element.get("class") == "name" else 0
        sign = -1 if element.get("text-anchor") == "end" else 1
        assert 0 <= float(element.get("x", "")) + sign * room <= width
        assert 0 <= float(element.get("y", "")) <= height
    labels = [e for e in root.iter(f"{SVG}text") if e.get("class") == "name"]
    places = {(e.get("text-anchor"), e.get("y")) for e in labels}
    assert len(places) == k
