"""What tests in several folders ask for: the real data sets, a result, the command line, a browser.

The data sets come from wherever `kryograph.data` finds them. A test is skipped where they cannot
be had, except in continuous integration, where that is a failure.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
import torch
from hypothesis import HealthCheck, settings

from kryograph import cli
from kryograph.data import Dataset, fetch, load
from kryograph.data.sources import RawFiles
from kryograph.engine.machine import BFLOAT16_PRODUCTS, bfloat16_fault
from kryograph.errors import KryographError

if TYPE_CHECKING:
    from playwright.sync_api import Browser

T = TypeVar("T")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)

# A slow machine is no failure, and continuous integration tries the same examples every time.
settings.register_profile(
    "kryograph",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("CI") == "true",
)
settings.load_profile("kryograph")


SLOW_FIXTURES = {"bfloat16", "browser", "real_files"}
SLOW_SYSTEMS = {
    *("ada-lnet", "lnet", "gcn-svat", "gcn-dvat"),
    *("self-training", "co-training", "union", "intersection", "multi-stage", "m3s"),
}
"""Systems whose fits take long, many of them because they fit another system several times.

In tests that are parametrised by the `name` of a system, their cases are slow.
"""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what starts a process or a browser, needs real data or fits a slow system."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        cases = item.callspec.params if hasattr(item, "callspec") else {}
        if not SLOW_FIXTURES.isdisjoint(fixtures) or cases.get("name") in SLOW_SYSTEMS:
            item.add_marker("slow")


def _or_skip(get: Callable[[], T]) -> T:
    try:
        return get()
    except KryographError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"the real data cannot be had: {error}")


@pytest.fixture(scope="session")
def real_files() -> dict[str, RawFiles]:
    """The raw files of all three citation graphs."""
    return _or_skip(fetch)


@pytest.fixture(scope="session")
def cora(real_files: dict[str, RawFiles]) -> Dataset:
    return load("cora")


@pytest.fixture(scope="session")
def citeseer(real_files: dict[str, RawFiles]) -> Dataset:
    return load("citeseer")


@pytest.fixture(scope="session")
def pubmed(real_files: dict[str, RawFiles]) -> Dataset:
    return load("pubmed")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no folder of the user's."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("KRYOGRAPH_CACHE", str(folder))
    monkeypatch.delenv("KRYOGRAPH_DATA", raising=False)
    return folder


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither pip nor GitHub can be reached: a real failure, not a stand-in for one."""
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(nothing))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")


@pytest.fixture
def citeseer_files(real_files: dict[str, RawFiles], tmp_path: Path) -> Path:
    """A folder that holds copies of CiteSeer's files."""
    folder = tmp_path / "mine"
    folder.mkdir()
    for path in real_files["citeseer"].paths:
        shutil.copy(path, folder)
    return folder


@pytest.fixture(scope="session")
def bfloat16() -> None:
    """Products in bfloat16 work here; without them tests are skipped."""
    fault = bfloat16_fault(BFLOAT16_PRODUCTS)
    if fault is not None:
        pytest.skip(fault)


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """The command line in this process: exit code, standard output, standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["kryograph", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        captured = capsys.readouterr()
        return int(stopped.value.code or 0), captured.out, captured.err

    return call


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; without it tests are skipped."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium to open the page with")
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def double() -> Iterator[None]:
    """Layers are made in float64, with the same weights whichever test comes first."""
    torch.set_default_dtype(torch.float64)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield
    torch.set_default_dtype(torch.float32)
