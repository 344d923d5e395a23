from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace

import pytest

from kryograph.experiments.cells import CellResult
from kryograph.experiments.standings import standings
from kryograph.report.results_text import (
    FORMATS,
    LEGEND,
    MARK_STYLES,
    MARKS,
    TableView,
    describe_standing,
    failures,
    format_mean,
    format_paper,
    remarks,
    render_csv,
    render_json,
    render_markdown,
    render_text,
    signed,
)
from tests.made_runs import MIXED, NASTY, cells, small


def mixed() -> TableView:
    results = cells(MIXED)
    return TableView(small(), tuple(results), tuple(standings(results)))


def cell(system: str, heading: str) -> CellResult:
    return mixed().result(system, heading)


def printing(paper: float) -> CellResult:
    """Three runs of 60, 62 and 64 %, and what the paper prints."""
    found = cell("gcn", "Cora 1%")
    return replace(found, cell=replace(found.cell, paper=paper))


def test_format_paper_turns_its_verdict_at_the_ends_of_the_interval() -> None:
    summary = cell("gcn", "Cora 1%").summary
    assert summary is not None
    low, high = summary.ci95
    assert low is not None
    assert high is not None
    # By hand: 0.62 ± 4.3027 · 0.02 / √3.
    assert (low, high) == pytest.approx((0.57032, 0.66968), abs=1e-5)
    expected = {low: "=", high: "=", low - 1e-9: "▲", high + 1e-9: "▼"}
    assert {paper: format_paper(printing(paper))[-1] for paper in expected} == expected


def test_format_mean_and_paper_of_every_kind_of_cell() -> None:
    assert format_mean(cell("gcn", "Cora 1%")) == "62.0 ± 5.0 (3)"
    assert format_paper(cell("gcn", "Cora 1%")) == "60.0 +2.0 ="
    assert format_mean(cell("gcn", "Cora 3%")) == "70.0 (1)"
    assert format_paper(cell("gcn", "Cora 3%")) == "70.0 0.0 ·"
    assert format_mean(cell("gcn", "CiteSeer 1%")) == "failed ✗2"
    assert format_paper(cell("gcn", "CiteSeer 1%")) == "50.0"
    assert format_mean(cell("gat", "Cora 1%")) == "50.5 ± 6.4 (2) ✗1"
    assert format_paper(cell("gat", "Cora 1%")) == "61.0 −10.5 ▼"
    assert format_mean(cell("gat", "Cora 3%")) == "65.5 ± 6.4 (2)"
    assert format_paper(cell("gat", "Cora 3%")) == ""
    assert format_mean(cell("gat", "CiteSeer 1%")) == "–"
    assert format_paper(cell("gat", "CiteSeer 1%")) == "51.0"


def test_format_mean_has_the_whole_half_width_where_the_interval_is_cut_off() -> None:
    found = cells({("gcn", "Cora 1%"): [0.99, 1.0]})[0]
    assert format_mean(found) == "99.5 ± 6.4 (2)"


def test_signed_has_a_sign_unless_the_points_are_zero() -> None:
    assert [signed(d) for d in (0.1, -0.1, 0.0, -0.0004, 0.0006)] == [
        *("+10.0", "−10.0", "0.0", "0.0", "+0.1"),
    ]


def test_describe_standing_compares_with_the_paper_and_the_baselines() -> None:
    sentences = {standing.system: describe_standing(standing) for standing in mixed().standings}
    assert sentences["truncated-krylov"] == (
        "Mean difference from the paper: −3.0 ± 69.9 over 2 cells (95 % interval over 2 seeds). "
        "If the paper reported the best of 20 equally good settings, each the mean of 10 runs, "
        "that choice alone would add +4.8. "
        "It beats every baseline in 1 of 2 columns (significantly in 1 of them); on average it is "
        "level with the best baseline. More than 4.0 points below the paper: Cora 3% (−6.0)."
    )
    # Exactly 4.0 points below is not more than 4.0 points below.
    assert sentences["snowball"] == (
        "Mean difference from the paper: −2.5 over 2 cells. If the paper reported the best of 20 "
        "equally good settings, each the mean of 10 runs, that choice alone would add +1.2. It "
        "beats every baseline in 2 of 2 columns (significantly in 1 of them); on average it is 4.0 "
        "points ahead of the best baseline. No cell is more than 4.0 points below the paper."
    )


def test_describe_standing_mentions_one_setting_where_several_were_run() -> None:
    snowball = next(standing for standing in mixed().standings if standing.system == "snowball")
    sentences = describe_standing(replace(snowball, alone=(-0.03, -0.04)))
    assert "With one setting per column: −3.5." in sentences
    assert "With one setting, as the baselines have, it beats every baseline in 2 of 2" in sentences


def test_describe_standing_compares_the_splits_of_a_search_with_the_table() -> None:
    snowball = next(standing for standing in mixed().standings if standing.system == "snowball")
    assert (
        "In the 1 column whose settings were searched: +1.1 on the splits of the search, −2.0 on "
        "the splits of the table. It beats"
    ) in describe_standing(replace(snowball, searched=((0.011, -0.02),)))


