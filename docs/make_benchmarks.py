"""Write the tables of docs/benchmarks.md from results/bench: python docs/make_benchmarks.py.

A table stands between `<!-- table NAME KEY -->` and `<!-- end -->`, where NAME is a benchmark and
KEY the part of its result that holds the rows; `-` is the result itself. `<!-- machine NAME -->`
stands for the machine and the programs of the measurement.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from kryograph.bench import load_benchmark
from kryograph.text import gigabytes

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
RESULTS = ROOT / "results" / "bench"

NOT_MEASURED = "*Not measured with this version; `make bench` does it.*\n"

MARKED = re.compile(r"(<!-- (table|machine) (\S+)(?: (\S+))? -->\n).*?(<!-- end -->)", re.DOTALL)


def updated(page: str) -> str:
    """The page with the text between all markers made from the results."""

    def replace(match: re.Match[str]) -> str:
        begin, kind, name, key, end = match.groups()
        text = machine(name) if kind == "machine" else table(name, "" if key == "-" else key)
        return f"{begin}{text}{end}"

    return MARKED.sub(replace, page)


@cache
def result_of(name: str) -> dict[str, Any]:
    """Result of a benchmark, as `kryograph bench NAME --json` printed it."""
    result: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return result


def table(name: str, key: str) -> str:
    """Markdown of one table of a benchmark; numbers are written as on the command line."""
    if not (RESULTS / f"{name}.json").exists():
        return NOT_MEASURED
    record = load_benchmark(name)
    headings, rows = dict(zip(record.columns, record.tables(result_of(name)), strict=True))[key]
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def machine(name: str) -> str:
    """Sentence about processor, memory and programs."""
    if not (RESULTS / f"{name}.json").exists():
        return NOT_MEASURED
    values = result_of(name)["machine"]
    return (
        f"{values['cpu']}, {values['cores']} cores, {gigabytes(values['memory_bytes'])}; "
        f"torch {values['torch']} ({values['blas']}) with {values['threads']} threads, "
        f"Python {values['python']}.\n"
    )


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text("utf-8")), encoding="utf-8")
