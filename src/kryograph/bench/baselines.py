"""GCN and GAT against the script that PyTorch Geometric's examples have for them.

The same networks with the same settings: its layers on dense features, torch's dropout and Adam.
An epoch is a training step and a scoring of every node; both take turns in one process.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import geometric_mean
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv, GCNConv

from kryograph.bench.timing import interleaved
from kryograph.data import load
from kryograph.graph import Task
from kryograph.nn.functional import Masks
from kryograph.systems import system
from kryograph.systems.network import NetworkSystem, features_on_device
from kryograph.training.loop import nodes_of
from kryograph.training.optimizers import optimizer

LR, DECAY = 0.005, 5e-4
DATASETS = ("cora", "citeseer", "pubmed")


class Script(nn.Module):
    """Two layers, dropout on the input of each, as in the examples.

    Args:
        first: The layer from features to hidden units.
        second: The layer from these to classes.
        activation: Between them.
        dropout: Rate.
    """

    def __init__(
        self,
        first: nn.Module,
        second: nn.Module,
        activation: Callable[[Tensor], Tensor],
        dropout: float,
    ) -> None:
        super().__init__()
        self.first, self.second = first, second
        self.activation, self.dropout = activation, dropout

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of every node."""
        h = self.first(F.dropout(x, self.dropout, self.training), edge_index)
        h = F.dropout(self.activation(h), self.dropout, self.training)
        logits: Tensor = self.second(h, edge_index)
        return logits


def gcn_script(features: int, classes: int) -> Script:
    """Kipf and Welling's, 16 units."""
    conv = partial(GCNConv, cached=True)
    return Script(conv(features, 16), conv(16, classes), F.relu, 0.5)


def gat_script(features: int, classes: int) -> Script:
    """Veličković's, 8 heads of 8 units; without the dropout on W h, which PyG does not have."""
    conv = partial(GATConv, dropout=0.6)
    last = conv(64, classes, heads=1, concat=False)
    return Script(conv(features, 8, heads=8), last, F.elu, 0.6)


SCRIPTS: dict[str, tuple[Callable[[int, int], Script], dict[str, object]]] = {
    "gcn": (gcn_script, {}),
    "gat": (gat_script, {"drop_projected": False}),
}


def run(
    *, quick: bool = False, on_case: Callable[[str], None] = lambda case: None
) -> dict[str, Any]:
    """Both systems on the three data sets, or on Cora."""
    rows = []
    for name in SCRIPTS:
        for dataset in DATASETS[:1] if quick else DATASETS:
            on_case(f"{name} {dataset}")
            rows.append(compare(name, dataset, budget=2.0 if quick else 15.0))
    return {"epochs": rows, "summary": geometric_mean(row["speedup"] for row in rows)}


def compare(name: str, dataset: str, budget: float) -> dict[str, Any]:
    """One epoch of each."""
    task = load(dataset).task("public")
    script, changes = SCRIPTS[name]
    ours = _ours(name, changes, task)
    theirs = _theirs(script(task.graph.features.shape[1], len(task.classes)), task)
    times = interleaved({"kryograph": ours, "script": theirs}, budget=budget)
    return {
        "system": name,
        "dataset": dataset,
        **{f"{which}_seconds": taken for which, taken in times.items()},
        "speedup": times["script"] / times["kryograph"],
    }


def _ours(name: str, changes: dict[str, object], task: Task) -> Callable[[], object]:
    made = system(name, {**changes, "lr": LR, "weight_decay": DECAY})
    assert isinstance(made, NetworkSystem)
    x, L = features_on_device(task.graph, "cpu"), made.diffusion(task.graph)
    network = made.network(x.shape[1], len(task.classes))
    forward = made.engine(network, x, L, nodes_of(task, "cpu"), Masks())
    adam = optimizer("adam", network.parameters(), lr=LR, weight_decay=DECAY)
    targets = torch.from_numpy(task.labels[task.split.train])
    return partial(_epoch, network, forward.training, forward.scored, adam, targets)


def _theirs(network: Script, task: Task) -> Callable[[], object]:
    data = task.graph.to_pyg()
    adam = torch.optim.Adam(network.parameters(), lr=LR, weight_decay=DECAY)
    train = torch.from_numpy(task.split.train.copy())
    targets = torch.from_numpy(task.labels[task.split.train])

    def everything() -> Tensor:
        logits: Tensor = network(data.x, data.edge_index)
        return logits

    return partial(_epoch, network, lambda: everything()[train], everything, adam, targets)


def _epoch(
    network: nn.Module,
    training: Callable[[], Tensor],
    scored: Callable[[], Tensor],
    adam: Any,
    targets: Tensor,
) -> None:
    network.train()
    adam.zero_grad()
    F.cross_entropy(training(), targets).backward()  # type: ignore[no-untyped-call]
    adam.step()
    network.eval()
    with torch.no_grad():
        scored()
