"""The panel of a node on the page of a labelled graph, in Chromium."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from kryograph.labelling.labelled_graph import LabelledGraph
from tests.report.conftest import Opens
from tests.report.labelled_graphs import fitted, lopsided, renamed

if TYPE_CHECKING:
    from playwright.sync_api import Page

WIDTHS = (1200, 375)

TOO_SMALL = """() => [...document.querySelectorAll(
  "main button, main select, main input, summary, nav a")]
  .map((one) => [one.outerHTML.slice(0, 80), one.getBoundingClientRect()])
  .filter(([, box]) => box.height > 0 && box.height < 39.5)
  .map(([text, box]) => `${text} ${box.height}`)"""


def scrolls_sideways(page: Page) -> bool:
    wide, room = page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
    return bool(wide > room)


def doubtful(labelled: LabelledGraph) -> int:
    """The unlabelled node with the lowest probability."""
    best = labelled.probabilities.max(axis=1)
    free = labelled.given_labels < 0
    return int(np.flatnonzero(free)[best[free].argmin()])


def choose(page: Page, node: int) -> None:
    """Choose a node in the list."""
    page.get_by_label("Id contains").fill(f"n{node}")
    page.locator("[data-sort=id]").click()
    page.locator(f"#rows [data-open='{node}']").click()


def numbers(page: Page, column: int) -> list[float]:
    """Numbers of a column of the table of contributions."""
    texts = page.locator(f"#panel .bars tbody td:nth-child({column})").all_inner_texts()
    return [float(text.replace("\N{MINUS SIGN}", "-")) for text in texts]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_node_of_the_list_opens_the_panel(opened: Opens, width: int) -> None:
    labelled = fitted()
    node = doubtful(labelled)
    graph, p = labelled.graph, labelled.probabilities[node]
    neighbours = graph.adjacency.indices[
        graph.adjacency.indptr[node] : graph.adjacency.indptr[node + 1]
    ]
    with opened(labelled, width=width) as page:
        assert page.locator("#panel").is_hidden()
        choose(page, node)
        assert page.locator("#panel-title").inner_text() == f"n{node}"
        assert page.evaluate("() => document.activeElement.id") == "panel"
        shares = page.get_by_role("table", name="Probabilities").locator("tbody td.number")
        expected = [f"{100 * share:.1f} %" for share in np.sort(p)[::-1]]
        assert shares.all_inner_texts() == pytest.approx(expected)
        table = page.get_by_role("table", name="Neighbours", exact=True)
        assert set(table.locator("tbody th").all_inner_texts()) == {f"n{j}" for j in neighbours}
        assert page.locator("#panel .ego line").count() == len(neighbours)
        assert not scrolls_sideways(page)


@pytest.mark.parametrize("width", WIDTHS)
def test_contributions_add_up_in_every_division(opened: Opens, width: int) -> None:
    labelled = fitted()
    node = doubtful(labelled)
    explained = labelled.explain(node)
    with opened(labelled, width=width) as page:
        choose(page, node)
        for name in ("Neighbours", "Nodes", "Hops", "Features"):
            button = page.get_by_role("group", name="Divide the log-odds by").get_by_role(
                "button", name=name
            )
            button.press("Enter")
            assert button.get_attribute("aria-pressed") == "true"
            *lines, total = numbers(page, 2)
            assert total == pytest.approx(explained.log_odds, abs=6e-4)
            assert sum(lines) == pytest.approx(total, abs=1e-3 * len(lines))
            assert len(lines) == getattr(explained, name.lower()).num_rows + 1
            assert not scrolls_sideways(page)
        nearest = page.get_by_role("table", name="Most similar labelled nodes").locator("tbody th")
        assert nearest.all_inner_texts() == explained.given_nearest.column("node").to_pylist()


def test_the_panel_is_opened_and_closed_by_keyboard(opened: Opens) -> None:
    with opened(fitted()) as page:
        button = page.locator("#rows button").nth(2)
        name = button.inner_text()
        button.press("Enter")
        assert page.locator("#panel-title").inner_text() == name
        assert page.evaluate("() => document.activeElement.id") == "panel"
        page.keyboard.press("Tab")
        assert page.evaluate("() => document.activeElement.id") == "panel-close"
        neighbour = page.get_by_role("table", name="Neighbours", exact=True).locator("button").first
        other = neighbour.inner_text()
        neighbour.press("Enter")
        assert page.locator("#panel-title").inner_text() == other
        page.keyboard.press("Escape")
        assert page.locator("#panel").is_hidden()
        assert page.evaluate("() => document.activeElement.innerText") == name


def test_a_click_on_the_map_opens_the_panel(opened: Opens) -> None:
    with opened(fitted()) as page:
        page.fill("#search", "n27")
        page.press("#search", "Enter")
        assert page.locator("#panel-title").inner_text() == "n27"
        page.locator("#panel-close").click()
        # The node that was searched for is in the middle of the map.
        box = page.eval_on_selector("#canvas", "c => [c.clientWidth, c.clientHeight]")
        page.locator("#canvas").click(position={"x": box[0] / 2, "y": box[1] / 2})
        assert page.locator("#panel").is_visible()
        assert page.locator("#panel-title").inner_text() == "n27"


def test_a_node_without_an_explanation_has_the_command(opened: Opens) -> None:
    labelled = renamed(fitted(), nodes=["it's", "-x", "plain", "long" * 30])
    sure = labelled.probabilities.max(axis=1).argsort()
    assert not set(sure[:60].tolist()) & {0, 1, 2, 3}
    disputed = {one.node for one in labelled.disputed}
    assert not disputed & {0, 1, 2, 3}
    with opened(labelled) as page:
        for place, words in (
            (0, "kryograph explain 'my run' 'it'\\''s'"),
            (1, "kryograph explain 'my run' -- -x"),
            (2, "kryograph explain 'my run' plain"),
        ):
            page.get_by_label("Id contains").fill(("it's", "-x", "plain")[place])
            page.locator("#rows button").click()
            assert page.locator("#panel pre").inner_text() == words
        page.get_by_label("Id contains").fill("long")
        page.locator("#rows button").click()
        assert page.locator("#panel pre").count() == 0
        assert "pass the whole id" in page.locator("#panel").inner_text()


def test_a_disputed_label_is_explained_and_a_system_without_exact_form_says_so(
    opened: Opens,
) -> None:
    labelled = fitted()
    assert labelled.disputed
    with opened(labelled) as page:
        page.locator("#disputed .jump").first.click()
        assert page.locator("#panel-title").inner_text() == f"n{labelled.disputed[0].node}"
        assert "so the model has seen it" in page.locator("#panel").inner_text()
        assert page.locator("#panel .bars").count() == 1
    with opened(lopsided()) as page:
        page.locator("#rows button").first.click()
        assert "There is no exact explanation for trees" in page.locator("#panel").inner_text()


@pytest.mark.parametrize("labelled", [fitted, lopsided])
def test_touch_targets_on_a_phone_are_large_enough(opened: Opens, labelled: object) -> None:
    assert callable(labelled)
    with opened(labelled(), width=375) as page:
        page.locator("#rows button").first.click()
        assert page.locator("#panel").is_visible()
        assert page.evaluate(TOO_SMALL) == []
        page.evaluate("() => document.querySelectorAll('details').forEach((d) => (d.open = true))")
        assert not scrolls_sideways(page)
