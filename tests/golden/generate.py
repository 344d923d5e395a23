"""Compute the golden values of today's code; `python -m tests.golden.generate` writes them.

Each function of `GOLDEN` returns a value that JSON can hold. `test_golden.py` compares it with the
committed file of the same name. The files in `tables/` and `model/` are written only if they are
absent: a model that was written by an older version must stay readable.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

import kryograph as kg
from kryograph.__main__ import main as kryograph_main
from kryograph.data import synthetic_citations
from tests.golden.access import command_line, for_epochs, initial_network, job_record

HERE = Path(__file__).parent
TABLES = HERE / "tables"
MODEL = HERE / "model"

SCENARIOS = (("cora", "1%", "no-validation"), ("cora", "public", "validation"))
NODES_SHOWN = (0, 12, 30, 45, 59)
TABLE_OPTIONS = ("--edges", TABLES / "edges.csv", "--nodes", TABLES / "nodes.csv")
FIT_SYSTEM = (
    *("--system", "truncated-krylov", "--set", "hidden=4", "--set", "order=3"),
    *("--set", "dropout=0", "--label", "topic"),
)


def run_command(*arguments: object) -> str:
    """Run the command line in this process and return its standard output."""
    output, messages = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["kryograph", *map(str, arguments)]),
        redirect_stdout(output),
        redirect_stderr(messages),
    ):
        try:
            kryograph_main()
        except SystemExit as stopped:
            code = stopped.code
        else:
            code = 0
    assert not code, messages.getvalue()
    return output.getvalue()


def small_task() -> kg.Task:
    """A synthetic citation graph of 60 nodes, 9 of them labelled."""
    data = synthetic_citations(
        n=60, classes=3, words=20, words_per_node=6, signal=0.6, homophily=0.8, seed=1
    )
    return data.task(
        kg.Split("golden", train=range(9), validation=range(9, 25), test=range(25, 60))
    )


# The golden values, one function for each file


def commands() -> dict[str, Any]:
    """Every command with its options, arguments, defaults and environment variables."""

    def visit(command: Any, path: str) -> Iterator[tuple[str, Any]]:
        yield path, {parameter_name(p): parameter(p) for p in command.params}
        for name, child in sorted(getattr(command, "commands", {}).items()):
            yield from visit(child, f"{path} {name}")

    def parameter_name(p: Any) -> str:
        if p.param_type_name == "argument":
            return str(p.metavar or p.name).upper()
        return " ".join(sorted([*p.opts, *p.secondary_opts]))

    def parameter(p: Any) -> dict[str, Any]:
        default = p.default() if callable(p.default) else p.default
        plain = default is None or isinstance(default, bool | int | float | str)
        return {
            "default": default if plain else str(default),
            "required": p.required,
            "several": p.nargs != 1 or bool(getattr(p, "multiple", False)),
            "flag": bool(getattr(p, "is_flag", False)),
            "environment": p.envvar,
        }

    return dict(visit(command_line(), "kryograph"))


def train() -> dict[str, Any]:
    """JSON of `kryograph train` on the synthetic data; values of the machine are left out."""
    printed = {}
    for name, changes in (("truncated-krylov", ["hidden=16"]), ("gcn", []), ("prototypes", [])):
        settings = [word for change in changes for word in ("--set", change)]
        options = ("--dataset", "synthetic", "--seeds", 2, "--jobs", 1, "--json")
        result = json.loads(run_command("train", "--system", name, *settings, *options))
        for holder, key in ((result, "threads"), *((run, "seconds") for run in result["runs"])):
            assert holder[key] > 0
            holder[key] = "depends on the machine"
        printed[name] = result
    return printed


def fit() -> dict[str, Any]:
    """Files of `kryograph fit` on small tables: names, predictions, headings of suggestions."""
    with fitted_folder() as folder:
        return {
            "files": sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()),
            "predictions": read_rows(folder / "predictions.csv"),
            "suggestion_headings": read_rows(folder / "suggestions.csv")[0],
        }


def jobs() -> dict[str, Any]:
    """Identity and key of one job of every system with default settings, in two scenarios."""
    return {
        name: [job_record(kg.system(name), *scenario) for scenario in SCENARIOS]
        for name in kg.SYSTEMS
    }


def systems() -> dict[str, Any]:
    """Initial weights of every network, and class probabilities after two epochs."""
    task = small_task()
    found = {}
    for name in kg.SYSTEMS:
        system = kg.system(name)
        fit = system.fit(task, seed=0, conditions=for_epochs(2))
        found[name] = {
            "epochs": fit.epochs,
            "probabilities": fit.predict_proba()[list(NODES_SHOWN)].tolist(),
            "learned": {key: list(value.shape) for key, value in fit.weights.items()},
            "initial_weights": initial_weights(system, task),
        }
    return found


def model() -> list[list[str]]:
    """Predictions of the committed model folder for the committed tables."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "predictions.csv"
        run_command("predict", MODEL, *TABLE_OPTIONS, "--out", out)
        return read_rows(out)


