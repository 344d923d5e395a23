from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from kryograph.cli import console as terminal
from kryograph.experiments.cells import CellResult
from kryograph.experiments.standings import standings
from kryograph.report.results_text import (
    LEGEND,
    MARKS,
    TableView,
    about,
    beside_paper,
    csv_text,
    failures,
    format_mean,
    markdown,
    show_results,
    signed,
    sources,
)
from tests.made_runs import MIXED, NASTY, cells, small

Capture = pytest.CaptureFixture[str]


def mixed() -> TableView:
    found = cells(MIXED)
    return TableView(small(), tuple(found), tuple(standings(found)))


def cell(system: str, heading: str) -> CellResult:
    return mixed().result(system, heading)


def printing(paper: float) -> CellResult:
    """Three runs of 60, 62 and 64 %, and what the paper prints."""
    found = cell("gcn", "Cora 1%")
    return replace(found, cell=replace(found.cell, paper=paper))


def test_a_verdict_turns_at_the_ends_of_the_interval() -> None:
    summary = cell("gcn", "Cora 1%").summary
    assert summary is not None
    low, high = summary.ci95
    assert low is not None
    assert high is not None
    # By hand: 0.62 ± 4.3027 · 0.02 / √3.
    assert (low, high) == pytest.approx((0.57032, 0.66968), abs=1e-5)
    expected = {low: "=", high: "=", low - 1e-9: "▲", high + 1e-9: "▼"}
    assert {paper: beside_paper(printing(paper))[-1] for paper in expected} == expected


def test_cells_in_words() -> None:
    assert format_mean(cell("gcn", "Cora 1%")) == "62.0 ± 5.0 (3)"
    assert beside_paper(cell("gcn", "Cora 1%")) == "60.0 +2.0 ="
    assert format_mean(cell("gcn", "Cora 3%")) == "70.0 (1)"
    assert beside_paper(cell("gcn", "Cora 3%")) == "70.0 0.0 ·"
    assert format_mean(cell("gcn", "CiteSeer 1%")) == "failed ✗2"
    assert beside_paper(cell("gcn", "CiteSeer 1%")) == "50.0"
    assert format_mean(cell("gat", "Cora 1%")) == "50.5 ± 6.4 (2) ✗1"
    assert beside_paper(cell("gat", "Cora 1%")) == "61.0 −10.5 ▼"
    assert format_mean(cell("gat", "Cora 3%")) == "65.5 ± 6.4 (2)"
    assert beside_paper(cell("gat", "Cora 3%")) == ""
    assert format_mean(cell("gat", "CiteSeer 1%")) == "–"
    assert beside_paper(cell("gat", "CiteSeer 1%")) == "51.0"


def test_half_a_width_is_whole_where_the_interval_is_cut_off_at_the_ends() -> None:
    found = cells({("gcn", "Cora 1%"): [0.99, 1.0]})[0]
    assert format_mean(found) == "99.5 ± 6.4 (2)"


def test_points_have_a_sign_unless_they_are_none() -> None:
    assert [signed(d) for d in (0.1, -0.1, 0.0, -0.0004, 0.0006)] == [
        *("+10.0", "−10.0", "0.0", "0.0", "+0.1"),
    ]


def test_what_a_proposal_comes_to() -> None:
    said = {each.system: about(each) for each in mixed().standings}
    assert said["truncated-krylov"] == (
        "Ours less the paper's is −3.0 ± 69.9 on average over 2 cells (95 % interval over 2 seeds)."
        " Had the paper printed the best of 20 settings as good as ours, each on 10 draws of its "
        "own, luck alone would be worth +4.8. "
        "It beats every baseline in 1 of 2 columns (1 of them beyond chance); on average it is "
        "level with the best of them. Further below the paper than −4.0: Cora 3% (−6.0)."
    )
    # Exactly 4.0 points below is not further.
    assert said["snowball"] == (
        "Ours less the paper's is −2.5 on average over 2 cells. Had the paper printed the best of "
        "20 settings as good as ours, each on 10 draws of its own, luck alone would be worth +1.2. "
        "It beats every baseline in 2 of 2 columns (1 of them beyond chance); on average it is 4.0 "
        "points ahead of the best of them. No cell is further below the paper than −4.0."
    )


