"""The plug-in of docs/extend.md works as the page says, without any file of kryograph's own."""

from __future__ import annotations

import configparser
import json
import os
import re
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import networkx
import pytest

from kryograph.data import DATASETS, toy
from kryograph.data.tables import FILE_FORMATS, read_tables
from kryograph.errors import UsageError
from kryograph.model import Model
from kryograph.registry import Registry
from kryograph.systems import SYSTEMS, system
from kryograph.testing import check_system

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extend.md").read_text("utf-8")
TABLES = ROOT / "tests" / "golden" / "tables"
MODULE = "kryograph_appnp"

Run = Callable[..., tuple[int, str, str]]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def write_plugin(folder: Path, name: str, groups: dict[str, dict[str, str]], source: str) -> None:
    """Write what an installed distribution consists of: its module and its metadata."""
    info = folder / f"{name}-0.1.dist-info"
    info.mkdir(parents=True)
    (folder / f"{name}.py").write_text(source, "utf-8")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    points = configparser.ConfigParser()
    points.read_dict(groups)
    with (info / "entry_points.txt").open("w") as file:
        points.write(file)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path, whose entry points are read again; forgotten afterwards."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    registries: tuple[Registry[Any], ...] = (SYSTEMS, DATASETS, FILE_FORMATS)
    for registry in registries:
        monkeypatch.setattr(registry, "_waiting", None)
        monkeypatch.setattr(registry, "failures", {})
    before = [set(registry) for registry in registries]
    for registry in registries:
        monkeypatch.setattr(registry, "_waiting", None)
    yield folder
    for registry, names in zip(registries, before, strict=True):
        for name in set(registry._objects) - names:
            registry.remove(name)
    for name in [name for name in sys.modules if name.startswith(MODULE)]:
        del sys.modules[name]


@pytest.fixture
def plugin(path: Path) -> Path:
    """The plug-in of the page: its pyproject.toml as metadata, its programs as one module."""
    [project] = blocks("toml")
    groups = tomllib.loads(project)["project"]["entry-points"]
    [appnp, _, *others] = blocks("python")
    write_plugin(path, MODULE, groups, "\n".join([appnp, *others]))
    return path


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KRYOGRAPH_STORE", str(tmp_path / "runs.sqlite"))
    return tmp_path / "runs.sqlite"


def succeed(run: Run, *arguments: object) -> str:
    code, out, err = run(*arguments)
    assert code == 0, err
    return out


def test_plugin_is_listed(plugin: Path, run: Run) -> None:
    names = [entry["name"] for entry in json.loads(succeed(run, "systems", "--json"))]
    assert names[-1] == "appnp"
    assert {"gcn", "truncated-krylov"} < set(names)
    assert "| `teleport` | 0.1 | restart" in succeed(run, "systems", "--markdown")
    assert "Two groups: 60 nodes" in succeed(run, "datasets")


@pytest.mark.slow
def test_plugin_is_listed_in_a_new_process(plugin: Path) -> None:
    command = [sys.executable, "-m", "kryograph", "systems"]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    assert finished.stdout.splitlines()[-1].startswith("appnp ")


@pytest.mark.slow
def test_plugin_trains_in_worker_processes_and_its_version_is_recorded(
    plugin: Path, run: Run, store: Path
) -> None:
    options = ["--system", "appnp", "--dataset", "two-groups", "--per-class", "5", "--seeds", "2"]
    changes = ["--set", "hops=3", "--set", "lr=0.05"]
    out = succeed(run, "train", *options, *changes, "--jobs", "2", "--record", "--json")
    result = json.loads(out)
    assert result["test_accuracy"]["mean"] > 0.6
    with sqlite3.connect(store) as database:
        rows = "\n".join(database.iterdump())
    assert rows.count("INSERT INTO") >= 2
    assert '"kryograph_appnp": "0.1"' in rows


