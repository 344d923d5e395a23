from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import markupsafe
import pytest

from kryograph.experiments.graph_rows import PORTFOLIO
from kryograph.experiments.graph_summary import summarise_rows
from kryograph.report.graph_page import (
    accuracy_panel,
    nice_ticks,
    regret_panel,
    render_graph_page,
    shown_methods,
)
from kryograph.report.html import content_policy, template_text
from tests.tiny_graphs import FEATURES, made_rows

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def page() -> str:
    return render_graph_page(summarise_rows(made_rows()), source="2 graphs", version="1.2.3")


def test_the_page_loads_nothing_and_escapes_names() -> None:
    made = page()
    style = template_text("page.css") + template_text("graphs.css")
    assert f'content="{markupsafe.escape(content_policy(style, ""))}"' in made
    assert not re.search(r'\b(src|href)="(?!#)', made)
    assert " style=" not in made
    assert "b <1>" not in made.replace("\\u003c", "")
    assert "It is &lt;too&gt; slow." in made


def test_the_page_has_pictures_numbers_and_data() -> None:
    made = page()
    assert made.count("<svg") == 4 + 3  # two panels of each kind, and signs of three methods
    for words in ("3 labels of each class", "10 labels of each class", "median 0.0, worst 4.0"):
        assert words in made
    [text] = re.findall(r'<script type="application/json" id="summary">(.*?)</script>', made)
    assert json.loads(text)["regret"]["worst"] == pytest.approx(0.04)


def test_a_page_without_rows_is_a_page() -> None:
    made = render_graph_page(summarise_rows([]), source="0 graphs", version="1.2.3")
    assert "<svg" not in made


def test_bars_are_as_long_as_the_regret_and_on_its_side() -> None:
    settings = [s for s in summarise_rows(made_rows()).settings if s.per_class == 3]
    drawn = ElementTree.fromstring(regret_panel(settings, [-10, 0, 10]))
    bars = [bar for bar in drawn.iter("rect") if "bar" in bar.get("class", "")]
    [zero] = [line for line in drawn.iter("line") if line.get("class") == "axis"]
    lengths = [float(bar.get("width", "0")) for bar in bars]
    assert lengths[0] == 1  # no regret
    end = float(bars[1].get("x", "0")) + lengths[1]
    assert end == pytest.approx(float(zero.get("x1", "0")), abs=0.2)
    assert lengths[1] > 50
    assert [bar.get("class") for bar in bars] == ["bar", "bar"]
    over = regret_panel(summarise_rows(made_rows()).settings[1:2], [-10, 0, 10])
    assert 'class="bar over"' in over


def test_marks_lie_where_the_accuracy_is() -> None:
    summary = summarise_rows(made_rows())
    methods = shown_methods(summary)
    assert methods == [PORTFOLIO, FEATURES, "lp"]
    drawn = ElementTree.fromstring(accuracy_panel(summary.settings[1:2], methods, [0, 50, 100]))
    [dot] = drawn.iter("circle")
    [best] = [line for line in drawn.iter("line") if line.get("class") == "best"]
    grid = [float(g.get("x1", "0")) for g in drawn.iter("line") if g.get("class") != "best"]
    scale = (grid[-1] - grid[0]) / 100
    assert (float(dot.get("cx", "0")) - grid[0]) / scale == pytest.approx(80, abs=0.1)
    assert (float(best.get("x1", "0")) - grid[0]) / scale == pytest.approx(84, abs=0.1)
    assert len(list(drawn.iter("polygon"))) == 1  # lp has no result here


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3.2, 38), (55.5, 55.6), (0, 0), (-0.1, 99)])
def test_ticks_are_few_and_enclose_the_values(low: float, high: float) -> None:
    ticks = nice_ticks(low, high)
    assert 2 <= len(ticks) <= 6
    assert ticks[0] <= low <= high <= ticks[-1]


@pytest.mark.parametrize("width", [375, 1200])
def test_the_page_fits_every_screen(browser: Browser, tmp_path: Path, width: int) -> None:
    path = tmp_path / "graphs.html"
    path.write_text(page(), "utf-8")
    with browser.new_context(viewport={"width": width, "height": 800}) as context:
        opened = context.new_page()
        messages: list[str] = []
        opened.on("console", lambda message: messages.append(message.text))
        opened.goto(path.as_uri())
        assert opened.evaluate("document.documentElement.scrollWidth") == width
        assert opened.locator(".panel").count() == 4
        assert messages == []
