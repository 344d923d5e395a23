"""GGNN and MPNN: gated graph networks, whose nodes have a state that messages of neighbours change.

h^0 = X W_in, h_i^{t+1} = GRU(m_i^t, h_i^t), logits = h^T W_out, where X are the features, m_i is a
message of `kryograph.nn.gated` and T the number of steps; they share their weights. GGNN has
m = L MSG(h) for the operator L, MPNN m_i = Σ_j L_ij MLP(h_i, h_j), which depends on both ends of an
edge; edges have no features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from kryograph.engine.forward import Forward, WholeGraph, Workload
from kryograph.graph import Graph
from kryograph.nn.functional import NodeFeatures
from kryograph.nn.gated import STARTS, Gated
from kryograph.nn.network import Network
from kryograph.operators import Operator
from kryograph.systems.base import register
from kryograph.systems.network import DecaySettings, NetworkSystem
from kryograph.systems.settings import SearchRange, inherited, setting

CHOSEN = "chosen by validation on the public splits"


@dataclass(frozen=True)
class GatedSettings(DecaySettings):
    """Settings of all networks with a gated state."""

    layers: int = inherited(DecaySettings, "layers", 2, f"number T of steps; {CHOSEN}")
    hidden: int = inherited(DecaySettings, "hidden", 64, f"size of a node's state; {CHOSEN}")
    dropout: float = inherited(DecaySettings, "dropout", 0.8, f"rate, on the last state; {CHOSEN}")
    feature_dropout: float = setting(
        0.8, f"rate, on the features; {CHOSEN}", low=0, below=1, search=SearchRange(0, 0.99)
    )
    lr: float = inherited(DecaySettings, "lr", 0.02, f"learning rate; {CHOSEN}")
    weight_decay: float = inherited(DecaySettings, "weight_decay", 5e-3, f"L2; {CHOSEN}")
    decay_all: bool = inherited(
        *(DecaySettings, "decay_all", False),
        f"L2 on all parameters, not the first layer's alone (as GCN's); {CHOSEN}",
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
        neutral=1.0,
    )


class GatedForward(WholeGraph):
    """Form of a gated network on the nodes within T steps of those whose logits are needed.

    Nodes farther away change nothing. Some neighbours of the farthest nodes are left out, which
    makes their later states wrong. These are never used: only the first state of such a node is
    sent, and it comes from its features alone.
    """

    network: Gated

    def training(self) -> Tensor:
        return self._logits(*self._neighbourhoods[0])

    def scored(self) -> Tensor:
        return self._logits(*self._neighbourhoods[1])

    def _logits(self, x: NodeFeatures, diffusions: Sequence[Operator], nodes: Tensor) -> Tensor:
        return self.network.after_steps(x, diffusions, self.masks)[nodes]

    @cached_property
    def _neighbourhoods(self) -> list[tuple[NodeFeatures, Sequence[Operator], Tensor]]:
        return [self._neighbourhood(nodes) for nodes in (self.nodes.training, self.nodes.scored)]

    def _neighbourhood(self, nodes: Tensor) -> tuple[NodeFeatures, Sequence[Operator], Tensor]:
        """Features and operators of the neighbourhood of some nodes, and their indices in it."""
        diffusions = self.network.diffusions(self.L)
        reached = np.zeros(self.L.n, dtype=bool)
        reached[nodes.cpu().numpy()] = True
        for diffusion in reversed([*diffusions] * self.network.steps):
            reached[diffusion.matrix[np.flatnonzero(reached)].indices] = True
        near = np.flatnonzero(reached)
        rows = torch.from_numpy(near).to(nodes.device)
        x = self.x[rows] if isinstance(self.x, Tensor) else self.x.rows(rows)
        within = [
            Operator(d.name, sp.csr_array(d.matrix[near][:, near]), d.symmetric) for d in diffusions
        ]
        return x, within, torch.searchsorted(rows, nodes)


class GatedSystem(NetworkSystem[GatedSettings]):
    """Base of all systems with a gated network."""

    network_type: ClassVar[type[Gated]] = Gated

    def network(self, features: int, classes: int) -> Network:
        return self.network_type(*self.sizes(features, classes), **self.gated_options())

    def gated_options(self) -> dict[str, Any]:
        """Keyword arguments of the network."""
        return self.options("dropout", "feature_dropout", "start", "step_rate")

    def fast_forward(self, load: Workload) -> Forward | None:
        return GatedForward(load)


@dataclass(frozen=True)
class GGNNSettings(GatedSettings):
    """Settings of GGNN, both variants."""

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
    """Gated graph network with one type of edge."""

    settings: GGNNSettings

    def gated_options(self) -> dict[str, Any]:
        return super().gated_options() | self.options("message")

    def diffusion(self, graph: Graph) -> Operator:
        if self.settings.aggregate == "sum":
            return Operator("adjacency", graph.adjacency, symmetric=True)
        return super().diffusion(graph)


@dataclass(frozen=True)
class MPNNSettings(GatedSettings):
    """Settings of MPNN: those of gated networks."""

    hidden: int = inherited(GatedSettings, "hidden", 32)
    dropout: float = inherited(GatedSettings, "dropout", 0.5)


@register(
    "mpnn",
    summary="States changed by a gated recurrent unit, given a message for each pair of nodes.",
    paper="Gilmer et al.: Neural Message Passing for Quantum Chemistry. ICML 2017",
    equation="h^0 = X W_in, h_i^{t+1} = GRU(Σ_j L_ij MLP(h_i^t, h_j^t), h_i^t), logits = h^T W_out",
    settings=MPNNSettings,
)
class MPNNSystem(GatedSystem):
    """Gated network with messages for pairs of nodes."""

    def gated_options(self) -> dict[str, Any]:
        return super().gated_options() | {"message": "pair"}
