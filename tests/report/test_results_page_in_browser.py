"""The page of results in a real browser: Chromium, wherever the system has it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kryograph.experiments.standings import standings
from kryograph.report.results_page import render_results_page
from kryograph.report.results_text import TableView
from tests.made_runs import MIXED, NASTY, cells, small

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """The page of the small table; in the end there must have been no complaint and no request."""
    found = cells(MIXED)
    shown = TableView(small(), tuple(found), tuple(standings(found)))
    path = tmp_path / "results.html"
    path.write_text(render_results_page([shown], source="runs.sqlite", version="1.2.3"), "utf-8")
    with browser.new_context(viewport={"width": 1200, "height": 900}) as context:
        opened = context.new_page()
        said: list[str] = []
        opened.on("console", lambda message: said.append(message.text))
        opened.on("pageerror", lambda error: said.append(str(error)))
        opened.on("dialog", lambda dialog: said.append(f"dialog {dialog.message}"))
        opened.on("request", lambda request: said.append(f"request {request.url}"))
        opened.goto(path.as_uri())
        yield opened
        assert said == [f"request {path.as_uri()}"]


def column(page: Page, number: int) -> list[str]:
    """The texts of a column of the runs that are shown, the first being 1."""
    return page.locator(f".runs tbody tr:visible > :nth-child({number})").all_inner_texts()


def test_hover_shows_the_runs_of_a_cell(page: Page) -> None:
    tip = page.locator("#tip")
    assert tip.is_hidden()
    page.locator("[data-cell='0']").first.hover()
    assert tip.locator("strong").inner_text() == "gcn, Cora 1%"
    assert tip.locator("circle").count() == 3
    assert "57.0 to 67.0" in tip.inner_text()
    # Ordered as the scores are, and the paper's line where it belongs: 60 is the first run.
    across = [
        float(x)
        for x in tip.locator("circle").evaluate_all("c => c.map(e => e.getAttribute('cx'))")
    ]
    assert across == sorted(across)
    assert float(tip.locator(".paper").get_attribute("x1") or 0) == pytest.approx(across[0])
    assert float(tip.locator(".mean").get_attribute("x1") or 0) == pytest.approx(across[1])
    page.mouse.move(2, 2)
    assert tip.is_hidden()


def test_arrow_keys_go_from_cell_to_cell(page: Page) -> None:
    first = page.locator(".heats").first
    assert first.locator("[tabindex='0']").count() == 1
    first.locator("[tabindex='0']").focus()
    name = page.locator("#tip strong")
    assert name.inner_text() == "gcn, Cora 1%"
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert name.inner_text() == "gat, CiteSeer 1%"
    assert page.evaluate("document.activeElement.getAttribute('aria-describedby')") == "tip"
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()
    # Tab leaves the table at once: the next stop is the other table.
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.heats') !== null")
    assert name.inner_text() == "gcn, Cora 1%"


def test_what_a_failed_run_said_stays_text(page: Page) -> None:
    page.locator("[data-cell='2']").first.hover()
    assert NASTY in page.locator("#tip").inner_text()
    assert page.locator("#tip script").count() == 0
    page.locator("summary", has_text="Every run").click()
    assert NASTY in column(page, 12)


def test_runs_are_sorted_by_number_with_unknown_ones_last(page: Page) -> None:
    page.locator("summary", has_text="Every run").click()
    button = page.get_by_role("button", name="Test %")
    button.focus()
    page.keyboard.press("Enter")
    assert column(page, 4)[:3] == ["50.0", "51.0", "60.0"]
    assert column(page, 4)[-3:] == ["–", "–", "–"]
    assert page.locator(".runs [aria-sort='ascending']").inner_text().startswith("Test %")
    page.keyboard.press("Enter")
    assert column(page, 4)[:2] == ["80.0", "74.0"]
    assert column(page, 4)[-3:] == ["–", "–", "–"]


def test_runs_are_filtered(page: Page) -> None:
    page.locator("summary", has_text="Every run").click()
    page.get_by_label("Only runs with").fill("SNOWBALL")
    assert column(page, 1) == ["snowball"] * 4


def test_a_phone_scrolls_tables_not_the_page(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.locator("[data-cell='1']").first.hover()
    box = page.locator("#tip").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 360


def test_in_print_nothing_floats_and_tables_are_whole(page: Page) -> None:
    page.locator("[data-cell='0']").first.focus()
    page.emulate_media(media="print")
    assert page.locator("#tip").is_hidden()
    assert page.locator("nav").is_hidden()
    assert page.locator(".heats").first.is_visible()
