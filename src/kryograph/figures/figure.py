"""What a figure leaves in a folder: pictures as PNG and SVG, the data as CSV, how as JSON.

All files of a figure are written, or none. The same data give the same bytes.
"""

from __future__ import annotations

import csv
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kryograph.cli.console import note
from kryograph.files import check_output, temporary_folder

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Output:
    """Where a figure goes; an error, before any work is done, if it cannot or must not.

    Args:
        folder: It is made if need be.
        name: Of every file, before its ending.
        suffixes: Of the pictures, if there are several.
        overwrite: Whether files of the same names are replaced.
        as_json: Whether to print JSON on standard output when all is written.
    """

    folder: Path
    name: str
    suffixes: Sequence[str] = ("",)
    overwrite: bool = False
    as_json: bool = False
    begun: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        for path in self.files:
            check_output(path, overwrite=self.overwrite, is_ours=Path.is_file, kind="a file")

    @property
    def files(self) -> list[Path]:
        """All that is written."""
        drawn = [f"{self.name}{s}.{kind}" for s in self.suffixes for kind in ("png", "svg")]
        return [self.folder / file for file in (*drawn, f"{self.name}.csv", f"{self.name}.json")]

    def write(
        self,
        figures: Sequence[Figure],
        rows: Sequence[Mapping[str, object]],
        about: Mapping[str, Any],
    ) -> None:
        """Write pictures and data, and say so.

        Args:
            figures: One for each suffix.
            rows: The data, a row of the CSV file each.
            about: How they were made and what they come to.
        """
        whole = {"figure": self.name, "version": version("kryograph"), **about}
        with temporary_folder(self.folder, self.name) as temporary:
            self._write(temporary, figures, rows, whole)
            for path in self.files:
                os.replace(temporary / path.name, path)
        seconds = time.perf_counter() - self.begun
        if self.as_json:
            files = [str(path) for path in self.files]
            print(json.dumps({**whole, "seconds": round(seconds, 1), "files": files}, indent=2))
        names = ", ".join(path.name for path in self.files)
        note(f"Written to {self.folder} in {seconds:.0f} s: {names}.")

    def _write(
        self,
        folder: Path,
        figures: Sequence[Figure],
        rows: Sequence[Mapping[str, object]],
        about: Mapping[str, Any],
    ) -> None:
        from kryograph.figures.style import draw_file

        for suffix, figure in zip(self.suffixes, figures, strict=True):
            draw_file(figure, folder / f"{self.name}{suffix}")
        columns = list(dict.fromkeys(key for row in rows for key in row))
        with (folder / f"{self.name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        text = json.dumps(about, indent=2, ensure_ascii=False)
        (folder / f"{self.name}.json").write_text(text + "\n", encoding="utf-8")