def test_what_one_setting_comes_to_is_said_where_there_was_a_choice() -> None:
    found = next(each for each in mixed().standings if each.system == "snowball")
    said = about(replace(found, alone=(-0.03, -0.04)))
    assert "By one setting for each column it is −3.5." in said
    assert "By one setting, as they have, it beats every baseline in 2 of 2 columns" in said


def test_a_search_is_held_against_its_own_splits() -> None:
    found = next(each for each in mixed().standings if each.system == "snowball")
    one = replace(found, searched=((0.011, -0.02),))
    assert (
        "In the 1 column that its settings were searched for in, it is +1.1 on the splits that "
        "chose them, and −2.0 on those of the table. It beats"
    ) in about(one)


def test_a_failure_is_said_once_with_its_seeds() -> None:
    assert list(failures(cells(MIXED))) == [
        ("gcn, CiteSeer 1%", "0, 1", NASTY),
        ("gat, Cora 1%", "2", "ValueError: no luck"),
    ]


def test_where_settings_are_from_is_counted() -> None:
    assert sources(cells(MIXED)) == "default (9)"
    assert sources(cells({})) == "none"


def test_a_terminal_has_a_block_for_each_data_set(capsys: Capture) -> None:
    show_results(mixed())
    out = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0] == "small: A small table"
    assert "Cora 1% Cora 3%" in lines
    assert "CiteSeer 1%" in lines
    assert "gcn 62.0 ± 5.0 (3) 60.0 +2.0 = 70.0 (1) 70.0 0.0 ·" in lines
    assert "gat – 51.0" in lines
    assert "gcn failed ✗2 50.0" in lines
    assert f"✗ gcn, CiteSeer 1%, seed 0, 1: {NASTY}" in lines
    assert any(line.startswith("snowball: Ours less the paper's is") for line in lines)
    assert all(mark in LEGEND for mark in MARKS.values())


def test_on_a_narrow_terminal_a_cell_has_two_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    for width, joined in ((100, True), (45, False)):
        screen = io.StringIO()
        console = Console(file=screen, width=width, force_terminal=True, color_system=None)
        monkeypatch.setattr(terminal, "out", console)
        written: list[list[str]] = []

        def record(
            headings: list[str], rows: list[list[str]], written: list[list[str]] = written
        ) -> None:
            written.extend(rows)

        monkeypatch.setattr("kryograph.report.results_text.show_table", record)
        show_results(mixed())
        assert ("\n" not in written[0][1]) == joined


def test_markdown_has_every_column_system_and_cell() -> None:
    lines = markdown(mixed()).splitlines()
    assert "| system | Cora 1% | Cora 3% |" in lines
    assert "| system | CiteSeer 1% |" in lines
    assert "| `gcn` | 62.0 ± 5.0 (3) / 60.0 +2.0 = | 70.0 (1) / 70.0 0.0 · |" in lines
    tables = [line for line in lines if line.startswith("| `")]
    assert len(tables) == 8
    # The message stays inside its code.
    assert (
        "- ✗ gcn, CiteSeer 1%, seed 0, 1: `<script>alert(1)</script> | 'x' & [bold]y[/]`" in lines
    )


def test_csv_has_a_line_for_each_cell() -> None:
    found = list(csv.DictReader(io.StringIO(csv_text(cells(MIXED)))))
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


def test_cells_are_json() -> None:
    found = json.loads(json.dumps([result.as_dict() for result in cells(MIXED)], allow_nan=False))
    assert found[1]["verdict"] == "one run"
    assert found[1]["ci95"] == [None, None]
    assert found[5]["verdict"] == "not run"
