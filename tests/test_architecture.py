"""What the source looks like from outside: who imports whom, and what every file has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import kryograph

ROOT = Path(__file__).parents[1]
SRC = Path(kryograph.__file__).parent
MODULES = sorted(path for path in SRC.rglob("*.py"))

# What each part may import, apart from itself: the arrows point one way.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "graph": {"errors"},
    "sparse": {"errors"},
    "operators": {"errors", "graph", "sparse"},
    "data": {"errors", "graph"},
    "krylov": {"errors", "graph", "sparse", "operators"},
    "nn": {"errors", "graph", "sparse", "operators", "krylov"},
    "engine": {"errors", "sparse", "operators", "nn"},
    "training": {"errors", "graph", "engine"},
    "systems": {"errors", "graph", "sparse", "operators", "nn", "engine", "training"},
    "model": {"errors", "graph", "systems"},
    "results": {"errors", "training"},
    "store": {"errors"},
    "durations": {"errors"},
    "estimator": {"errors", "graph", "model", "systems", "training"},
    "experiments": {
        *("errors", "graph", "operators", "data", "engine", "systems", "training", "results"),
        *("store",),
    },
    "report": {
        *("errors", "durations", "graph", "labelling", "results", "store", "systems", "training"),
        *("experiments",),
    },
    "labelling": {"errors", "graph", "operators", "systems", "training", "model"},
    "own_graph": {
        *("errors", "durations", "graph", "data", "labelling", "model", "report", "systems"),
    },
    "reproduce": {"errors", "durations", "experiments", "report", "store", "systems"},
    "show_results": {"errors", "experiments", "report", "reproduce", "store"},
    "tuning": {
        *("errors", "durations", "graph", "data", "engine", "systems", "training"),
        *("experiments", "report", "reproduce"),
    },
    "figures": {
        *("errors", "graph", "operators", "krylov", "data", "nn", "engine", "systems", "training"),
        *("results", "experiments", "report"),
    },
    "bench": {
        *("graph", "sparse", "operators", "data", "nn", "engine", "systems", "training"),
        *("experiments", "krylov", "report", "errors", "labelling", "results"),
    },
    "cli": {
        *("", "errors", "data", "engine", "own_graph", "reproduce", "systems", "training"),
        *("experiments", "results", "report", "bench", "figures", "show_results", "tuning"),
    },
    "__main__": {"cli"},
    "__init__": {"data", "graph", "operators", "systems", "training", "model", "errors"},
}
DEFERRED = {"training": {"data", "systems"}, "graph": {"data"}}
"""What is imported for types only, or when a function is called."""


def part_of(path: Path) -> str:
    """The package, or the module that stands beside the packages."""
    first = path.relative_to(SRC).parts[0]
    return first.removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Each part of kryograph that a file imports ("" is the top), and whether not at once."""

    def visit(node: ast.AST, deferred: bool) -> Iterator[tuple[str, bool]]:
        if isinstance(node, ast.FunctionDef) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        ):
            deferred = True
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            assert node.module is not None
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name.split(".")[0] == "kryograph":
                yield [*name.split("."), ""][1], deferred
        for child in ast.iter_child_nodes(node):
            yield from visit(child, deferred)

    yield from visit(ast.parse(path.read_text("utf-8")), False)


def dotted(path: Path) -> str:
    return ".".join(("kryograph", *path.relative_to(SRC).with_suffix("").parts))


every_module = pytest.mark.parametrize("path", MODULES, ids=dotted)


def test_every_part_has_its_place() -> None:
    assert {part_of(path) for path in MODULES} == set(MAY_IMPORT)


def test_no_two_parts_may_import_each_other() -> None:
    reached = {part: set(below) for part, below in MAY_IMPORT.items()}
    for _ in MAY_IMPORT:
        for part in reached:
            reached[part] |= {far for near in reached[part] for far in reached.get(near, ())}
    assert [part for part, below in reached.items() if part in below] == []


@every_module
def test_imports_point_one_way(path: Path) -> None:
    part = part_of(path)
    for imported, deferred in imports(path):
        allowed = MAY_IMPORT[part] | {part}
        if deferred:
            allowed |= DEFERRED.get(part, set())
        assert imported in allowed, f"{dotted(path)} imports kryograph.{imported}"


def test_the_import_reader_sees_what_there_is() -> None:
    assert ("systems", True) in imports(SRC / "training" / "protocol.py")
    assert ("data", True) in imports(SRC / "training" / "protocol.py")
    assert ("training", False) in imports(SRC / "systems" / "network.py")
    assert ("", False) in imports(SRC / "cli.py")


@every_module
def test_only_the_protocol_meets_a_data_set(path: Path) -> None:
    if part_of(path) in ("nn", "systems", "training") and path.name != "protocol.py":
        assert not re.search("dataset", path.read_text("utf-8"), re.IGNORECASE)


@every_module
def test_labels_are_read_below_the_experiments_only(path: Path) -> None:
    if part_of(path) in ("experiments", "results", "report", "cli"):
        tree = ast.parse(path.read_text("utf-8"))
        attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert "labels" not in attributes


@every_module
def test_every_module_says_what_it_is(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8")))
    assert docstring
    assert docstring.splitlines()[0].endswith((".", ":", "…"))


@every_module
def test_no_file_is_long(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 400


@every_module
def test_every_module_has_a_test_that_mentions_it(path: Path) -> None:
    if path.name in ("__init__.py", "__main__.py"):
        return
    package, _, module = dotted(path).rpartition(".")
    mention = re.compile(
        rf"{re.escape(dotted(path))}\b|from {re.escape(package)} import [^\n]*\b{module}\b"
    )
    tests = [test for test in ROOT.glob("tests/**/test_*.py") if test != Path(__file__)]
    assert tests
    assert any(
        test.name == f"test_{module}.py" or mention.search(test.read_text("utf-8"))
        for test in tests
    ), f"no test mentions {dotted(path)}"
