"""GGNN: nodes with a gated state that neighbours change (Li, Tarlow, Brockschmidt, Zemel)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from kryograph.engine.forward import Forward, Nodes, WholeGraph
from kryograph.graph import Graph
from kryograph.nn.functional import Masks, NodeFeatures
from kryograph.nn.gated import STARTS, Gated
from kryograph.operators import Operator
from kryograph.systems.base import register
from kryograph.systems.network import NetworkSettings, NetworkSystem
from kryograph.systems.settings import SearchRange, inherited, setting

CHOSEN = "chosen by validation on the public splits"


@dataclass(frozen=True)
class GatedSettings(NetworkSettings):
    """What all networks with a gated state have."""

    layers: int = inherited(NetworkSettings, "layers", 2, f"number T of steps; {CHOSEN}")
    hidden: int = inherited(NetworkSettings, "hidden", 64, f"size of a node's state; {CHOSEN}")
    dropout: float = inherited(
        NetworkSettings, "dropout", 0.8, f"rate, on the last state; {CHOSEN}"
    )
    feature_dropout: float = setting(
        0.8, f"rate, on the features; {CHOSEN}", low=0, below=1, search=SearchRange(0, 0.99)
    )
    lr: float = inherited(NetworkSettings, "lr", 0.02, f"learning rate; {CHOSEN}")
    weight_decay: float = inherited(NetworkSettings, "weight_decay", 5e-3, f"L2; {CHOSEN}")
    optimizer: str = inherited(NetworkSettings, "optimizer", "adam")
    decay_all: bool = setting(
        False, f"L2 on all parameters, not the first layer's alone (as GCN's); {CHOSEN}"
    )
    start: str = setting(
        "diffusion",
        "where the weights of steps start: 'random' (the original), or such that a step is a "
        f"'diffusion' of the states, which mixes nothing; {CHOSEN}",
        choices=STARTS,
        search=STARTS,
    )
    step_rate: float = setting(
        0.01,
        "how fast the weights of steps learn, compared with the others (1 in the original); "
        f"{CHOSEN}",
        low=1e-6,
        below=1e3,
        search=(1.0, 0.1, 0.01),
        unless=1.0,
    )


class GatedForward(WholeGraph):
    """On the nodes that those asked for hear of, in as many steps as there are.

    Who is farther away changes nothing. The farthest miss some of what they receive, but only their
    first state, which comes from their features alone, is ever heard.
    """

    network: Gated

    def training(self) -> Tensor:
        """Of the training nodes' neighbourhood."""
        x, parts, asked = self._around_training
        return self.network.logits(x, parts, self.masks)[asked]

    def scored(self) -> Tensor:
        """Of the scored nodes' neighbourhood."""
        x, parts, asked = self._around_scored
        return self.network.logits(x, parts)[asked]

    @cached_property
    def _around_training(self) -> tuple[NodeFeatures, Sequence[Operator], Tensor]:
        return self._around(self.nodes.training)

    @cached_property
    def _around_scored(self) -> tuple[NodeFeatures, Sequence[Operator], Tensor]:
        return self._around(self.nodes.scored)

    def _around(self, asked: Tensor) -> tuple[NodeFeatures, Sequence[Operator], Tensor]:
        """Features and operators of the neighbourhood, and where in it the nodes asked for are."""
        parts = [part for part in self.network.parts(self.L) if isinstance(part, Operator)]
        reached = np.zeros(self.L.n, dtype=bool)
        reached[asked.cpu().numpy()] = True
        for part in reversed(parts * self.network.steps):
            reached[part.matrix[np.flatnonzero(reached)].indices] = True
        near = np.flatnonzero(reached)
        nodes = torch.from_numpy(near).to(asked.device)
        x = self.x[nodes] if isinstance(self.x, Tensor) else self.x.rows(nodes)
        within = [
            Operator(part.name, sp.csr_array(part.matrix[near][:, near]), part.symmetric)
            for part in parts
        ]
        return x, within, torch.searchsorted(nodes, asked)


class GatedSystem(NetworkSystem):
    """What all systems with a gated network share."""

    def options(self) -> dict[str, Any]:
        """How the network is made, apart from its size and its messages."""
        names = ("dropout", "feature_dropout", "start", "step_rate")
        return {name: getattr(self.settings, name) for name in names}

    def forward(
        self, network: nn.Module, x: NodeFeatures, L: Operator, nodes: Nodes, masks: Masks
    ) -> Forward:
        """On the nodes that a step needs."""
        return GatedForward(network, x, L, nodes, masks)

    def decayed(self, network: nn.Module) -> Collection[nn.Parameter] | None:
        """The first layer's weights, or all."""
        assert isinstance(network, Gated)
        return None if self.settings.decay_all else [network.inward.weight]


@dataclass(frozen=True)
class GGNNSettings(GatedSettings):
    """Settings of GGNN."""

    message: str = setting(
        "linear",
        "'linear' (the original) or 'mlp' (Liao et al. 2019)",
        choices=("linear", "mlp"),
        search=("linear", "mlp"),
    )
    aggregate: str = setting(
        "operator",
        "'operator': by L, with 'rw' a mean incl. the node itself (Liao et al. 2019); "
        "'sum': over neighbours (the original)",
        choices=("operator", "sum"),
        search=("operator", "sum"),
    )


@register(
    "ggnn",
    summary="States changed by a gated recurrent unit, given what the neighbours send.",
    paper="Li, Tarlow, Brockschmidt, Zemel: Gated Graph Sequence Neural Networks. ICLR 2016",
    equation="h^0 = X W_in, h^{t+1} = GRU(L MSG(h^t), h^t), logits = h^T W_out",
    settings=GGNNSettings,
)
class GGNNSystem(GatedSystem):
    """One type of edge, T steps with the same weights."""

    def network(self, features: int, classes: int) -> nn.Module:
        """The network of the settings."""
        s = self.settings
        size = (features, s.hidden, classes, s.layers)
        return Gated(*size, message=s.message, **self.options())

    def diffusion(self, graph: Graph) -> Operator:
        """L, or the adjacency itself."""
        if self.settings.aggregate == "sum":
            return Operator("adjacency", graph.adjacency, symmetric=True)
        return super().diffusion(graph)