@pytest.mark.slow
def test_plugin_fits_own_tables_and_its_model_predicts(
    plugin: Path, run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    tables = ["--edges", TABLES / "edges.csv", "--nodes", TABLES / "nodes.csv"]
    succeed(run, "fit", *tables, "--label", "topic", "--system", "appnp", "--out", out)
    assert Model.load(out / "model").system.name == "appnp"
    succeed(run, "predict", out / "model", *tables, "--out", tmp_path / "again.csv")
    assert (tmp_path / "again.csv").exists()


@pytest.mark.slow
def test_plugin_is_tuned(plugin: Path, run: Run, store: Path) -> None:
    options = ["--dataset", "two-groups", "--per-class", "5", "--trials", "1", "--jobs", "1"]
    result = json.loads(succeed(run, "tune", "appnp", *options, "--json"))
    assert result["winner"]["settings"]["hops"] == 10
    assert result["trials"]["complete"] == 1


@pytest.mark.slow
def test_plugin_passes_the_checks(plugin: Path) -> None:
    names = set()
    for check in check_system("appnp", {"hops": 3}):
        check()
        names.add(str(check))
    assert {"keeps_components_apart", "uses_dropout", "uses_the_operator"} <= names


def test_file_of_the_plugin_is_read(plugin: Path, tmp_path: Path) -> None:
    file = tmp_path / "graph.gml"
    graph = networkx.from_scipy_sparse_array(toy.cycle(6).adjacency)
    for node in graph:
        graph.nodes[node].update(topic="ab"[node % 2], size=float(node))
    networkx.write_gml(graph, file)
    tables = read_tables(None, file, label="topic")
    assert tables.columns is not None
    assert (tables.graph.n, tables.graph.edges, tables.classes) == (6, 6, ("a", "b"))
    assert tables.labels.tolist() == [0, 1] * 3


def test_page_shows_how_the_checks_are_run(plugin: Path) -> None:
    names: dict[str, Any] = {}
    exec(blocks("python")[1], names)
    [mark] = names["test_appnp"].pytestmark
    assert [str(check) for check in mark.args[1]] == [str(check) for check in check_system("appnp")]


def test_model_needs_its_plugin(plugin: Path, tmp_path: Path) -> None:
    method = system("appnp", {"hidden": 4, "hops": 1})
    task = DATASETS["two-groups"].load().task("5 per class", seed=0)
    Model.of(method, method.fit(task)).save(tmp_path / "model")
    SYSTEMS.remove("appnp")
    with pytest.raises(UsageError, match="needs the system 'appnp': install the package"):
        Model.load(tmp_path / "model")


def test_plugin_that_cannot_be_imported_is_named_and_stops_nothing(
    path: Path, run: Run, tmp_path: Path
) -> None:
    groups = {"kryograph.systems": {"appnp": f"{MODULE}:APPNPSystem"}}
    write_plugin(path, MODULE, groups, "import no_such_package")
    code, out, err = run("systems")
    assert code == 0
    assert "gcn " in out
    assert "appnp" not in out
    assert err == (
        "The system 'appnp' of the plug-in kryograph_appnp cannot be loaded (ModuleNotFoundError: "
        "No module named 'no_such_package'): repair or uninstall kryograph_appnp.\n"
    )
    code, _, err = run("train", "--system", "appnp", "--dataset", "synthetic")
    assert code == 2
    assert "The system 'appnp' of the plug-in kryograph_appnp cannot be loaded" in err


def test_model_of_a_plugin_that_cannot_be_imported_says_so(plugin: Path, tmp_path: Path) -> None:
    method = system("appnp", {"hidden": 4, "hops": 1})
    task = DATASETS["two-groups"].load().task("5 per class", seed=0)
    Model.of(method, method.fit(task)).save(tmp_path / "model")
    SYSTEMS.remove("appnp")
    SYSTEMS.failures["appnp"] = "The system 'appnp' cannot be loaded."
    with pytest.raises(UsageError, match="The system 'appnp' cannot be loaded"):
        Model.load(tmp_path / "model")


def test_builtin_name_wins_over_a_plugin(path: Path, run: Run) -> None:
    groups = {"kryograph.systems": {"gcn": f"{MODULE}:APPNPSystem"}}
    write_plugin(path, MODULE, groups, "raise RuntimeError('imported')")
    _, _, err = run("systems")
    assert err == ""
    assert system("gcn").name == "gcn"
    assert MODULE not in sys.modules


def test_two_plugins_with_one_name_are_refused_by_both_names(
    path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (MODULE, f"{MODULE}_too"):
        write_plugin(path / name, name, {"kryograph.systems": {"appnp": f"{name}:X"}}, "X = 1")
        monkeypatch.syspath_prepend(path / name)
    code, _, err = run("train", "--system", "appnp", "--dataset", "synthetic")
    assert code == 2
    assert f"{MODULE}_too" in err
    assert re.search(rf"{MODULE}( and|:)", err)


# The API reference


def test_api_reference_is_current() -> None:
    script = ROOT / "docs" / "make_api.py"
    text = subprocess.run(
        [sys.executable, str(script)], capture_output=True, check=True
    ).stdout.decode()
    assert text == (ROOT / "docs" / "api.md").read_text("utf-8"), f"run {script.name} again"


def test_programs_import_public_names_only() -> None:
    reference = (ROOT / "docs" / "api.md").read_text("utf-8")
    sections = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", reference, re.MULTILINE | re.DOTALL))
    imports = re.findall(r"^from (kryograph\S*) import (.*)$", PAGE, re.MULTILINE)
    assert len(imports) >= 5
    for module, names in imports:
        for name in names.split(", "):
            assert re.search(rf"^\* `{name}\b", sections[module], re.MULTILINE), (module, name)
