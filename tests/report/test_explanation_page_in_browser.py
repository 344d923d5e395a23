"""The page of an explanation in a real browser: Chromium, wherever the system has it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kryograph.report.explanation_page import render_explanation
from tests.labelling.explained import labelled_graph

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.mark.parametrize("width", [375, 1200])
def test_the_page_fits_the_window_and_nothing_complains(
    width: int, browser: Browser, tmp_path: Path
) -> None:
    explanation = labelled_graph("numbers").explain(50)
    path = tmp_path / "why.html"
    path.write_text(render_explanation(explanation, "1.2.3"), "utf-8")
    complaints: list[str] = []
    with browser.new_context(viewport={"width": width, "height": 900}) as context:
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path.as_uri())
        assert page.title() == f"Why 50 is {explanation.classes[0]}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        table = page.locator("#hops tbody tr")
        assert table.count() == explanation.hops.num_rows + 1
        assert table.last.inner_text().startswith("intercept")
        bar = page.locator("#features .bar").first.bounding_box()
        assert bar is not None
        assert bar["width"] > 1
    assert complaints == []
