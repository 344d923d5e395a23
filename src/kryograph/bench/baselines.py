"""An epoch of GCN and GAT against PyTorch Geometric's.

Its example scripts have the same networks and settings, with its layers on dense features and
torch's dropout and Adam. An epoch is a training step and a scoring. The two programs take turns
in one process.
"""

from __future__ import annotations

from statistics import geometric_mean
from typing import Any

from kryograph.bench.benchmark import ColumnFormat, OnCase, benchmark, interleaved
from kryograph.bench.contestant import engine_contestant, network_system, pyg_contestant
from kryograph.data import load
from kryograph.nn.functional import Masks
from kryograph.threads import on_free_cores

BASELINES: dict[str, dict[str, object]] = {
    "gcn": {"lr": 0.005, "weight_decay": 5e-4},
    # PyTorch Geometric's layer has no dropout on W h.
    "gat": {"lr": 0.005, "weight_decay": 5e-4, "drop_projected": False},
}
"""Changes to the default settings of each system."""

BASELINE_DATASETS = ("cora", "citeseer", "pubmed")


@benchmark(
    {
        "epochs": (
            ColumnFormat("system", "system"),
            ColumnFormat("data set", "dataset"),
            ColumnFormat("ours s", "kryograph_seconds", "{:.4f}".format),
            ColumnFormat("script s", "script_seconds", "{:.4f}".format),
            ColumnFormat("ratio", "speedup", "{:.1f}×".format),
        )
    }
)
def measure_baselines(*, quick: bool, on_case: OnCase) -> dict[str, Any]:
    """Both systems on the three data sets; with `quick`, on Cora only."""
    rows = []
    for name in BASELINES:
        for dataset in BASELINE_DATASETS[:1] if quick else BASELINE_DATASETS:
            on_case(f"{name} {dataset}")
            rows.append(compare_scripts(name, dataset, budget=2.0 if quick else 15.0))
    return {"epochs": rows, "summary": geometric_mean(row["speedup"] for row in rows)}


@on_free_cores()
def compare_scripts(name: str, dataset: str, budget: float) -> dict[str, Any]:
    """Time an epoch of a system and of its script on a public split, for `budget` seconds."""
    task = load(dataset).task("public")
    method = network_system(name, BASELINES[name])
    ours, script = engine_contestant(method, task, Masks()), pyg_contestant(method, task)
    times = interleaved({"kryograph": ours.epoch, "script": script.epoch}, budget=budget)
    return {
        **{"system": name, "dataset": dataset},
        **{f"{form}_seconds": duration for form, duration in times.items()},
        "speedup": times["script"] / times["kryograph"],
    }
