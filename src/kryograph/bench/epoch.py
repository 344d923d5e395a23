"""A full epoch of the engine against two other forms.

These are the literal form and PyTorch Geometric's way (`contestant.py`). An epoch is a training
step and a scoring. The three take turns in one process, so that a busy machine slows all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

import torch
from torch import Tensor

from kryograph.bench.benchmark import ColumnFormat, OnCase, benchmark, interleaved
from kryograph.bench.contestant import (
    Contestant,
    engine_contestant,
    literal_contestant,
    network_system,
    pyg_contestant,
)
from kryograph.data import load
from kryograph.engine.machine import available_memory, measure_rates, peak_bytes
from kryograph.nn.functional import Masks
from kryograph.operators import operator
from kryograph.systems.network import NetworkSystem, features_on_device
from kryograph.text import gigabytes
from kryograph.threads import on_free_cores

COMMON_SETTINGS = {"dropout": 0.9, "lr": 1e-4, "weight_decay": 1e-3}
"""Settings of every case; they do not change what an epoch costs."""


@dataclass(frozen=True)
class Case:
    """A network on a data set."""

    architecture: str  # name of the system
    dataset: str
    depth: int  # number of Krylov blocks, or of layers for Snowball
    hidden: int  # width of the hidden layers

    def __str__(self) -> str:
        return f"{self.architecture} {self.dataset} {self.depth}×{self.hidden}"

    @property
    def system(self) -> NetworkSystem:
        """The system with the settings of this case."""
        depth = "order" if self.architecture == "truncated-krylov" else "layers"
        changes = {depth: self.depth, "hidden": self.hidden, **COMMON_SETTINGS}
        return network_system(self.architecture, changes)


CASES = tuple(
    Case(architecture, dataset, depth, hidden)
    for architecture, dataset, sizes in (
        ("truncated-krylov", "cora", ((10, 1950), (18, 128), (20, 16), (30, 4950))),
        ("truncated-krylov", "citeseer", ((27, 100),)),
        ("truncated-krylov", "pubmed", ((8, 512), (4, 1900))),
        ("linear-snowball", "cora", ((9, 128), (3, 1024))),
        ("linear-snowball", "citeseer", ((11, 512),)),
        ("linear-snowball", "pubmed", ((7, 128),)),
        ("snowball", "cora", ((14, 64), (15, 250))),
        ("snowball", "citeseer", ((5, 512),)),
        ("snowball", "pubmed", ((15, 100),)),
    )
    for depth, hidden in sizes
)
"""Settings that the paper publishes."""

QUICK_CASES = tuple(case for case in CASES if case.dataset == "cora" and case.hidden <= 128)
"""Four small cases, for a first look (`--quick`)."""


class RepeatableMasks(Masks):
    """Random masks for n nodes; while `repeat` is set, a mask depends on the layer alone.

    Forms that need different rows then have the same mask.
    """

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n, self.repeat = n, False

    def keep(self, h: Tensor, rate: float, layer: int, nodes: Tensor | None) -> Tensor:
        if not self.repeat:
            return super().keep(h, rate, layer, nodes)
        generator = torch.Generator().manual_seed(layer)
        mask = torch.rand(self.n, h.shape[1], generator=generator) >= rate
        return mask if nodes is None else mask[nodes]


@benchmark(
    {
        "settings": (
            ColumnFormat("setting", "setting"),
            ColumnFormat("threads", "threads"),
            ColumnFormat("engine s", "engine_seconds", "{:.4f}".format),
            ColumnFormat("literal", "speedup_literal", "{:.1f}×".format),
            ColumnFormat("PyG", "speedup_pyg", "{:.1f}×".format),
            ColumnFormat("of floor", "floor_fraction", "{:.2f}".format),
            ColumnFormat("logits", "logits_difference", "{:.0e}".format),
            ColumnFormat("gradient", "gradient_difference", "{:.0e}".format),
            ColumnFormat("memory", "engine_peak_bytes", gigabytes),
        ),
        "summary": (
            ColumnFormat("geometric mean", "name"),
            ColumnFormat("literal", "speedup_literal", "{:.1f}×".format),
            ColumnFormat("PyG", "speedup_pyg", "{:.1f}×".format),
        ),
    }
)
def measure_epochs(*, quick: bool, on_case: OnCase) -> dict[str, Any]:
    """All cases, or four small ones, and the geometric means of their speed-ups."""
    rows = []
    for case in QUICK_CASES if quick else CASES:
        on_case(str(case))
        rows.append(compare_epochs(case, budget=1.0 if quick else 8.0))
    return {"settings": rows, "summary": epoch_summary(rows)}


def epoch_summary(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Geometric means of the speed-ups of each architecture."""
    return {
        name: {
            key: geometric_mean(row[key] for row in rows if row["architecture"] == name)
            for key in ("speedup_literal", "speedup_pyg")
        }
        for name in dict.fromkeys(row["architecture"] for row in rows)
    }


