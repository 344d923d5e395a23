"""A full epoch, a training step and a scoring: the engine, the literal form, and PyG's way.

The literal form is the formula on every node in every epoch, with dense features, as the paper and
its authors' code have it; PyG's way is in `idioms.py`. Both use torch's own RMSprop. All three
take turns in one process, so that their ratios do not depend on how busy the machine is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

import torch
from torch import Tensor, nn

from kryograph.bench.benchmark import interleaved
from kryograph.bench.pyg import GCNSnowball, Idiom, Setting, SignMLP
from kryograph.data import load
from kryograph.engine.cost import Estimate
from kryograph.engine.forward import Forward, Nodes, WholeGraph
from kryograph.engine.machine import available_memory, measure_rates, peak_bytes
from kryograph.graph import Task
from kryograph.nn.functional import Masks
from kryograph.operators import operator
from kryograph.systems import system
from kryograph.systems.network import NetworkSystem, features_on_device
from kryograph.training.loop import nodes_of
from kryograph.training.optimizers import Optimizer, optimizer

DROPOUT, LR, DECAY = 0.9, 1e-4, 1e-3
"""Of every setting; they do not change what an epoch costs."""


@dataclass(frozen=True)
class Case:
    """A network on a data set: blocks or layers × width."""

    architecture: str
    dataset: str
    depth: int
    hidden: int

    def __str__(self) -> str:
        return f"{self.architecture} {self.dataset} {self.depth}×{self.hidden}"

    @property
    def system(self) -> NetworkSystem:
        """The system with that setting."""
        depth = "order" if self.architecture == "truncated-krylov" else "layers"
        changes = {depth: self.depth, "hidden": self.hidden, "dropout": DROPOUT}
        found = system(self.architecture, {**changes, "lr": LR, "weight_decay": DECAY})
        assert isinstance(found, NetworkSystem)
        return found

    @property
    def idiom(self) -> tuple[type[SignMLP] | type[GCNSnowball], Setting]:
        """The same for a user of PyG."""
        rest = {"hidden": self.hidden, "dropout": DROPOUT, "lr": LR, "weight_decay": DECAY}
        if self.architecture == "truncated-krylov":
            return SignMLP, Setting(order=self.depth, **rest)  # type: ignore[arg-type]
        f = "identity" if self.architecture == "linear-snowball" else "tanh"
        return GCNSnowball, Setting(layers=self.depth, activation=f, **rest)  # type: ignore[arg-type]


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
QUICK_CASES = tuple(
    Case(architecture, "cora", depth, hidden)
    for architecture, depth, hidden in (
        ("truncated-krylov", 18, 128),
        ("truncated-krylov", 20, 16),
        ("linear-snowball", 9, 128),
        ("snowball", 14, 64),
    )
)


class SameMasks(Masks):
    """The same entries for every form, whichever rows it asks for."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    def keep(self, h: Tensor, rate: float, layer: int, nodes: Tensor | None) -> Tensor:
        """Rows of a mask of all nodes that depends on the layer alone."""
        generator = torch.Generator().manual_seed(layer)
        every = torch.rand(self.n, h.shape[1], generator=generator) >= rate
        return every if nodes is None else every[nodes]


class Contestant:
    """A network, a way to compute it, and an optimiser."""

    def __init__(
        self, forward: Forward, task: Task, optimiser: Optimizer | torch.optim.Optimizer
    ) -> None:
        self.forward, self.optimiser = forward, optimiser
        self.targets = torch.from_numpy(task.labels.copy())[forward.nodes.training]

    def gradients(self) -> Tensor:
        """Of the loss, left in the parameters; the logits are returned."""
        self.forward.network.train()
        self.optimiser.zero_grad()
        logits = self.forward.training()
        nn.functional.cross_entropy(logits, self.targets).backward()  # type: ignore[no-untyped-call]
        return logits.detach()

    def epoch(self) -> Tensor:
        """A training step, and the scored nodes' logits."""
        self.gradients()
        self.optimiser.step()
        self.forward.network.eval()
        with torch.no_grad():
            return self.forward.scored()


def measure_epochs(
    *, quick: bool = False, on_case: Callable[[str], None] = lambda case: None
) -> dict[str, Any]:
    """All cases, or a few, and the geometric means of their speed-ups.

    Args:
        quick: Four small cases, in less time each.
        on_case: Told what is measured next.
    """
    rows = list(_rows(QUICK_CASES if quick else CASES, 1.0 if quick else 8.0, on_case))
    return {"settings": rows, "summary": epoch_summary(rows)}


