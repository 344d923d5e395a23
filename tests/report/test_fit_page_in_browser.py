"""The page of a labelled graph in Chromium; skipped where there is none."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from kryograph.graph import UNKNOWN
from kryograph.labelling.labelled_graph import LabelledGraph
from kryograph.report.charts import class_colours
from kryograph.report.fit_page import SCRIPTS
from tests.report.conftest import Opens
from tests.report.labelled_graphs import NASTY, fitted, large, lopsided, places, renamed

if TYPE_CHECKING:
    from playwright.sync_api import Page

Picture = np.ndarray[Any, np.dtype[np.int64]]


def on_screen(page: Page, labelled: LabelledGraph, node: int) -> tuple[float, float]:
    """Where on the canvas a node is while the whole map is shown."""
    at = places(labelled)
    low, high = at.min(axis=0), at.max(axis=0)
    box = page.eval_on_selector("#canvas", "c => [c.clientWidth, c.clientHeight]")
    scale = min((box[0] - 44) / (high - low)[0], (box[1] - 44) / (high - low)[1])
    x, y = (at[node] - (low + high) / 2) * scale + np.array(box) / 2
    return float(x), float(y)


PICTURE = """async () => {
  for (let k = 0; k < 2; k++) await new Promise(requestAnimationFrame);
  const canvas = document.getElementById("canvas"), copy = document.createElement("canvas");
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const pen = copy.getContext("2d", { willReadFrequently: true });
  pen.drawImage(canvas, 0, 0);
  const { data } = pen.getImageData(0, 0, copy.width, copy.height);
  let text = "";
  for (let k = 0; k < data.length; k += 8192)
    text += String.fromCharCode(...data.subarray(k, k + 8192));
  return [copy.height, copy.width, btoa(text)];
}"""


def picture(page: Page) -> Picture:
    """Colours of the map after two more frames: height × width × (red, green, blue)."""
    height, width, packed = page.evaluate(PICTURE)
    data = np.frombuffer(base64.b64decode(packed), dtype=np.uint8)
    return data.reshape(height, width, 4)[:, :, :3].astype(np.int64)


def changed_share(before: Picture, after: Picture) -> float:
    """Share of the pixels whose colour is visibly another one."""
    return float((np.abs(after - before).max(axis=2) > 16).mean())


def looks_different(before: Picture, after: Picture) -> bool:
    return changed_share(before, after) > 1e-3


def redrawn(page: Page, before: Picture) -> Picture:
    """The map as soon as it looks different; a wheel event takes some frames to arrive."""
    for _ in range(1000):
        if looks_different(before, after := picture(page)):
            return after
    raise AssertionError("the map has not changed in 2,000 frames")


def colours(page: Page) -> set[str]:
    """Colours on the map, written as in a style sheet."""
    distinct = np.unique(picture(page).reshape(-1, 3), axis=0)
    return {"#" + "".join(f"{channel:02x}" for channel in colour) for colour in distinct.tolist()}


def lonely(labelled: LabelledGraph) -> int:
    """A node with much room around it."""
    at = places(labelled)
    apart = np.linalg.norm(at[:, None] - at[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    return int(apart.min(axis=1).argmax())


def test_hover_shows_what_is_known_of_a_node(opened: Opens) -> None:
    labelled = fitted()
    node = lonely(labelled)
    with opened(labelled) as page:
        x, y = on_screen(page, labelled, node)
        page.hover("#canvas", position={"x": x, "y": y})
        tip = page.locator("#tip")
        assert tip.is_visible()
        words = tip.inner_text()
        assert words.startswith(f"n{node}\n")
        best = int(labelled.probabilities[node].argmax())
        assert f"topic {best}" in words
        assert f"{100 * labelled.probabilities[node, best]:.1f} %" in words
        assert "90 % set" in words
        page.mouse.move(2, 2)
        assert tip.is_hidden()


def test_search_finds_a_node_and_marks_it(opened: Opens) -> None:
    with opened(fitted()) as page:
        before = picture(page)
        page.get_by_label("Find a node").fill("n27")
        assert page.locator("#found").inner_text() == "11 nodes found"
        assert page.locator("#matches button").first.inner_text().startswith("n27\n")
        page.keyboard.press("Enter")
        assert page.locator("#tip strong").inner_text() == "n27"
        assert page.locator("#matches").is_hidden()
        assert looks_different(before, picture(page))
        page.get_by_label("Find a node").fill("nothing")
        assert page.locator("#found").inner_text() == "No id on the map contains this text."


def test_a_match_can_be_chosen_by_keyboard(opened: Opens) -> None:
    with opened(fitted()) as page:
        page.focus("#search")
        page.keyboard.type("n12")
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        second = page.locator("#tip strong").inner_text()
        assert second.startswith("n12")
        assert second != "n12"
        assert page.input_value("#search") == second


def test_colours_change_by_keyboard(opened: Opens) -> None:
    labelled = fitted()
    right = int(labelled.held_out.right.sum())
    with opened(labelled) as page:
        by_class = picture(page)
        assert page.locator("#legend li").count() == 4
        page.focus("#colour")
        page.keyboard.press("ArrowDown")
        assert page.locator("#legend-title").inner_text() == "Confidence"
        by_confidence = redrawn(page, by_class)
        page.keyboard.press("ArrowDown")
        assert page.locator("#legend").inner_text().split("\n") == [
            *("not held out", "260"),
            *("correct", f"{right}"),
            *("wrong", f"{len(labelled.held_out.nodes) - right}"),
        ]
        assert looks_different(by_class, redrawn(page, by_confidence))


def test_every_group_of_the_legend_is_on_the_map(opened: Opens) -> None:
    labelled = fitted()
    sure = labelled.probabilities.max(axis=1)
    with opened(labelled) as page:
        assert set(class_colours(4)) <= colours(page)
        page.select_option("#colour", "confidence")
        limits = ((0.9, "#1f6fa8"), (0.8, "#79b4d8"), (0.7, "#e9c46a"), (0.5, "#e08a1e"))
        expected = {next((c for limit, c in limits if p >= limit), "#b8430b") for p in sure}
        assert len(expected) > 2
        assert expected <= colours(page)
        page.select_option("#colour", "error")
        assert {"#8b959e", "#0072b2", "#d55e00"} <= colours(page)


def test_the_map_is_moved_and_zoomed_by_keys_buttons_and_wheel(opened: Opens) -> None:
    with opened(fitted()) as page:
        whole = picture(page)
        assert page.get_by_label("Zoom out").is_disabled()
        for action in (
            lambda: page.get_by_label("Zoom in").click(),
            lambda: page.press("#canvas", "+"),
            lambda: page.press("#canvas", "ArrowRight"),
            lambda: (page.hover("#canvas"), page.mouse.wheel(0, -200)),
        ):
            before = picture(page)
            action()
            redrawn(page, before)
        page.hover("#canvas", position={"x": 300, "y": 300})
        before = picture(page)
        page.mouse.down()
        page.mouse.move(500, 400)
        page.mouse.up()
        redrawn(page, before)
        page.get_by_label("Show the whole map").click()
        page.press("#canvas", "Escape")
        assert not looks_different(whole, picture(page))


def test_a_class_can_be_shown_alone(opened: Opens) -> None:
    with opened(fitted()) as page:
        before = picture(page)
        button = page.locator("#legend button").first
        button.press("Enter")
        assert button.get_attribute("aria-pressed") == "true"
        assert looks_different(before, picture(page))
        button.press("Enter")
        assert not looks_different(before, picture(page))


def test_a_suggestion_leads_to_its_node(opened: Opens) -> None:
    labelled = fitted()
    with opened(labelled) as page:
        page.locator("#suggestions .jump").first.click()
        assert page.locator("#tip strong").inner_text() == f"n{labelled.suggestions[0].node}"


def test_names_that_are_markup_stay_text(opened: Opens) -> None:
    labelled = renamed(fitted(), classes=[NASTY, "<img src=x onerror=alert(2)>"], nodes=[NASTY])
    with opened(labelled) as page:
        page.fill("#search", "</script>")
        assert page.locator("#matches bdi").first.inner_text() == NASTY
        page.press("#search", "Enter")
        assert page.locator("#tip strong").inner_text() == NASTY
        assert page.locator("#legend bdi").first.inner_text() == NASTY
        assert page.locator("#legend bdi").nth(1).inner_text().startswith("<img")
        assert page.locator("#panel-title").inner_text() == NASTY
        page.fill("#list-id", "</script>")
        assert page.locator("#rows tr").count() == 1
        assert page.locator("#rows th").inner_text() == NASTY
        assert page.locator("img").count() == 0
        assert page.locator("script").count() == 1 + len(SCRIPTS)


@pytest.mark.parametrize("name", ["topic", "a topic whose name is long " * 3, "x" * 300])
def test_a_phone_scrolls_in_one_direction_only(opened: Opens, name: str) -> None:
    labelled = renamed(fitted(), classes=[name], nodes=[name])
    with opened(labelled) as page:
        page.set_viewport_size({"width": 360, "height": 700})
        page.evaluate("() => document.querySelectorAll('details').forEach((d) => (d.open = true))")
        page.fill("#search", name[:200])
        page.press("#search", "Enter")
        wide, room = page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
        assert wide <= room


def test_dark_paper_has_light_ink(opened: Opens) -> None:
    def ink_and_paper(page: Page) -> list[float]:
        style = "getComputedStyle(document.documentElement)"
        both: list[str] = page.evaluate(f"() => [{style}.color, {style}.backgroundColor]")
        return [sum(map(float, text[4:-1].split(","))) for text in both]

    with opened(fitted(), color_scheme="dark") as page:
        ink, paper = ink_and_paper(page)
        dark = picture(page)
        assert ink > 600 > 150 > paper
        page.emulate_media(color_scheme="light")
        ink, paper = ink_and_paper(page)
        assert ink < 150 < 600 < paper
        redrawn(page, dark)


def test_paper_shows_the_map_without_its_controls(opened: Opens) -> None:
    with opened(fitted()) as page:
        page.emulate_media(media="print")
        assert page.locator("#canvas").is_visible()
        assert page.locator("#search").is_hidden()
        assert page.locator("nav").is_hidden()
        assert page.pdf().startswith(b"%PDF")


def test_a_finger_moves_the_page_until_the_map_is_zoomed(opened: Opens) -> None:
    with opened(fitted(), has_touch=True) as page:
        assert page.eval_on_selector("#canvas", "c => c.style.touchAction") == "pan-y"
        page.get_by_label("Zoom in").tap()
        assert page.eval_on_selector("#canvas", "c => c.style.touchAction") == "none"


def test_twenty_thousand_nodes_are_drawn_and_found(opened: Opens) -> None:
    labelled = large(20_000)
    with opened(labelled) as page:
        before = picture(page)
        page.press("#canvas", "+")
        redrawn(page, before)
        page.get_by_label("Show the whole map").click()
        node = 12_345
        x, y = on_screen(page, labelled, node)
        page.hover("#canvas", position={"x": x, "y": y})
        assert page.locator("#tip").is_visible()
        page.fill("#search", labelled.graph.names[node])
        page.press("#search", "Enter")
        assert page.locator("#tip strong").inner_text() == labelled.graph.names[node]


def test_a_graph_of_two_nodes_has_a_page(opened: Opens) -> None:
    labelled = fitted()
    keep = labelled.held_out.nodes[:2]
    graph = replace(
        labelled.graph,
        adjacency=labelled.graph.adjacency[keep][:, keep],
        features=labelled.graph.features[keep],
        names=("left", "right"),
    )
    given = labelled.given_labels[keep].copy()
    given[1] = UNKNOWN
    held = replace(
        labelled.held_out,
        nodes=np.array([0]),
        labels=given[:1],
        importance=np.ones(1),
        probabilities=labelled.held_out.probabilities[:1],
    )
    small = replace(
        labelled,
        graph=graph,
        given_labels=given,
        held_out=held,
        probabilities=labelled.probabilities[keep],
        suggestions=(),
    )
    with opened(small) as page:
        page.fill("#search", "right")
        page.press("#search", "Enter")
        assert page.locator("#tip strong").inner_text() == "right"


def test_threshold_moves_the_point_on_the_curve_and_the_numbers(opened: Opens) -> None:
    labelled = lopsided()
    ranking = labelled.quality.ranking
    assert ranking is not None
    highest, lowest = ranking.points[0], ranking.points[-1]
    with opened(labelled) as page:

        def shown() -> dict[str, str]:
            fact = page.locator("[data-fact]")
            texts = fact.evaluate_all(
                "all => all.map((one) => [one.dataset.fact, one.textContent])"
            )
            return dict(texts)

        page.focus("#threshold")
        for key, point in (("Home", lowest), ("End", highest)):
            page.keyboard.press(key)
            assert shown() == {
                "threshold": f"{point.threshold:.3f}",
                "precision": f"{100 * point.precision:.1f}\N{NO-BREAK SPACE}%",
                "recall": f"{100 * point.recall:.1f}\N{NO-BREAK SPACE}%",
                "selected": f"{point.selected:,}",
                "expected": f"{point.expected:,.0f}",
            }
        before = float(page.get_attribute("#threshold-mark", "cx") or "nan")
        page.keyboard.press("Home")
        after = float(page.get_attribute("#threshold-mark", "cx") or "nan")
        assert after > before  # a lower threshold has a higher recall
        assert "recall" in (page.get_attribute("#threshold", "aria-valuetext") or "")
        page.locator("#disputed .jump").first.click()
        assert page.locator("#tip strong").inner_text() == f"n{labelled.disputed[0].node}"


def test_threshold_fits_on_a_phone(opened: Opens) -> None:
    with opened(lopsided()) as page:
        page.set_viewport_size({"width": 375, "height": 700})
        wide, room = page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
        assert wide <= room
        box = page.locator("#threshold").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 375
