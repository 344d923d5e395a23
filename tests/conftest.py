"""The real data sets, for every test that asks for one.

They come from wherever `kryograph.data` finds them. A test is skipped where they cannot be had,
except in continuous integration, where that is a failure.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import pytest

from kryograph.data import Dataset, fetch, load
from kryograph.data.sources import RawFiles
from kryograph.errors import KryographError

T = TypeVar("T")


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
