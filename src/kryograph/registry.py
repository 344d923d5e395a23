"""Registry: objects by name, such as systems, data sets and file formats.

Built-in objects come first, then plug-ins. A plug-in is an entry point of an installed distribution
in the registry's group. A built-in name is looked up without reading entry points; another name
loads the plug-in of that name, and a listing loads them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from kryograph.errors import UsageError, unknown

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Objects of one kind, such as "system", by name; plug-ins come from an entry-point group.

    `check` is called with a name and an object before it is added; it raises an error if the object
    cannot be used under that name.

    >>> colours: Registry[str] = Registry("colour", "example.colours")
    >>> colours.add("blue", "#00f")
    >>> colours["blue"], list(colours)
    ('#00f', ['blue'])
    """

    def __init__(
        self, kind: str, group: str, check: Callable[[str, T], object] = lambda name, value: None
    ) -> None:
        self.kind, self.group, self._check = kind, group, check
        self.failures: dict[str, str] = {}
        """For each plug-in that cannot be used: its name and a sentence that says why."""
        self._objects: dict[str, T] = {}
        self._distributions: dict[str, tuple[str, str]] = {}
        self._waiting: dict[str, list[EntryPoint]] | None = None

    def add(self, name: str, value: T) -> None:
        """Add an object. A second object with the same name is a `UsageError`.

        The same class may be defined again, as when a cell of a notebook is run twice.
        """
        self._check(name, value)
        if name in self._objects and _definition(self._objects[name]) != _definition(value):
            raise UsageError(f"There is a {self.kind} {name!r} already: choose another name.")
        self._objects[name] = value

    def remove(self, name: str) -> None:
        """Remove an object that was added."""
        del self._objects[name]

    def find(self, name: str) -> T:
        """Return the object with that name; an unknown name is a `UsageError` with near misses."""
        if name in self:
            return self[name]
        if name in self.failures:
            raise UsageError(self.failures[name])
        raise unknown(self.kind, name, self)

    def distribution(self, name: str) -> tuple[str, str] | None:
        """Name and version of the distribution of a plug-in; None for a built-in object."""
        if _package(self[name]) != __package__:
            self._load(name)
        return self._distributions.get(name)

    def __getitem__(self, name: str) -> T:
        if name not in self._objects:
            self._load(name)
        return self._objects[name]

    def __contains__(self, name: object) -> bool:
        if name not in self._objects:
            self._load(name)
        return name in self._objects

    def __iter__(self) -> Iterator[str]:
        for name in list(self._entry_points()):
            self._load(name)
        return iter(self._objects)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _entry_points(self) -> dict[str, list[EntryPoint]]:
        """Entry points that were not loaded yet, by name."""
        if self._waiting is None:
            self._waiting = {}
            for point in entry_points(group=self.group):
                self._waiting.setdefault(point.name, []).append(point)
        return self._waiting

    def _load(self, name: object) -> None:
        """Load the plug-in with that name, if there is one; a failure is recorded, not raised."""
        points = self._entry_points().pop(str(name), [])
        if not points:
            return
        point, sources = points[0], [_source(point) for point in points]
        distribution = sources[0][0]
        package = point.module.partition(".")[0]
        if point.name in self._objects and _package(self._objects[point.name]) != package:
            return  # the name of a built-in object is not given to a plug-in
        if len(sources) > 1:
            names = " and ".join(distribution for distribution, _ in sources)
            self.failures[point.name] = (
                f"The {self.kind} {point.name!r} is provided by {names}: uninstall one of them."
            )
            return
        before = set(self._objects)
        try:
            self.add(point.name, point.load())
        except Exception as error:
            for added in self._objects.keys() - before:
                self.remove(added)
            self.failures[point.name] = (
                f"The {self.kind} {point.name!r} of the plug-in {distribution} cannot be loaded "
                f"({type(error).__name__}: {error}): repair or uninstall {distribution}."
            )
            return
        for added in {point.name} | self._objects.keys() - before:
            self._distributions[added] = sources[0]


def _definition(value: object) -> object:
    """Module and qualified name of a class; any other object stands for itself."""
    return (value.__module__, value.__qualname__) if isinstance(value, type) else value


def _package(value: object) -> str:
    """Top-level package of a class, or of the class of an object."""
    return str(getattr(value, "__module__", "")).partition(".")[0]


def _source(point: EntryPoint) -> tuple[str, str]:
    """Name and version of the distribution of an entry point."""
    assert point.dist is not None, "entry points of installed distributions have one"
    return point.dist.name, point.dist.version
