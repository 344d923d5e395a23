"""The source seen from outside: who imports whom, where names live, and what every file has."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import kryograph

ROOT = Path(__file__).parents[1]
SRC = Path(kryograph.__file__).parent
MODULES = sorted(SRC.rglob("*.py"))

ORDER = [
    {"errors", "lazy"},
    {"registry", "text", "files", "stats", "threads"},
    {"merging"},
    {"graph"},
    {"sparse"},
    {"features"},
    {"operators", "data.tables"},
    {"krylov", "data", "basis"},
    {"nn"},
    {"engine", "explain"},
    {"training"},
    {"systems"},
    {"model"},
    {"estimator", "testing", "labelling", "runs"},
    {"experiments"},
    {"tuning", "report"},
    {"session"},
    {"figures", "bench"},
    {"cli"},
    {"__main__"},
]
"""Each part may import the parts of the lines above its own. `kryograph` itself imports nothing."""

APART = {
    "data": {
        "errors",
        "lazy",
        "registry",
        "text",
        "files",
        "graph",
        "sparse",
        "features",
        "data.tables",
    },
    "data.tables": {
        *("errors", "registry", "text", "files", "merging", "graph", "sparse", "features"),
    },
    "labelling": {
        "data.tables",
        "merging",
        "errors",
        "text",
        "files",
        "stats",
        "threads",
        "graph",
        "features",
        "basis",
        "operators",
        "explain",
        "systems",
        "training",
        "model",
    },
    "estimator": {"errors", "features", "graph", "model", "systems", "training"},
}
"""Parts that may import less than what stands above them."""

LATE = {
    "graph": "Graph.from_tables reads a person's own files",
    "data.tables": "networkx and scikit-learn, for GraphML and GEXF and for columns of text",
    "labelling": "Optuna, for `--search`; polars; what a labelled graph offers stands above it",
    "systems": "scikit-learn, for the clusters of M3S",
    "stats": "scipy.integrate, for one number of the results",
    "cli": "rich, for tables and bars",
    "__init__": "public names are imported on demand",
}
"""Parts that may import inside a function, and why."""

LAZY = {
    "cli": "help and usage errors are answered before torch is imported",
    "data": "Arrow, for .npz archives and for data sets in files of one's own",
    "nn": "torch_geometric's message passing, which only its explainers need",
}
"""Parts that may delay imports by `lazy_imports`, and why."""

UPWARD = {
    ("graph", "data.tables", "called"),  # Graph.from_tables
    ("labelling", "report", "called"),  # LabelledGraph.report
}
"""Methods that do what a part below them in the order of imports offers."""

MOST_LATE_IMPORTS = 15


def part_of(path: Path) -> str:
    """Package of a file, or the module itself if it stands beside the packages."""
    parts = path.relative_to(SRC).with_suffix("").parts
    return "data.tables" if parts[:2] == ("data", "tables") else parts[0]


def dotted(path: Path) -> str:
    """Name by which a file is imported."""
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(("kryograph", *(parts[:-1] if parts[-1] == "__init__" else parts)))


def allowed(part: str) -> set[str]:
    """Parts that a part may import."""
    if part in APART:
        return APART[part]
    if part == "__init__":
        return set()
    above: set[str] = set()
    for line in ORDER:
        if part in line:
            return above
        above |= line
    raise AssertionError(f"{part} has no place in ORDER")


def imported_parts(path: Path) -> Iterator[tuple[str, str]]:
    """Each part of kryograph that a file imports, and when: "now", "called" or "types".

    Imports inside `with lazy_imports()` are carried out when a function is called.
    """

    def visit(node: ast.AST, when: str) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.FunctionDef) or is_lazy(node):
            when = "called"
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            when = "types"
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "kryograph" and len(parts) > 1:
                yield ("data.tables" if parts[1:3] == ["data", "tables"] else parts[1]), when
        for child in ast.iter_child_nodes(node):
            yield from visit(child, when)

    yield from visit(ast.parse(path.read_text("utf-8")), "now")


def is_lazy(node: ast.AST) -> bool:
    """Whether a node is the statement `with lazy_imports()`."""
    return isinstance(node, ast.With) and any(
        ast.unparse(item.context_expr) == "lazy_imports()" for item in node.items
    )


def late_imports(path: Path) -> list[int]:
    """Line numbers of the import statements inside functions."""
    tree = ast.parse(path.read_text("utf-8"))
    return sorted(
        {
            statement.lineno
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef)
            for statement in ast.walk(function)
            if isinstance(statement, ast.Import | ast.ImportFrom)
        }
    )


def public_names(path: Path) -> set[str]:
    """Functions, classes and constants of a module's top level; type variables (`T`) are not."""
    names: set[str] = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return {name for name in names if len(name) > 1 and not name.startswith("_")}


every_module = pytest.mark.parametrize("path", MODULES, ids=dotted)


@every_module
def test_imports_point_one_way(path: Path) -> None:
    part = part_of(path)
    for imported, when in imported_parts(path):
        if imported == part or when == "types" or (part == "__init__" and when == "called"):
            continue
        if (part, imported, when) in UPWARD:
            continue
        assert imported in allowed(part), f"{dotted(path)} imports kryograph.{imported}"


