"""Idioms: the paper's networks as a user of PyTorch Geometric would write them.

With its own parts: dense features, `SIGN` and an MLP for truncated Krylov, `GCNConv` on
concatenated features for Snowball, torch's dropout and optimisers. Given the same weights, the
logits are those of `kryograph.nn` with the operator `sym`; the tests show it.

GCN and GAT against the script that PyTorch Geometric's examples have for them.

The same networks with the same settings: its layers on dense features, torch's dropout and Adam.
An epoch is a training step and a scoring of every node; both take turns in one process.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import geometric_mean
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv, GCNConv
from torch_geometric.transforms import SIGN, AddSelfLoops, Compose

from kryograph.bench.benchmark import interleaved
from kryograph.data import load
from kryograph.graph import Graph, Task
from kryograph.nn.functional import Masks, activation
from kryograph.systems import system
from kryograph.systems.network import NetworkSystem, features_on_device
from kryograph.training.loop import nodes_of
from kryograph.training.optimizers import optimizer

TORCH_OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "rmsprop": torch.optim.RMSprop,
}


@dataclass(frozen=True)
class Setting:
    """What a network is, and how it is trained.

    Args:
        hidden: Width of every hidden layer.
        layers: Number of hidden layers.
        order: Number of blocks, X itself included; truncated Krylov only.
        activation: Of hidden layers.
        dropout: Rate, on the output of hidden layers.
        lr: Learning rate.
        weight_decay: L2 on all parameters.
        optimizer: "rmsprop" or "adam".
    """

    hidden: int
    layers: int = 1
    order: int = 1
    activation: str = "tanh"
    dropout: float = 0.0
    lr: float = 0.01
    weight_decay: float = 0.0
    optimizer: str = "rmsprop"


class Idiom(ABC):
    """A network in training: `step` and `score` are what an epoch consists of.

    Args:
        model: The network.
        targets: Classes of the training nodes, in the order of `training_logits`.
        scored: The nodes whose logits are asked for.
        setting: How to train.
    """

    def __init__(self, model: nn.Module, targets: Tensor, scored: Tensor, setting: Setting) -> None:
        self.model, self.targets, self.scored = model, targets, scored
        self.optimizer = TORCH_OPTIMIZERS[setting.optimizer](
            model.parameters(),
            lr=setting.lr,  # type: ignore[call-arg]
            weight_decay=setting.weight_decay,
        )

    @abstractmethod
    def training_logits(self) -> Tensor:
        """Logits of the training nodes."""

    @abstractmethod
    def all_logits(self) -> Tensor:
        """Logits of every node."""

    def step(self) -> None:
        """One training step."""
        self.model.train()
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.training_logits(), self.targets)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()

    def score(self) -> Tensor:
        """Logits of the scored nodes, without dropout."""
        self.model.eval()
        with torch.no_grad():
            return self.all_logits()[self.scored]


class MLP(nn.Module):
    """A linear layer, an activation, dropout, and a linear layer."""

    def __init__(self, in_channels: int, out_channels: int, setting: Setting) -> None:
        super().__init__()
        self.first = nn.Linear(in_channels, setting.hidden)
        self.last = nn.Linear(setting.hidden, out_channels)
        self.activation, self.dropout = activation(setting.activation), setting.dropout

    def forward(self, x: Tensor) -> Tensor:
        """Logits of each row."""
        h = self.activation(self.first(x))
        logits: Tensor = self.last(F.dropout(h, self.dropout, self.training))
        return logits


class SignMLP(Idiom):
    """Truncated Krylov with one hidden layer: blocks by `SIGN`, put side by side, and an MLP.

    A step takes the training nodes' rows, a score those of every node, as PyTorch Geometric's
    examples do.

    Args:
        graph: Edges and features; the features are made dense.
        labels: The class of each node.
        training: The nodes to train on.
        scored: The nodes whose logits `score` gives.
        setting: The network, and how to train it.
    """

    model: MLP

    def __init__(
        self, graph: Graph, labels: Tensor, training: Tensor, scored: Tensor, setting: Setting
    ) -> None:
        if setting.layers != 1:
            raise ValueError(f"SIGN is a network of one hidden layer, not {setting.layers}")
        self.x = sign_blocks(graph, setting.order)
        self.training_x = self.x[training]
        model = MLP(self.x.shape[1], int(labels.max()) + 1, setting)
        super().__init__(model, labels[training], scored, setting)

    def training_logits(self) -> Tensor:
        """Logits of the training nodes, from their rows alone."""
        logits: Tensor = self.model(self.training_x)
        return logits

    def all_logits(self) -> Tensor:
        """Logits of every node."""
        logits: Tensor = self.model(self.x)
        return logits


def sign_blocks(graph: Graph, order: int) -> Tensor:
    """[X, LX, …, L^{order-1} X] by `SIGN`, dense.

    `SIGN` normalises what it is given, D^{-1/2} A D^{-1/2}, and adds no self-loops to it; with
    `AddSelfLoops` before it, L is the paper's operator.
    """
    with warnings.catch_warnings():
        # SIGN makes a sparse tensor: torch announces that these are in beta and not checked.
        warnings.filterwarnings("ignore", message="Sparse (CS[CR] tensor|invariant)")
        data = Compose([AddSelfLoops(), SIGN(order - 1)])(graph.to_pyg())
    return torch.cat([data.x, *(data[f"x{k}"] for k in range(1, order))], dim=1)


class SnowballOfGCN(nn.Module):
    """`GCNConv` layers, each on the features and the outputs of all layers before it."""

    def __init__(self, in_channels: int, out_channels: int, setting: Setting) -> None:
        super().__init__()
        widths = [in_channels + k * setting.hidden for k in range(setting.layers + 1)]
        outputs = [setting.hidden] * setting.layers + [out_channels]
        self.convs = nn.ModuleList(
            GCNConv(width, out, cached=True) for width, out in zip(widths, outputs, strict=True)
        )
        self.activation, self.dropout = activation(setting.activation), setting.dropout

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """Logits of every node."""
        *hidden, last = self.convs
        blocks = [x]
        for conv in hidden:
            h = self.activation(conv(torch.cat(blocks, dim=1), edge_index, edge_weight))
            blocks.append(F.dropout(h, self.dropout, self.training))
        logits: Tensor = last(torch.cat(blocks, dim=1), edge_index, edge_weight)
        return logits


class GCNSnowball(Idiom):
    """Snowball, or linear Snowball, of `GCNConv` layers; steps and scores compute every node.

    Args:
        graph: Edges and features; the features are made dense.
        labels: The class of each node.
        training: The nodes to train on.
        scored: The nodes whose logits `score` gives.
        setting: The network, and how to train it.
    """

    model: SnowballOfGCN

    def __init__(
        self, graph: Graph, labels: Tensor, training: Tensor, scored: Tensor, setting: Setting
    ) -> None:
        self.data = graph.to_pyg()
        self.data.train_mask = torch.zeros(graph.n, dtype=torch.bool)
        self.data.train_mask[training] = True
        model = SnowballOfGCN(self.data.x.shape[1], int(labels.max()) + 1, setting)
        super().__init__(model, labels[self.data.train_mask], scored, setting)

    def training_logits(self) -> Tensor:
        """Logits of the training nodes, in the order of their numbers."""
        return self.all_logits()[self.data.train_mask]

    def all_logits(self) -> Tensor:
        """Logits of every node."""
        data = self.data
        logits: Tensor = self.model(data.x, data.edge_index, data.edge_weight)
        return logits


LR, DECAY = 0.005, 5e-4
BASELINE_DATASETS = ("cora", "citeseer", "pubmed")


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


def measure_baselines(
    *, quick: bool = False, on_case: Callable[[str], None] = lambda case: None
) -> dict[str, Any]:
    """Both systems on the three data sets, or on Cora."""
    rows = []
    for name in SCRIPTS:
        for dataset in BASELINE_DATASETS[:1] if quick else BASELINE_DATASETS:
            on_case(f"{name} {dataset}")
            rows.append(compare_scripts(name, dataset, budget=2.0 if quick else 15.0))
    return {"epochs": rows, "summary": geometric_mean(row["speedup"] for row in rows)}


def compare_scripts(name: str, dataset: str, budget: float) -> dict[str, Any]:
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
