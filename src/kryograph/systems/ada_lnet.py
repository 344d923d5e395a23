"""AdaLNet: LNet with edge weights that are learned through Lanczos."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from kryograph.engine.forward import Forward, Nodes
from kryograph.graph import Graph
from kryograph.nn.ada_lanczos_net import AdaLanczosNet
from kryograph.nn.functional import Masks, Matrix
from kryograph.operators import Operator, operator
from kryograph.systems.base import register
from kryograph.systems.lnet import LANCZOS_NET, LanczosForward, LNetSettings
from kryograph.systems.network import NetworkSystem
from kryograph.systems.settings import setting


@dataclass(frozen=True)
class AdaLNetSettings(LNetSettings):
    """Settings of AdaLanczosNet; the authors' for citation graphs are not known, so LNet's."""

    filter: str = setting("matrix", "what filters T", choices=("matrix", "none"))
    kernel: str = setting(
        "learned",
        "edge weights, learned or all alike; frozen it is LNet",
        choices=("learned", "frozen"),
    )
    kernel_hidden: int = setting(
        16, "width of the kernel's f; ours", low=1, below=100_000, search=(16, 32, 64, 128)
    )
    through_lanczos: bool = setting(
        False, "the kernel learns through Lanczos, too, as in the paper; unstable"
    )


@register(
    "ada-lnet",
    summary="LNet on a graph whose edge weights are a learned kernel.",
    paper=LANCZOS_NET,
    equation="H_{l+1} = ReLU([S^s H_l, Q T̂_t Qᵀ H_l]_{s, t} W_l + b_l), S of k(x_i, x_j)",
    settings=AdaLNetSettings,
)
class AdaLNetSystem(NetworkSystem):
    """Lanczos runs in every forward pass, on the weights of the moment."""

    def network(self, features: int, classes: int) -> nn.Module:
        """The network of the settings."""
        s = self.settings
        return AdaLanczosNet(
            features,
            s.hidden,
            classes,
            s.layers,
            steps=s.steps,
            filter=s.filter,
            filter_hidden=s.filter_hidden,
            dropout=s.dropout,
            drop_features=s.drop_features,
            operator=self.operator,
            kernel=s.kernel,
            kernel_hidden=s.kernel_hidden,
            through_lanczos=s.through_lanczos,
        )

    def diffusion(self, graph: Graph) -> Operator:
        """A + I: what is learned is normalised afterwards."""
        return operator(graph, "affinity")

    def forward(
        self, network: nn.Module, x: Matrix, L: Operator, nodes: Nodes, masks: Masks
    ) -> Forward:
        """With edges and a start vector that are made once."""
        return LanczosForward(network, x, L, nodes, masks)
