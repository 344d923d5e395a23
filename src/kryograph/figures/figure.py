"""Figures as values, and their files: pictures as PNG and SVG, rows as CSV, settings as JSON.

All files of a figure are written, or none. The same result gives the same bytes.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from matplotlib.figure import Figure

from kryograph.data import Dataset, synthetic_citations
from kryograph.figures.style import styled
from kryograph.files import check_output, temporary_folder
from kryograph.graph import Split

TextTable: TypeAlias = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Headings and rows of a table for the terminal."""


@dataclass(frozen=True)
class FigureResult:
    """Pictures of a figure, and the numbers that they show."""

    drawings: Mapping[str, Figure]  # by the suffix of their files after the name of the figure
    rows: Sequence[Mapping[str, object]]  # of the CSV file
    about: Mapping[str, Any]  # settings and summary, for the JSON file
    tables: Sequence[TextTable]


@dataclass(frozen=True)
class FigureFiles:
    """Paths of a figure's files; a `UsageError` if they must not or cannot be written."""

    folder: Path  # need not exist
    name: str  # the names of the files begin with it
    suffixes: Sequence[str] = ("",)  # of the pictures, as in `FigureResult.drawings`
    overwrite: bool = False

    def __post_init__(self) -> None:
        for path in self.paths:
            check_output(path, overwrite=self.overwrite, is_ours=Path.is_file, kind="a file")

    @property
    def paths(self) -> list[Path]:
        """Pictures, then the CSV and the JSON file."""
        endings = [f"{suffix}.{kind}" for suffix in self.suffixes for kind in ("png", "svg")]
        return [self.folder / f"{self.name}{ending}" for ending in (*endings, ".csv", ".json")]

    def write(self, result: FigureResult) -> dict[str, Any]:
        """Write all files and return the contents of the JSON file."""
        about = {"figure": self.name, "version": version("kryograph"), **result.about}
        with temporary_folder(self.folder, self.name) as temporary:
            for suffix in self.suffixes:
                draw_file(result.drawings[suffix], temporary / f"{self.name}{suffix}")
            columns = list(dict.fromkeys(key for row in result.rows for key in row))
            with (temporary / f"{self.name}.csv").open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
                writer.writeheader()
                writer.writerows(result.rows)
            text = json.dumps(about, indent=2, ensure_ascii=False)
            (temporary / f"{self.name}.json").write_text(text + "\n", encoding="utf-8")
            for path in self.paths:
                os.replace(temporary / path.name, path)
        return about


def quick_dataset() -> Dataset:
    """Draw a graph that trains in a moment, with a split of its own as the public one."""
    drawn = synthetic_citations(n=300, classes=3, words=60, words_per_node=8, seed=0)
    # The classes of neighbouring node numbers are independent, so that no shuffling is needed.
    train, validation, test = np.split(np.arange(300), [60, 160])
    return replace(drawn, public=Split("public", train=train, validation=validation, test=test))


@styled
def draw_file(figure: Figure, path: Path) -> None:
    """Write a picture as PNG and SVG beside `path`, without a date, to repeat the bytes."""
    figure.savefig(path.with_name(f"{path.name}.png"), metadata={"Software": None})
    figure.savefig(path.with_name(f"{path.name}.svg"), metadata={"Date": None})
