"""`kryograph.figures.figure`: files are written as a whole or not at all."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from kryograph.errors import KryographError, UsageError
from kryograph.figures.figure import FigureFiles, FigureResult
from kryograph.figures.style import panels, styled


@styled
def result(**about: object) -> FigureResult:
    figure, axes = panels(1, 2, 2.0)
    axes[0].plot([0, 1], [0, 1])
    rows = [{"layer": 1, "mean": 2.5}, {"layer": 2, "mean": 1.0, "note": "é"}]
    return FigureResult({"": figure}, rows, about, [])


def test_pictures_rows_and_settings_are_written(tmp_path: Path) -> None:
    files = FigureFiles(tmp_path / "new" / "folder", "lines")
    about = files.write(result(seed=7))
    names = ["lines.png", "lines.svg", "lines.csv", "lines.json"]
    assert [path.name for path in files.paths] == names
    assert sorted(path.name for path in files.folder.iterdir()) == sorted(names)
    png, svg, table, settings = files.paths
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "<svg" in svg.read_text("utf-8")
    with table.open(newline="", encoding="utf-8") as file:
        assert list(csv.DictReader(file)) == [
            {"layer": "1", "mean": "2.5", "note": ""},
            {"layer": "2", "mean": "1.0", "note": "é"},
        ]
    assert json.loads(settings.read_text("utf-8")) == about
    assert (about["figure"], about["seed"]) == ("lines", 7)


def test_every_suffix_has_a_picture(tmp_path: Path) -> None:
    files = FigureFiles(tmp_path, "lines", ("", "-turned"))
    one = result()
    files.write(FigureResult({"": one.drawings[""], "-turned": one.drawings[""]}, [{}], {}, []))
    assert (tmp_path / "lines-turned.png").read_bytes() == (tmp_path / "lines.png").read_bytes()
    assert len(files.paths) == 6


def test_the_same_result_gives_the_same_bytes(tmp_path: Path) -> None:
    both = [FigureFiles(tmp_path / name, "lines") for name in ("a", "b")]
    for files in both:
        files.write(result())
    for one, other in zip(both[0].paths, both[1].paths, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_an_existing_file_is_kept_without_overwrite(tmp_path: Path) -> None:
    (tmp_path / "lines.svg").write_text("mine")
    with pytest.raises(UsageError, match=r"lines\.svg exists already: .* --overwrite"):
        FigureFiles(tmp_path, "lines")
    FigureFiles(tmp_path, "other")
    FigureFiles(tmp_path, "lines", overwrite=True).write(result())
    assert "mine" not in (tmp_path / "lines.svg").read_text("utf-8")


def test_a_folder_is_not_overwritten_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "lines.png").mkdir()
    with pytest.raises(UsageError, match="not a file, so it is not overwritten"):
        FigureFiles(tmp_path, "lines", overwrite=True)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(UsageError, match=r"taken/lines\.png cannot be written"):
        FigureFiles(tmp_path / "taken", "lines")
    with pytest.raises(UsageError, match="cannot be written"):
        FigureFiles(tmp_path / "taken" / "below", "lines")


def test_a_figure_that_fails_leaves_no_files(tmp_path: Path) -> None:
    files = FigureFiles(tmp_path, "lines")
    with pytest.raises(TypeError):
        files.write(result(what=object()))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_becomes_a_file_is_an_error_in_a_sentence(tmp_path: Path) -> None:
    files = FigureFiles(tmp_path / "late", "lines")
    (tmp_path / "late").write_text("")
    with pytest.raises(KryographError, match="late/lines cannot be written: "):
        files.write(result())