GOLDEN: dict[str, Callable[[], Any]] = {
    "commands": commands,
    "train": train,
    "fit": fit,
    "jobs": jobs,
    "systems": systems,
    "model": model,
}


def initial_weights(system: kg.System, task: kg.Task) -> dict[str, Any] | None:
    """Digest of the weights in float64, and shape, ends and mean of each one in float32.

    The last bit of a random number depends on the processor. Digests are therefore of weights in
    float64, rounded to 1e-6.
    """
    network = initial_network(system, task)
    if network is None:
        return None
    summary = {}
    for name, value in network.state_dict().items():
        numbers = value.double().flatten()
        ends = [numbers[0].item(), numbers[-1].item()] if len(numbers) else []
        mean = numbers.mean().item() if len(numbers) else None
        summary[name] = {"shape": list(value.shape), "ends": ends, "mean": mean}
    digest = hashlib.sha256()
    with double_precision():
        precise = initial_network(system, task)
        assert precise is not None
        for name, value in precise.state_dict().items():
            digest.update(f"{name} {list(value.shape)}\n".encode())
            digest.update((value.double() * 1e6).round().long().numpy().astype("<i8").tobytes())
    parameters = [name for name, _ in network.named_parameters()]
    return {"sha256": digest.hexdigest(), "state": summary, "parameters": parameters}


@contextmanager
def double_precision() -> Iterator[None]:
    """Networks are built in float64 inside this context."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def fitted_folder() -> Iterator[Path]:
    """A temporary folder that `kryograph fit` has written from the committed tables."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        run_command("fit", *TABLE_OPTIONS, *FIT_SYSTEM, "--out", out)
        yield out


def read_rows(path: Path) -> list[list[str]]:
    """The cells of a CSV file, row by row."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


# Writing


def write_tables() -> None:
    """Write the edge and node tables that `fit` and `predict` read."""
    data = synthetic_citations(
        n=90, classes=3, words=12, words_per_node=5, signal=0.7, homophily=0.8, seed=2
    )
    TABLES.mkdir()
    pairs = data.graph.adjacency.tocoo()
    edges = [(a, b) for a, b in zip(*pairs.coords, strict=True) if a < b]
    words = (data.graph.features.toarray() > 0).astype(int)
    with (TABLES / "edges.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["from", "to"])
        writer.writerows((f"n{a}", f"n{b}") for a, b in edges)
    with (TABLES / "nodes.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "topic", "length", "kind", *(f"word{w}" for w in range(12))])
        for node, label in enumerate(data.labels):
            topic = data.classes[label] if node < 30 else ""
            length, kind = words[node].sum() + 0.5 * label, ("note", "paper")[node % 2]
            writer.writerow([f"n{node}", topic, length, kind, *words[node]])


def write() -> None:
    """Write all golden files; tables and model only if they are absent."""
    torch.set_num_threads(1)  # sums of floating-point numbers depend on the number of threads
    if not TABLES.exists():
        write_tables()
    if not MODEL.exists():
        with fitted_folder() as folder:
            shutil.copytree(folder / "model", MODEL)
    for name, compute in GOLDEN.items():
        text = json.dumps(compute(), indent=1, ensure_ascii=False)
        (HERE / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        print(f"wrote {name}.json")


if __name__ == "__main__":
    write()