@on_free_cores()
def compare_epochs(case: Case, budget: float) -> dict[str, Any]:
    """Measure one case: times, ratios, differences, memory, and distance from the machine's limits.

    The split is the public one; `budget` is the time for timing in seconds.
    """
    task, method = load(case.dataset).task("public"), case.system
    estimate = method.estimate(task)
    assert estimate is not None
    # Three networks exist at a time, and torch's optimisers copy the weights for a while.
    estimate.check(available_memory(), runs=4)
    x, L = features_on_device(task.graph, "cpu"), operator(task.graph)
    dense = x if isinstance(x, Tensor) else x.to_dense()
    masks = RepeatableMasks(task.graph.n)
    engine, engine_peak = _started(lambda: engine_contestant(method, task, masks))
    literal, literal_peak = _started(lambda: literal_contestant(method, task, dense, L, masks))
    pyg, pyg_peak = _started(lambda: pyg_contestant(method, task))
    logits_difference, gradient_difference = _differences(engine, literal, masks)
    times = interleaved(
        {"engine": engine.epoch, "literal": literal.epoch, "pyg": pyg.epoch}, budget=budget
    )
    return {
        "setting": str(case),
        "threads": torch.get_num_threads(),
        "architecture": case.architecture,
        **{f"{name}_seconds": times[name] for name in times},
        **{f"speedup_{name}": times[name] / times["engine"] for name in ("literal", "pyg")},
        "logits_difference": logits_difference,
        "gradient_difference": gradient_difference,
        "floor_fraction": estimate.epoch.floor(measure_rates()) / times["engine"],
        "predicted_seconds": estimate.epoch.seconds(measure_rates()),
        "engine_peak_bytes": engine_peak,
        "literal_peak_bytes": literal_peak,
        "pyg_peak_bytes": pyg_peak,
        "predicted_peak_bytes": round(estimate.memory),
    }


def _started(build: Callable[[], Contestant]) -> tuple[Contestant, int | None]:
    """A contestant after two epochs, and the peak memory of building and training it in bytes."""

    def start() -> Contestant:
        contestant = build()
        for _ in range(2):
            contestant.epoch()
        return contestant

    return peak_bytes(start)


def _differences(
    engine: Contestant, literal: Contestant, masks: RepeatableMasks
) -> tuple[float, float]:
    """Largest differences of logits and of gradients, each relative to the largest entry.

    Weights and dropout masks are made equal first.
    """
    literal.network.load_state_dict(engine.network.state_dict())
    logits, gradients = [], []
    masks.repeat = True
    for contestant in (engine, literal):
        logits.append(torch.cat([contestant.score(), contestant.gradients()]))
        gradients.append([p.grad for p in contestant.network.parameters() if p.grad is not None])
    masks.repeat = False
    return (
        _relative(*logits),
        max(_relative(one, other) for one, other in zip(*gradients, strict=True)),
    )


def _relative(one: Tensor, other: Tensor) -> float:
    return ((one - other).abs().max() / other.abs().max()).item()
