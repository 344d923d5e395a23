"""Runs that nobody did: a small table, and stores whose numbers can be worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kryograph.experiments.cells import CellResult, gather
from kryograph.experiments.result_tables import ResultTable, parse_result_table
from kryograph.runs.job import Job
from kryograph.runs.store import Row, Store
from kryograph.systems import system

NASTY = "<script>alert(1)</script> | `x` & [bold]y[/]"
"""What a run may say when it fails; it must stay text."""

SMALL = """
title = "A small table"
source = "Nobody"
protocol = "validation"
columns = [
    { name = "Cora 1%", dataset = "cora", split = "1%" },
    { name = "Cora 3%", dataset = "cora", split = "3%" },
    { name = "CiteSeer 1%", dataset = "citeseer", split = "1%" },
]
[published]
gcn = [60.0, 70.0, 50.0]
gat = [61.0, nan, 51.0]
snowball = [70.0, 75.0, 60.0]
truncated-krylov = [72.0, 76.0, 62.0]
"""


def small() -> ResultTable:
    """Four systems in three columns of two data sets."""
    return parse_result_table(SMALL, "small", "small.toml")


Scores = Mapping[tuple[str, str], Sequence[float | str]]
"""Of systems and columns: an accuracy for each seed, or what it said when it failed."""


def rows(scores: Scores) -> list[Row]:
    """The runs of the small table with these scores."""
    made = []
    for (name, heading), values in scores.items():
        column = small().cell(name, heading).scenario
        for seed, value in enumerate(values):
            job = Job(system(name), "default", column, seed)
            if isinstance(value, str):
                made.append(job.row(error=value, finished=f"2026-01-0{seed + 1}"))
            else:
                made.append(
                    job.row(
                        test_accuracy=value,
                        validation_accuracy=value,
                        split_digest=f"{column} {seed}",
                        epochs=100 + seed,
                        seconds=1.5,
                        finished="2026-01-01",
                    )
                )
    return made


def cells(scores: Scores) -> list[CellResult]:
    """The small table with these scores."""
    return gather(small().cells, rows(scores))


MIXED: Scores = {
    ("gcn", "Cora 1%"): [0.60, 0.62, 0.64],
    ("gcn", "Cora 3%"): [0.70],
    ("gcn", "CiteSeer 1%"): [NASTY, NASTY],
    ("gat", "Cora 1%"): [0.50, 0.51, "ValueError: no luck"],
    ("gat", "Cora 3%"): [0.65, 0.66],
    ("snowball", "Cora 1%"): [0.64, 0.66, 0.68],
    ("snowball", "Cora 3%"): [0.74],
    ("truncated-krylov", "Cora 1%"): [0.70, 0.72, 0.74],
    ("truncated-krylov", "Cora 3%"): [0.60, 0.80],
}
"""Cells with three runs, two and one, with failures beside runs and alone, and not run."""


def filled(folder: Path, scores: Scores = MIXED) -> tuple[Path, Path]:
    """The small table and a store with its runs, as files."""
    store, file = folder / "runs.sqlite", folder / "small.toml"
    Store(store).add_all(rows(scores))
    file.write_text(SMALL, "utf-8")
    return file, store