def _rows(
    cases: tuple[Case, ...], budget: float, on_case: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    for case in cases:
        on_case(str(case))
        yield compare_epochs(case, budget)


def epoch_summary(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Geometric means for each architecture."""
    names = dict.fromkeys(row["architecture"] for row in rows)
    return {
        name: {
            field: geometric_mean(row[field] for row in rows if row["architecture"] == name)
            for field in ("speedup_literal", "speedup_pyg")
        }
        for name in names
    }


def compare_epochs(case: Case, budget: float) -> dict[str, Any]:
    """One case: times, ratios, differences, memory, and how near to the machine's limits."""
    task = load(case.dataset).task("public")
    nodes = nodes_of(task, "cpu")
    estimate = case.system.estimate(task)
    # Three networks at a time; those of torch's optimisers need a temporary copy.
    estimate.check(available_memory(), runs=4)
    x, L = features_on_device(task.graph, "cpu"), operator(task.graph)
    dense = x if isinstance(x, Tensor) else x.to_dense()
    masks = SameMasks(task.graph.n)

    def engine() -> Contestant:
        network = _network(case, task)
        forward = case.system.engine(network, x, L, nodes, Masks())
        ours = optimizer("rmsprop", network.parameters(), lr=LR, weight_decay=DECAY)
        return Contestant(forward, task, ours)

    def literal() -> Contestant:
        network = _network(case, task)
        torchs = torch.optim.RMSprop(network.parameters(), lr=LR, weight_decay=DECAY)
        return Contestant(WholeGraph(network, dense, L, nodes, Masks()), task, torchs)

    ours, engine_peak = peak_bytes(lambda: _started(engine()))
    theirs, literal_peak = peak_bytes(lambda: _started(literal()))
    idiom, pyg_peak = peak_bytes(lambda: _warm(case, task, nodes))
    difference = _difference(ours, theirs, masks)
    times = interleaved(
        {
            "engine": ours.epoch,
            "literal": theirs.epoch,
            "pyg": lambda: (idiom.step(), idiom.score()),  # type: ignore[func-returns-value]
        },
        budget=budget,
    )
    return {
        "setting": str(case),
        "architecture": case.architecture,
        **{f"{name}_seconds": times[name] for name in times},
        "speedup_literal": times["literal"] / times["engine"],
        "speedup_pyg": times["pyg"] / times["engine"],
        "logits_difference": difference[0],
        "gradient_difference": difference[1],
        "floor_fraction": _floor(estimate) / times["engine"],
        "predicted_seconds": estimate.epoch.seconds(measure_rates()),
        "engine_peak_bytes": engine_peak,
        "literal_peak_bytes": literal_peak,
        "pyg_peak_bytes": pyg_peak,
        "predicted_peak_bytes": round(estimate.memory),
    }


def _network(case: Case, task: Task) -> nn.Module:
    network = case.system.network(task.graph.features.shape[1], len(task.classes))
    network.reset_parameters(torch.Generator().manual_seed(0))  # type: ignore[operator]
    return network


def _started(contestant: Contestant) -> Contestant:
    for _ in range(2):
        contestant.epoch()
    return contestant


def _warm(case: Case, task: Task, nodes: Nodes) -> Idiom:
    make, setting = case.idiom
    idiom = make(
        task.graph, torch.from_numpy(task.labels.copy()), nodes.training, nodes.scored, setting
    )
    for _ in range(2):
        idiom.step()
        idiom.score()
    return idiom


def _difference(ours: Contestant, theirs: Contestant, masks: Masks) -> tuple[float, float]:
    """The largest, relative to the largest entry: of logits, trained and scored, and gradients."""
    theirs.forward.network.load_state_dict(ours.forward.network.state_dict())
    logits, gradients = [], []
    kept = [contestant.forward.masks for contestant in (ours, theirs)]
    for contestant in (ours, theirs):
        network, forward = contestant.forward.network, contestant.forward
        network.eval()
        with torch.no_grad():
            scored = forward.scored()
        forward.masks = masks
        logits.append(torch.cat([scored, contestant.gradients()]))
        gradients.append([p.grad for p in network.parameters() if p.grad is not None])
    ours.forward.masks, theirs.forward.masks = kept
    return (
        _relative(*logits),
        max(_relative(one, other) for one, other in zip(*gradients, strict=True)),
    )


def _relative(one: Tensor, other: Tensor) -> float:
    return ((one - other).abs().max() / other.abs().max()).item()


def _floor(estimate: Estimate) -> float:
    return estimate.epoch.floor(measure_rates())
