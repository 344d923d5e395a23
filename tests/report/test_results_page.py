from __future__ import annotations

import json
import re

import markupsafe

from kryograph.experiments.standings import standings
from kryograph.report.html import content_policy, template_text
from kryograph.report.results_page import render_results_page
from kryograph.report.results_text import TableView, format_mean
from tests.made_runs import MIXED, NASTY, cells, small


def page() -> str:
    found = cells(MIXED)
    shown = TableView(small(), tuple(found), tuple(standings(found)))
    return render_results_page([shown, shown], source="runs <of> mine.sqlite", version="1.2.3")


def known(made: str) -> list[dict[str, object]]:
    [text] = re.findall(r'<script type="application/json" id="cells">(.*?)</script>', made)
    data: list[dict[str, object]] = json.loads(text)
    return data


def shade(made: str, cell: int, table: int = 0) -> str:
    """The classes of a cell in the first or the second table that shows it."""
    return re.findall(rf'<td class="heat ([^"]*)" tabindex="-1" data-cell="{cell}">', made)[table]


def test_the_policy_lets_nothing_else_run() -> None:
    made = page()
    style = template_text("page.css") + template_text("results.css")
    policy = content_policy(style, template_text("results.js"))
    assert f'content="{markupsafe.escape(policy)}"' in made
    assert not re.search(r'\b(src|href)="(?!#)', made)
    assert " style=" not in made
    assert template_text("results.js") in made
    assert style in made


def test_every_text_is_escaped() -> None:
    made = page()
    assert "<script>alert" not in made
    assert markupsafe.escape(NASTY) in made
    assert "runs &lt;of&gt; mine.sqlite" in made


def test_a_cell_knows_its_runs() -> None:
    found = known(page())
    assert len(found) == 24
    first = found[0]
    assert first["name"] == "gcn, Cora 1%"
    assert first["runs"] == [[0, 60.0], [1, 62.0], [2, 64.0]]
    assert (first["mean"], first["paper"]) == (62.0, 60.0)
    assert ["95 % interval", "57.0 to 67.0"] in first["facts"]  # type: ignore[operator]
    failed = found[2]
    assert failed["runs"] == []
    assert ["Failed", f"seed 0, 1: {NASTY}"] in failed["facts"]  # type: ignore[operator]
    assert found[5]["facts"] == [["Verdict", "not run"], ["Paper", "51.0"]]


def test_colours_go_from_the_worst_of_a_column_to_the_best() -> None:
    made = page()
    # Cora 1%: 62.0 (cell 0), 50.5 (3), 66.0 (6), 72.0 (9).
    assert [shade(made, cell) for cell in (0, 3, 6, 9)] == [
        *("shade-3", "shade-0", "shade-4", "shade-5"),
    ]
    assert shade(made, 2) == "failed"
    assert shade(made, 5) == "none"


def test_colours_of_differences_have_a_side_and_a_strength() -> None:
    made = page()
    # Less the paper's: +2.0, −10.5, −4.0 and 0.0; in Cora 3% 0.0, none printed, −1.0 and −6.0.
    assert [shade(made, cell, 1) for cell in (0, 3, 6, 9)] == [
        *("over-3", "under-5", "under-4", "over-0"),
    ]
    assert [shade(made, cell, 1) for cell in (4, 7, 10)] == ["none", "under-2", "under-4"]


def test_every_run_is_a_row_failed_ones_too() -> None:
    [runs, _] = re.findall(r'<table class="runs">.*?<tbody>(.*?)</tbody>', page(), re.S)
    assert runs.count("<tr>") == sum(len(values) for values in MIXED.values())
    assert runs.count("no luck") == 1


def test_headings_name_a_data_set_once() -> None:
    made = page()
    assert '<th scope="colgroup" colspan="2">Cora</th>' in made
    assert '<th scope="colgroup" colspan="1">CiteSeer</th>' in made


def test_a_table_without_runs_has_a_page() -> None:
    found = tuple(cells({}))
    made = render_results_page([TableView(small(), found, ())], source="runs.sqlite", version="1")
    assert "There are no runs yet." in made
    assert known(made)[0]["mean"] is None


def test_half_of_an_interval_is_the_same_on_the_page_and_in_text() -> None:
    # 50 and 100 %: the interval 75.0 ± 317.7 is cut off at both ends.
    results = tuple(cells({("gcn", "Cora 1%"): [0.5, 1.0]}))
    view = TableView(small(), results, ())
    assert format_mean(results[0]) == "75.0 ± 317.7 (2)"
    made = render_results_page([view], source="runs.sqlite", version="1")
    assert "75.0<small>± 317.7</small>" in made