def test_the_import_reader_sees_what_there_is() -> None:
    assert ("training", "now") in imported_parts(SRC / "systems" / "network.py")
    assert ("data", "types") in imported_parts(SRC / "__init__.py")
    assert ("data.tables", "called") in imported_parts(SRC / "graph.py")


def test_late_imports_are_few_and_explained() -> None:
    late = {dotted(path): late_imports(path) for path in MODULES}
    parts = {part_of(path) for path in MODULES if late_imports(path)}
    assert parts <= LATE.keys()
    lazy = {part_of(p) for p in MODULES if any(map(is_lazy, ast.parse(p.read_text("utf-8")).body))}
    assert lazy <= LAZY.keys()
    assert sum(map(len, late.values())) <= MOST_LATE_IMPORTS, {k: v for k, v in late.items() if v}


def test_no_public_name_is_defined_twice() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for name in public_names(path):
            homes[name].append(dotted(path))
    twice = {name: places for name, places in homes.items() if len(places) > 1}
    assert not twice


def test_equal_module_names_mean_the_same_at_two_levels() -> None:
    homes: dict[str, set[str]] = defaultdict(set)
    for path in MODULES:
        if path.stem not in ("__init__", "__main__"):
            homes[path.stem].add(part_of(path))
    twice = {stem: parts for stem, parts in homes.items() if len(parts) > 1}
    for stem, parts in twice.items():
        two_levels = "cli" in parts or parts == {"nn", "systems"} or parts == {"systems", stem}
        assert two_levels, f"{stem}.py stands in {sorted(parts)}"


@every_module
def test_training_code_never_mentions_a_data_set(path: Path) -> None:
    if part_of(path) in ("nn", "systems", "training", "engine"):
        assert not re.search("dataset", path.read_text("utf-8"), re.IGNORECASE)


def reads_of_labels(source: str) -> list[int]:
    """Line numbers at which a module reads `labels` of a data set.

    A data set is a name or attribute that ends in "data" or "dataset", a parameter or variable of
    type `Dataset`, or the result of a function that loads or draws one.
    """
    tree, names = ast.parse(source), set[str]()
    makers = re.compile(r"(^|\.)(load|datasets|synthetic_citations)\(")
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.annotation is not None:
            if re.search(r"\bDataset\b", ast.unparse(node.annotation)):
                names.add(node.arg)
        elif isinstance(node, ast.AnnAssign) and re.search(
            r"\bDataset\b", ast.unparse(node.annotation)
        ):
            names.add(ast.unparse(node.target))
        elif isinstance(node, ast.Assign) and makers.search(ast.unparse(node.value)):
            names |= {ast.unparse(target) for target in node.targets}
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr == "labels"
        and (
            (owner := ast.unparse(node.value)) in names
            or re.search("data(set)?$", owner)
            or makers.search(owner)
        )
    ]


@every_module
def test_labels_of_a_data_set_are_read_in_one_module(path: Path) -> None:
    if part_of(path) in ("data", "data.tables") or path == SRC / "runs" / "perform.py":
        return
    assert reads_of_labels(path.read_text("utf-8")) == [], f"{dotted(path)} reads test labels"


@pytest.mark.parametrize(
    "source",
    [
        "dataset.labels",
        "self.dataset.labels",
        "def f(graph: Dataset): return graph.labels",
        "graph: Dataset = g()\ngraph.labels",
        "cora = load('cora')\ncora.labels",
        "kg.load('cora').labels[3]",
    ],
)
def test_the_reader_of_labels_sees_data_sets(source: str) -> None:
    assert len(reads_of_labels(source)) == 1


def test_the_reader_of_labels_passes_over_tasks() -> None:
    assert reads_of_labels("def f(task: Task): return task.labels") == []


@every_module
def test_only_the_command_line_prints(path: Path) -> None:
    if part_of(path) in ("cli", "__main__"):
        return
    tree = ast.parse(path.read_text("utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert not [node.lineno for node in calls if ast.unparse(node.func) == "print"]


@every_module
def test_every_module_says_what_it_is(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8")))
    assert docstring
    assert docstring.splitlines()[0].endswith((".", ":", "…"))


@every_module
def test_no_file_is_long(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 400


@every_module
def test_every_module_has_its_test_file(path: Path) -> None:
    if path.stem in ("__init__", "__main__"):
        return
    folder = ROOT / "tests" / path.relative_to(SRC).parent
    assert list(folder.glob(f"test_{path.stem}*.py")), f"no test of {dotted(path)} in {folder}"


GENERAL_TESTS = {"golden", "helpers"}


def test_every_test_file_has_its_module() -> None:
    for test in sorted((ROOT / "tests").rglob("test_*.py")):
        folder = test.relative_to(ROOT / "tests").parent
        if folder == Path() or folder.parts[0] in GENERAL_TESTS:
            continue
        modules = {path.stem for path in (SRC / folder).glob("*.py")} | {folder.name}
        name = test.stem.removeprefix("test_")
        named = any(name == module or name.startswith(f"{module}_") for module in modules)
        assert named, f"{test.relative_to(ROOT)} is named after no module of {folder}"
