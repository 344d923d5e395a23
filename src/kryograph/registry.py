"""Registry: names of systems, data sets and file formats, built-in ones first, then plug-ins.

A plug-in is an installed distribution with an entry point in the registry's group. A built-in name
is looked up without reading any entry point; an unknown name and every listing load the plug-ins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from kryograph.errors import UsageError, unknown

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Objects by name.

    Args:
        kind: What the objects are called in messages, such as "system".
        group: Entry-point group of the plug-ins.

    >>> colours: Registry[str] = Registry("colour", "example.colours")
    >>> colours.add("blue", "#00f")
    >>> colours["blue"], list(colours)
    ('#00f', ['blue'])
    """

    def __init__(self, kind: str, group: str) -> None:
        self.kind, self.group = kind, group
        self.failures: dict[str, str] = {}
        """Why a plug-in could not be loaded, by its name and distribution."""
        self._objects: dict[str, T] = {}
        self._distributions: dict[str, tuple[str, str]] = {}
        self._plugins_loaded = False

    def add(self, name: str, value: T) -> None:
        """Put an object under a name; a name that another object has is refused.

        The same object may be defined again, as when a cell of a notebook is run twice.
        """
        present = self._objects.get(name)
        if present is not None and _origin(present) != _origin(value):
            raise UsageError(f"There is a {self.kind} {name!r} already: choose another name.")
        self._objects[name] = value

    def distribution(self, name: str) -> tuple[str, str] | None:
        """Name and version of the distribution that a plug-in comes from; None for ours."""
        return self._distributions.get(name)

    def __getitem__(self, name: str) -> T:
        if name not in self._objects:
            self._load_plugins()
        return self._objects[name]

    def find(self, name: str) -> T:
        """Return the object of that name, or raise a `UsageError` that lists near misses."""
        if name in self:
            return self[name]
        error = unknown(self.kind, name, self)
        if name in self.failures:
            raise UsageError(f"The {self.kind} {name!r} is a plug-in. {self.failures[name]}")
        raise error

    def __contains__(self, name: object) -> bool:
        if name not in self._objects:
            self._load_plugins()
        return name in self._objects

    def __iter__(self) -> Iterator[str]:
        self._load_plugins()
        return iter(self._objects)

    def __len__(self) -> int:
        self._load_plugins()
        return len(self._objects)

    def _load_plugins(self) -> None:
        """Load each entry point of the group; one that fails is recorded and does not stop us."""
        if self._plugins_loaded:
            return
        self._plugins_loaded = True
        points: dict[str, EntryPoint] = {}
        for point in entry_points(group=self.group):
            if point.name in self._objects:  # built-in names win
                continue
            other = points.setdefault(point.name, point)
            if _source(other) != _source(point):
                self._plugins_loaded = False
                raise UsageError(
                    f"Two plug-ins provide the {self.kind} {point.name!r}: {_source(other)[0]} and "
                    f"{_source(point)[0]}. Uninstall one of them."
                )
        for name, point in points.items():
            distribution, version = _source(point)
            try:
                self.add(name, point.load())
            except Exception as error:
                self.failures[name] = (
                    f"The plug-in {name!r} of {distribution} cannot be loaded "
                    f"({type(error).__name__}: {error}). Repair or uninstall {distribution}."
                )
            else:
                self._distributions[name] = (distribution, version)


def _origin(value: object) -> object:
    """What tells two definitions apart: module and qualified name of a class, else the object."""
    if isinstance(value, type):
        return value.__module__, value.__qualname__
    return value


def _source(point: EntryPoint) -> tuple[str, str]:
    """Name and version of the distribution of an entry point."""
    if point.dist is None:
        return point.value, ""
    return point.dist.name, point.dist.version
