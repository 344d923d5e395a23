"""Print docs/api.md, the reference of the public names: python docs/make_api.py > docs/api.md."""

from __future__ import annotations

import ast
import inspect
import sys
from enum import Enum
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import kryograph

MODULES = (
    *("kryograph", "kryograph.systems", "kryograph.nn", "kryograph.data", "kryograph.testing"),
    *("kryograph.data.tables", "kryograph.krylov", "kryograph.labelling", "kryograph.estimator"),
)
HEAD = """\
# API reference

Made by `python docs/make_api.py`; a test compares the two.
These names are public: a plug-in may import them ([how to write one](extend.md)).
The full description of a name is its docstring: `help(kryograph.load)`.
"""


class Text:
    """Stands for an annotation or a default in a signature; its `repr` has no quotes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def reference() -> str:
    """Text of docs/api.md: a section for each module, an entry for each public name."""
    homes: dict[str, str] = {}
    lines = [HEAD]
    for module_name in MODULES:
        module = import_module(module_name)
        hasattr(module, "any name")  # a module of `lazy_imports` is loaded when a name is read
        lines += [f"## {module_name}", "", paragraph(inspect.getdoc(module)), ""]
        for name in public_names(module):
            home = homes.setdefault(name, module_name)
            entry = description(name, getattr(module, name)) if home == module_name else ""
            lines.append(f"* {entry}" if entry else f"* `{name}`: see {home}")
        lines.append("")
    return "\n".join(lines)


def public_names(module: ModuleType) -> list[str]:
    """`__all__`, or the classes and functions that the module defines."""
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]
    return sorted(getattr(module, "__all__", own))


def description(name: str, value: object) -> str:
    """Signature, if there is one, and first paragraph of the docstring."""
    described = inspect.isclass(value) or inspect.isfunction(value) or inspect.ismodule(value)
    if not described:
        text = constant_docstrings().get(name) or inspect.getdoc(value)
        return f"`{name}`: {paragraph(text)}"
    callable_value = not (inspect.ismodule(value) or (type(value) is type(Enum)))
    return (
        f"`{name}{signature(value) if callable_value else ''}`: {paragraph(inspect.getdoc(value))}"
    )


def signature(value: object) -> str:
    """Public parameters of a function or class, as they are written in the source."""
    shape = inspect.signature(value)  # type: ignore[arg-type]
    parameters = [
        parameter.replace(
            annotation=unquoted(parameter.annotation), default=default_value(parameter.default)
        )
        for name, parameter in shape.parameters.items()
        if not name.startswith("_")
    ]
    returns = inspect.Signature.empty if inspect.isclass(value) else shape.return_annotation
    return str(shape.replace(parameters=parameters, return_annotation=unquoted(returns)))


def unquoted(annotation: object) -> object:
    """An annotation, which is a string, without quotes."""
    return Text(annotation) if isinstance(annotation, str) else annotation


def default_value(value: object) -> object:
    """A default; the name of a function, and the class of an object without a `repr` of its own."""
    if inspect.isfunction(value):
        return Text(value.__name__)
    return Text(f"{type(value).__name__}()") if " at 0x" in repr(value) else value


@cache
def constant_docstrings() -> dict[str, str]:
    """The text below each constant of the package, by the name of the constant."""
    texts: dict[str, str] = {}
    for path in sorted(Path(kryograph.__file__).parent.rglob("*.py")):
        body = ast.parse(path.read_text("utf-8")).body
        for statement, following in pairwise(body):
            target = statement.target if isinstance(statement, ast.AnnAssign) else None
            if isinstance(statement, ast.Assign):
                target = statement.targets[0]
            if isinstance(target, ast.Name) and isinstance(following, ast.Expr):
                texts.setdefault(target.id, str(ast.literal_eval(following.value)))
    return texts


def paragraph(docstring: str | None) -> str:
    """First paragraph of a docstring in one line."""
    return " ".join((docstring or "").partition("\n\n")[0].split())


if __name__ == "__main__":
    sys.stdout.write(reference())
