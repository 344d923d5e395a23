"""The list of nodes on the page of a labelled graph, in Chromium."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from kryograph.graph import UNKNOWN
from kryograph.labelling.labelled_graph import LabelledGraph
from kryograph.labelling.node_ranking import node_ranks
from tests.report.conftest import Opens
from tests.report.labelled_graphs import fitted, large, lopsided, renamed

if TYPE_CHECKING:
    from playwright.sync_api import Page

WIDTHS = (1200, 375)


def listed(page: Page) -> list[str]:
    """Ids of the rows of the list."""
    ids: list[str] = page.locator("#rows th").all_inner_texts()
    return ids


def doubtful_first(labelled: LabelledGraph) -> np.ndarray:
    """Nodes by the probability that the page has, the lowest one first."""
    shares = np.round(labelled.probabilities.max(axis=1) * 10_000)
    return np.argsort(shares, kind="stable")


def downloaded(page: Page, folder: Path) -> list[list[str]]:
    """Rows of the file that the page offers."""
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download as CSV").click()
    assert waiting.value.suggested_filename == "nodes.csv"
    path = folder / "nodes.csv"
    waiting.value.save_as(path)
    return list(csv.reader(io.StringIO(path.read_text("utf-8"))))


@pytest.mark.parametrize("width", WIDTHS)
def test_doubtful_nodes_come_first_page_by_page(opened: Opens, width: int) -> None:
    labelled = fitted()
    order = doubtful_first(labelled)
    with opened(labelled, width=width) as page:
        assert listed(page) == [f"n{i}" for i in order[:25]]
        assert page.locator("#list-status").inner_text() == "300 nodes"
        assert page.get_by_role("button", name="Previous").is_disabled()
        page.get_by_role("button", name="Next").click()
        assert page.locator("#range").inner_text() == "26 to 50 of 300"
        assert listed(page)[0] == f"n{order[25]}"


@pytest.mark.parametrize("width", WIDTHS)
def test_class_label_and_id_filter_the_list(opened: Opens, width: int) -> None:
    labelled = fitted()
    predicted = labelled.probabilities.argmax(axis=1)
    of_class = predicted == 2
    free = labelled.given_labels == UNKNOWN
    with opened(labelled, width=width) as page:
        page.get_by_role("combobox", name="Predicted class").select_option(label="topic 2")
        assert page.locator("#list-status").inner_text() == f"{of_class.sum()} of 300 nodes"
        assert set(page.locator("#rows td:nth-child(3)").all_inner_texts()) == {"topic 2"}
        page.get_by_label("Label", exact=True).select_option(label="Given")
        assert (
            page.locator("#list-status").inner_text() == f"{(of_class & ~free).sum()} of 300 nodes"
        )
        page.get_by_label("Label", exact=True).select_option(label="Given or not")
        page.get_by_role("combobox", name="Predicted class").select_option(label="All classes")
        page.get_by_label("Id contains").fill("N29")
        assert sorted(listed(page)) == ["n29", *(f"n29{k}" for k in range(10))]
        page.get_by_label("Id contains").fill("nothing")
        assert page.locator("#list-status").inner_text() == "No node fits."
        assert listed(page) == []
        assert page.get_by_role("button", name="Download as CSV").is_disabled()


@pytest.mark.parametrize("width", WIDTHS)
def test_headings_sort_by_click_and_by_keyboard(opened: Opens, width: int) -> None:
    labelled = lopsided()
    yes = labelled.probabilities[:, 1]

    def sorted_by(page: Page) -> dict[str, str]:
        heads = page.locator("#list thead [aria-sort]")
        return dict(
            heads.evaluate_all(
                "all => all.map((th) => [th.innerText.split(' ')[0], th.ariaSort])"
                ".filter(([, order]) => order !== 'none')"
            )
        )

    with opened(labelled, width=width) as page:
        assert sorted_by(page) == {"Probability": "ascending"}
        page.locator("[data-sort=id]").press("Enter")
        assert sorted_by(page) == {"Node": "ascending"}
        assert listed(page)[:11] == [f"n{k}" for k in range(11)]  # n2 before n10
        page.locator("[data-sort=id]").press("Space")
        assert sorted_by(page) == {"Node": "descending"}
        assert listed(page)[0] == "n399"
        page.locator("[data-sort=rank]").click()
        ranks = page.locator("#rows td:nth-child(5)").all_inner_texts()
        assert ranks == [str(k) for k in range(1, 26)]
        assert listed(page)[0] == f"n{yes.argmax()}"
        page.locator("[data-sort=given]").click()
        assert set(page.locator("#rows td:nth-child(2)").all_inner_texts()) == {"no"}
        page.locator("[data-sort=predicted]").click()
        page.locator("[data-sort=predicted]").click()
        assert page.locator("#rows td:nth-child(3)").first.inner_text() == "yes"


@pytest.mark.parametrize("width", WIDTHS)
def test_the_download_has_the_filtered_rows_in_their_order(
    opened: Opens, tmp_path: Path, width: int
) -> None:
    labelled = lopsided()
    best = labelled.probabilities.argmax(axis=1)
    with opened(labelled, width=width, accept_downloads=True) as page:
        page.get_by_role("combobox", name="Predicted class").select_option(label="yes")
        page.locator("[data-sort=id]").click()
        heading, *rows = downloaded(page, tmp_path)
    ranks = node_ranks(labelled.probabilities[:, 1])
    assert heading == ["id", "given", "predicted", "probability", "set", "p_rank"]
    nodes = np.flatnonzero(best == 1)
    assert len(nodes) > 1
    assert [row[0] for row in rows] == [f"n{i}" for i in nodes]
    for i, (_, given, predicted, probability, members, rank) in zip(nodes, rows, strict=True):
        label = labelled.given_labels[i]
        assert given == ("" if label == UNKNOWN else labelled.classes[label])
        assert predicted == "yes"
        assert float(probability) == pytest.approx(labelled.probabilities[i, 1], abs=5e-5)
        assert members.split(" | ") == [
            name for name, inside in zip(labelled.classes, labelled.sets[i], strict=True) if inside
        ]
        assert int(rank) == ranks[i]


def test_no_cell_of_the_download_is_a_formula(opened: Opens, tmp_path: Path) -> None:
    formulas = ["=1+1", "+cmd|' /C calc'!A0", "@SUM(A1)", "-2+3", "\t=1"]
    harmless = ["-5", 'a "b", c', "two\nlines"]
    labelled = renamed(fitted(), classes=["=HYPERLINK(1)"], nodes=[*formulas, *harmless])
    with opened(labelled, accept_downloads=True) as page:
        _, *rows = downloaded(page, tmp_path)
    assert len(rows) == 300
    ids = {row[0] for row in rows}
    assert {f"'{name}" for name in formulas} | set(harmless) <= ids
    assert not set(formulas) & ids
    cells = {cell for row in rows for cell in row}
    assert "'=HYPERLINK(1)" in cells
    assert not [cell for cell in cells if cell[:1] in "=+@" and cell]


def test_twenty_thousand_nodes_are_sorted_and_filtered(opened: Opens) -> None:
    labelled = large(20_000)
    with opened(labelled) as page:
        page.locator("[data-sort=id]").click()
        assert listed(page)[0] == "node-000000"
        page.get_by_label("Id contains").fill("node-0123")
        assert page.locator("#list-status").inner_text() == "100 of 20,000 nodes"
