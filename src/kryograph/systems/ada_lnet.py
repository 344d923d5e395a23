"""AdaLNet: LNet with edge weights that are learned through Lanczos."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from kryograph.engine.forward import Forward, Nodes
from kryograph.graph import Graph
from kryograph.nn.ada_lanczos_net import AdaLanczosNet
from kryograph.nn.functional import Masks, Matrix
from kryograph.operators import Operator, operator
from kryograph.systems.base import register
from kryograph.systems.lnet import LANCZOS_NET, LanczosForward, LNetSettings, LNetSystem
from kryograph.systems.settings import setting


@dataclass(frozen=True)
class AdaLNetSettings(LNetSettings):
    """Settings of AdaLanczosNet; the authors' for citation graphs are not known, so LNet's.

    Validation accuracy on Cora (2 seeds) does not tell the filter's rates apart: 79.6 at 0.1, 79.7
    at 1. Of the kernel's rates it prefers the lower one where labels are few: 72.8 at 0.01 and 58.6
    at 1 if 1 % of the labels are known; 81.6 and 81.7 on the public split.
    """

    filter: str = setting("matrix", "what filters T", choices=("matrix", "none"))
    kernel: str = setting(
        "learned",
        "edge weights, learned or all alike; frozen it is LNet",
        choices=("learned", "frozen"),
    )
    kernel_hidden: int = setting(
        16, "width of the kernel's f; ours", low=1, below=100_000, search=(16, 32, 64, 128)
    )
    kernel_rate: float = setting(
        0.01,
        "how fast f learns, compared with the weights; ours, by validation",
        low=1e-6,
        below=1e3,
        search=(0.01, 0.1, 1.0),
        unless=1.0,
    )
    through_lanczos: bool = setting(
        False, "the kernel learns through Lanczos, too, as in the paper; unstable"
    )


class AdaLanczosForward(LanczosForward):
    """Lanczos runs once an epoch: between a score and the next step no weight changes."""

    basis: Any = None

    def training(self) -> Tensor:
        """All logits, of which the training nodes' are used; on the basis of the last score."""
        known, self.basis = self.basis, None
        prepared = (*self.prepared, known)
        logits: Tensor = self.network(self.x, self.L, masks=self.masks, prepared=prepared)
        return logits[self.nodes.training]

    def scored(self) -> Tensor:
        """All logits, of which the scored nodes' are used."""
        network = self.network
        assert isinstance(network, AdaLanczosNet)
        S, basis, scale = network.adapted(*self.prepared)
        # Where the kernel learns through Lanczos, a step needs a basis with gradients.
        self.basis = None if network.through_lanczos else basis
        return network.layers(self.x, S, basis, scale, None)[self.nodes.scored]


@register(
    "ada-lnet",
    summary="LNet on a graph whose edge weights are a learned kernel.",
    paper=LANCZOS_NET,
    equation="H_{l+1} = ReLU([S^s H_l, Q T̂_t Qᵀ H_l]_{s, t} W_l + b_l), S of k(x_i, x_j)",
    settings=AdaLNetSettings,
)
class AdaLNetSystem(LNetSystem):
    """Lanczos runs in every forward pass, on the weights of the moment."""

    def network(self, features: int, classes: int) -> nn.Module:
        """The network of the settings."""
        return AdaLanczosNet(*self.sizes(features, classes), **self.options())

    def options(self) -> dict[str, Any]:
        """LNet's, and the kernel's."""
        names = ("kernel", "kernel_hidden", "kernel_rate", "through_lanczos")
        return super().options() | {name: getattr(self.settings, name) for name in names}

    def diffusion(self, graph: Graph) -> Operator:
        """A + I: what is learned is normalised afterwards."""
        return operator(graph, "affinity")

    def engine(
        self, network: nn.Module, x: Matrix, L: Operator, nodes: Nodes, masks: Masks
    ) -> Forward:
        """With a basis that serves a score and a step."""
        return AdaLanczosForward(network, x, L, nodes, masks)
