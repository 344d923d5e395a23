"""`kryograph.figures.output` and `kryograph.figures.style`: files whole or not at all."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from kryograph.errors import KryographError, UsageError
from kryograph.figures.figure import Output
from kryograph.figures.style import STYLE, letter, panels, styled

ROWS = [{"layer": 1, "mean": 2.5}, {"layer": 2, "mean": 1.0, "note": "é"}]


@styled
def picture() -> Figure:
    figure, axes = panels(1, 2, 2.0)
    axes[0].plot([0, 1], [0, 1])
    letter(axes, ["one", "two"])
    return figure


def test_four_files_are_written_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = Output(tmp_path / "new" / "folder", "lines", as_json=True)
    output.write([picture()], ROWS, {"seed": 7})
    assert sorted(path.name for path in output.folder.iterdir()) == [
        *("lines.csv", "lines.json", "lines.png", "lines.svg"),
    ]
    assert (output.folder / "lines.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (output.folder / "lines.svg").read_text("utf-8")
    with (output.folder / "lines.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.DictReader(file)) == [
            {"layer": "1", "mean": "2.5", "note": ""},
            {"layer": "2", "mean": "1.0", "note": "é"},
        ]
    about = json.loads((output.folder / "lines.json").read_text("utf-8"))
    assert (about["figure"], about["seed"]) == ("lines", 7)
    captured = capsys.readouterr()
    said = json.loads(captured.out)
    assert said["files"] == [str(path) for path in output.files]
    assert "Written to" in captured.err


def test_the_same_data_give_the_same_bytes(tmp_path: Path) -> None:
    outputs = [Output(tmp_path / name, "lines") for name in ("a", "b")]
    for output in outputs:
        output.write([picture()], ROWS, {})
    for one, other in zip(outputs[0].files, outputs[1].files, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_what_exists_is_not_overwritten_unless_asked(tmp_path: Path) -> None:
    (tmp_path / "lines.svg").write_text("mine")
    with pytest.raises(UsageError, match=r"lines\.svg exists already: .* --overwrite"):
        Output(tmp_path, "lines")
    Output(tmp_path, "other")
    Output(tmp_path, "lines", overwrite=True).write([picture()], ROWS, {})
    assert "mine" not in (tmp_path / "lines.svg").read_text("utf-8")


def test_a_folder_in_a_files_place_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "lines.png").mkdir()
    with pytest.raises(UsageError, match="not a file, so it is not overwritten"):
        Output(tmp_path, "lines", overwrite=True)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(UsageError, match=r"taken/lines\.png cannot be written"):
        Output(tmp_path / "taken", "lines")
    with pytest.raises(UsageError, match="cannot be written"):
        Output(tmp_path / "taken" / "below", "lines")


def test_nothing_is_left_of_a_figure_that_fails(tmp_path: Path) -> None:
    output = Output(tmp_path, "lines")
    with pytest.raises(TypeError):
        output.write([picture()], ROWS, {"what": object()})
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_becomes_a_file_is_an_error_in_a_sentence(tmp_path: Path) -> None:
    output = Output(tmp_path / "late", "lines")
    (tmp_path / "late").write_text("")
    with pytest.raises(KryographError, match="late/lines cannot be written: "):
        output.write([picture()], ROWS, {})


def test_the_users_own_style_is_neither_used_nor_changed() -> None:
    with mpl.rc_context({"font.size": 40, "axes.grid": False}):

        @styled
        def seen() -> float:
            return float(mpl.rcParams["font.size"])

        assert seen() == STYLE["font.size"]
        assert mpl.rcParams["font.size"] == 40


def test_panels_are_lettered() -> None:
    assert [axis.get_title() for axis in picture().axes] == ["(a) one", "(b) two"]