def test_failures_have_each_message_once_with_its_seeds() -> None:
    assert list(failures(cells(MIXED))) == [
        ("gcn, CiteSeer 1%", "0, 1", NASTY),
        ("gat, Cora 1%", "2", "ValueError: no luck"),
    ]


def test_the_last_remark_counts_cells_by_the_source_of_their_settings() -> None:
    assert list(remarks(mixed()))[-1] == ("Settings (cells)", "default (9).")
    without_runs = TableView(small(), tuple(cells({})), ())
    assert list(remarks(without_runs)) == [("Settings (cells)", "none.")]


def test_render_text_has_a_block_for_each_data_set() -> None:
    lines = [" ".join(line.split()) for line in render_text([mixed()]).splitlines()]
    assert lines[0] == "small: A small table (accuracy, %)"
    assert "Cora 1% Cora 3%" in lines
    assert "CiteSeer 1%" in lines
    assert "gcn 62.0 ± 5.0 (3) 60.0 +2.0 = 70.0 (1) 70.0 0.0 ·" in lines
    assert "gat – 51.0" in lines
    assert "gcn failed ✗2 50.0" in lines
    assert f"✗ gcn, CiteSeer 1%, seed 0, 1: {NASTY}" in lines
    assert any(line.startswith("snowball: Mean difference from the paper") for line in lines)
    assert all(mark in LEGEND for mark in MARKS.values())


def test_render_text_aligns_the_values_of_a_column() -> None:
    heading, rule, *rows = render_text([mixed()]).split("\n\n")[2].splitlines()
    assert {len(line) for line in (heading, rule, *rows)} == {len(heading)}
    assert {line.rindex(" ") for line in rows} == {len(heading) - len("50.0") - 1}


def test_render_text_puts_the_paper_below_the_mean_if_the_terminal_is_narrow() -> None:
    wide = render_text([mixed()], width=100).split("\n\n")[1].splitlines()
    narrow = render_text([mixed()], width=60).split("\n\n")[1].splitlines()
    assert (len(wide), len(narrow)) == (2 + 4, 2 + 2 * 4)
    assert narrow[2].split() == ["gcn", "62.0", "±", "5.0", "(3)", "70.0", "(1)"]
    assert narrow[3].split() == ["60.0", "+2.0", "=", "70.0", "0.0", "·"]
    assert max(map(len, narrow)) <= 60


@pytest.mark.parametrize(
    ("text", "style", "marked"),
    [
        ("50.5 ± 6.4 (2)  61.0 −10.5 ▼", "red", "61.0 −10.5 ▼"),
        ("62.0 ± 5.0 (3)  50.0 +12.0 ▲", "green", "50.0 +12.0 ▲"),
        ("70.0 (1)  70.0 0.0 ·", "dim", "70.0 0.0 ·"),
        ("failed ✗2  50.0", "red", "failed ✗2"),
    ],
)
def test_mark_styles_cover_what_a_verdict_is_about(text: str, style: str, marked: str) -> None:
    matches = {(kind, m[0]) for p, kind in MARK_STYLES.items() for m in re.finditer(p, text)}
    assert matches == {(style, marked)}


@pytest.mark.parametrize("name", FORMATS)
def test_formats_render_every_system_and_end_their_last_line(name: str) -> None:
    text = FORMATS[name]([mixed()])
    assert all(system in text for system in mixed().systems)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_render_markdown_has_every_column_system_and_cell() -> None:
    lines = render_markdown([mixed()]).splitlines()
    assert "| system | Cora 1% | Cora 3% |" in lines
    assert "| system | CiteSeer 1% |" in lines
    assert "| `gcn` | 62.0 ± 5.0 (3) / 60.0 +2.0 = | 70.0 (1) / 70.0 0.0 · |" in lines
    tables = [line for line in lines if line.startswith("| `")]
    assert len(tables) == 8
    # The message stays inside its code.
    assert (
        "- ✗ gcn, CiteSeer 1%, seed 0, 1: `<script>alert(1)</script> | 'x' & [bold]y[/]`" in lines
    )


def test_render_csv_has_a_line_for_each_cell() -> None:
    found = list(csv.DictReader(io.StringIO(render_csv([mixed()]))))
    assert len(found) == 12
    first = found[0]
    assert (first["table"], first["system"], first["column"]) == ("small", "gcn", "Cora 1%")
    assert float(first["mean"]) == pytest.approx(0.62)
    assert float(first["ci95_low"]) == pytest.approx(0.57032, abs=1e-5)
    assert (first["n"], first["verdict"], first["settings_source"]) == (
        "3",
        "reproduced",
        "default",
    )
    failed = found[2]
    assert (failed["verdict"], failed["mean"], failed["n"]) == ("failed", "", "0")
    assert failed["failures"] == f"{NASTY} | {NASTY}"


def test_render_json_has_an_object_for_each_cell() -> None:
    found = json.loads(render_json([mixed()]))
    assert found[1]["verdict"] == "one run"
    assert found[1]["ci95"] == [None, None]
    assert found[5]["verdict"] == "not run"
