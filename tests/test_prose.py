"""How docstrings and local names are written: a ratchet per package, which may only go down."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

import pytest

import kryograph

SRC = Path(kryograph.__file__).parent
Definition: TypeAlias = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

BANNED_NAMES = {
    *("found", "said", "made", "there", "asked", "each", "given", "told", "shown", "wanted"),
    "nobody",
}
"""Names that do not say what the value is."""

RIDDLES = (
    *("Of ", "That of", "That which", "Those ", "One of", "What ", "As ", "The same", "Its "),
    *("Their ", "Where ", "Which ", "Whose ", "Such ", "So many", "All that", "All of it"),
    *("How it", "How they", "How many", "How long", "How far", "How often"),
)
"""Openings of a docstring that cannot be understood without the code beside it."""

SHORT = 4
"""A docstring of one line with at most this many words only restates a name."""

# How many are left in each package or module. A commit may lower a number, never raise it.
ALLOWED_SHORT = {}
ALLOWED_BANNED = {}
ALLOWED_RIDDLES = {}


def modules() -> Iterator[tuple[str, Path, ast.Module]]:
    """The part of the package that a file belongs to, the file, and its syntax tree."""
    for path in sorted(SRC.rglob("*.py")):
        part = path.relative_to(SRC).parts[0].removesuffix(".py")
        yield part, path, ast.parse(path.read_text("utf-8"))


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of the docstrings of a module, of its classes and of its functions."""
    for node in ast.walk(tree):
        if isinstance(node, Definition):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


def short_docstrings(tree: ast.Module) -> Iterator[str]:
    for line, text in docstrings(tree):
        if "\n" not in text and len(text.split()) <= SHORT:
            yield f"{line}: {text}"


def riddles(tree: ast.Module) -> Iterator[str]:
    for line, text in docstrings(tree):
        if text.startswith(RIDDLES):
            yield f"{line}: {text.splitlines()[0]}"


def banned_names(tree: ast.Module) -> Iterator[str]:
    """Variables, fields and parameters with a banned name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.arg):
            name = node.arg
        else:
            continue
        if name in BANNED_NAMES:
            yield f"{node.lineno}: {name}"


@pytest.mark.parametrize(
    ("rule", "allowed"),
    [
        pytest.param(short_docstrings, ALLOWED_SHORT, id="short docstrings"),
        pytest.param(riddles, ALLOWED_RIDDLES, id="riddles"),
        pytest.param(banned_names, ALLOWED_BANNED, id="banned names"),
    ],
)
def test_no_package_has_more_than_it_had(
    rule: Callable[[ast.Module], Iterator[str]], allowed: dict[str, int]
) -> None:
    places: dict[str, list[str]] = {}
    for part, path, tree in modules():
        faults = [f"{path.relative_to(SRC)}:{fault}" for fault in rule(tree)]
        places.setdefault(part, []).extend(faults)
    counts = Counter({part: len(faults) for part, faults in places.items()})
    worse = [part for part, count in counts.items() if count > allowed.get(part, 0)]
    assert not worse, "\n".join(fault for part in worse for fault in places[part])


def test_public_methods_have_a_docstring_unless_they_override_a_documented_one() -> None:
    """ruff's D102 does not know about overriding, so it is off."""
    bare = []
    for _, path, tree in modules():
        if path.name == "__main__.py":
            continue
        parts = path.relative_to(SRC.parent).with_suffix("").parts
        module = import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                kind = getattr(module, node.name)
                for method in node.body:
                    if (
                        isinstance(method, ast.FunctionDef)
                        and not method.name.startswith("_")
                        and not ast.get_docstring(method)
                        and not is_overload(method)
                        and not overrides_documented(kind, method.name)
                    ):
                        where = f"{path.relative_to(SRC)}:{method.lineno}"
                        bare.append(f"{where} {node.name}.{method.name}")
    assert bare == []


def is_overload(method: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator) == "overload" for decorator in method.decorator_list)


def overrides_documented(kind: type, name: str) -> bool:
    inherited = [vars(base)[name] for base in kind.__mro__[1:] if name in vars(base)]
    return any(inspect.getdoc(method) for method in inherited)


def test_the_rules_see_what_they_are_for() -> None:
    tree = ast.parse(
        '"""Of either product."""\n'
        "def f(given):\n"
        '    """One of them."""\n'
        "    for each in given:\n"
        "        found = each\n"
        "class C:\n"
        '    """A class with a docstring that is long enough."""\n'
    )
    assert list(short_docstrings(tree)) == ["1: Of either product.", "2: One of them."]
    assert list(riddles(tree)) == ["1: Of either product.", "2: One of them."]
    assert list(banned_names(tree)) == ["2: given", "4: each", "5: found"]
