"""Imports that load a module when it is first used.

`kryograph --help` answers in 0.2 s because the modules of a command, which import torch, are loaded
when the command is called. Python 3.15 has a statement for this: `lazy import` (PEP 810).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any


@contextmanager
def lazy_imports() -> Iterator[None]:
    """Delay the loading of kryograph's modules that are imported inside this context.

    Only modules can be imported here: `from kryograph import runs`, then `runs.Store` in a
    function. `from kryograph.runs import Store` is an ImportError.
    """
    sys.meta_path.insert(0, _FINDER)
    try:
        yield
    finally:
        sys.meta_path.remove(_FINDER)


class _LazyModule(ModuleType):
    """Module whose code runs when one of its names is first read.

    `importlib.util.LazyLoader` cannot be used: it loads a module also when its `__file__` is read,
    which `inspect` does with all modules, and torch calls `inspect`.
    """

    def __getattr__(self, name: str) -> Any:
        spec = self.__spec__
        if name.startswith("__") or _FINDER in sys.meta_path or spec is None or not spec.loader:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        self.__class__ = ModuleType  # type: ignore[assignment]
        spec.loader.exec_module(self)
        return getattr(self, name)


class _LazyLoader(Loader):
    """Loader that leaves the work to the first use of the module."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _LazyModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self.loader


class _LazyFinder(MetaPathFinder):
    """Finder that gives kryograph's modules a `_LazyLoader`."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name.startswith("kryograph.") else None
        if spec is not None and spec.loader is not None:
            spec.loader = _LazyLoader(spec.loader)
        return spec


_FINDER = _LazyFinder()
