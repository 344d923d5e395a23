from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from kryograph.errors import KryographError, UsageError
from kryograph.files import (
    check_output,
    parse_toml,
    read_text,
    replaced,
    sha256,
    temporary_folder,
)


def contents(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_replaced_leaves_the_old_folder_if_the_block_fails(tmp_path: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    (out / "old").write_text("old")

    def fail_half_way() -> None:
        with replaced(out) as new:
            new.mkdir()
            (new / "half").write_text("written")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    assert contents(tmp_path) == ["run"]
    assert (out / "old").read_text() == "old"


def test_replaced_creates_parents_and_overwrites_a_file(tmp_path: Path) -> None:
    out = tmp_path / "a" / "new.csv"
    for text in ("one", "two"):
        with replaced(out) as new:
            new.write_text(text)
    assert out.read_text() == "two"
    assert contents(out.parent) == ["new.csv"]


def test_replaced_exchanges_whole_folders(tmp_path: Path) -> None:
    out = tmp_path / "run"
    for name in ("one", "two"):
        with replaced(out) as new:
            new.mkdir()
            (new / name).write_text(name)
    assert contents(out) == ["two"]
    assert contents(tmp_path) == ["run"]


def test_replaced_puts_the_old_folder_back_if_the_new_one_is_missing(tmp_path: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    (out / "old").write_text("old")
    with pytest.raises(KryographError, match="run cannot be written: No such file"), replaced(out):
        pass
    assert contents(out) == ["old"]
    assert contents(tmp_path) == ["run"]


def test_a_temporary_folder_below_a_file_is_an_error_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(KryographError, match=r"file/page\.html cannot be written: "),
        temporary_folder(tmp_path / "file", "page.html"),
    ):
        pass


def check(path: Path, *, overwrite: bool = False) -> None:
    check_output(path, overwrite=overwrite, is_ours=Path.is_file, kind="a file of ours")


def test_an_output_may_be_new_or_ours(tmp_path: Path) -> None:
    out = tmp_path / "out"
    check(out)
    check(tmp_path / "missing" / "folder" / "out")
    out.write_text("")
    check(out, overwrite=True)
    assert contents(tmp_path) == ["out"]


def test_an_output_that_exists_needs_overwrite(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(UsageError, match=r"out exists already: .* --overwrite"):
        check(tmp_path / "out")


def test_an_output_that_is_not_ours_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(UsageError, match="out is not a file of ours, so it is not overwritten"):
        check(tmp_path / "out", overwrite=True)


def test_an_output_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"file/out cannot be written: .*file: Not a directory"):
        check(tmp_path / "file" / "out")


def test_read_text_explains_what_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "text"
    with pytest.raises(UsageError, match=r"There is no file .*text"):
        read_text(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="text is not a text in UTF-8"):
        read_text(path)
    path.write_text("Käse", "utf-8")
    assert read_text(path) == "Käse"
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        read_text(tmp_path)


def test_sha256_is_that_of_the_contents(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    assert sha256(tmp_path / "file") == hashlib.sha256(b"abc").hexdigest()


def test_parse_toml_names_the_location_in_every_error() -> None:
    assert parse_toml("a = 1", "x.toml", lambda data: data["a"] + 1) == 2
    with pytest.raises(UsageError, match=r"^x\.toml is not TOML: "):
        parse_toml("a = ", "x.toml", dict)

    def refuse(data: object) -> None:
        raise UsageError("It is wrong.")

    with pytest.raises(UsageError, match=r"^x\.toml: It is wrong\."):
        parse_toml("a = 1", "x.toml", refuse)
