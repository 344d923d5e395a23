"""DCNN: diffused features, each with a weight of its own; or LanczosNet's layers of powers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from torch import Tensor, nn

from kryograph.engine.cost import Cost
from kryograph.engine.forward import Forward, Literal, Nodes
from kryograph.errors import UsageError
from kryograph.nn import krylov_blocks
from kryograph.nn.dcnn import DCNN, ScalesConv
from kryograph.nn.functional import Masks, Matrix
from kryograph.nn.stack import Stack
from kryograph.operators import Operator
from kryograph.systems.base import register
from kryograph.systems.network import NetworkSettings, NetworkSystem
from kryograph.systems.settings import inherited, setting


def powers(text: str) -> tuple[int, ...]:
    """The powers that a text such as "1,2,5" names.

    >>> powers("1,2,5")
    (1, 2, 5)
    """
    wrong = UsageError(f"Scales are increasing powers such as '1,2,5', not {text!r}.")
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise wrong from None
    if found[0] < 0 or found[-1] >= 1000 or sorted(set(found)) != list(found):
        raise wrong
    return found


@dataclass(frozen=True)
class DCNNSettings(NetworkSettings):
    """Settings of DCNN, both variants."""

    hidden: int = inherited(
        NetworkSettings, "hidden", 64, "width of each hidden layer; the original has none"
    )
    layers: int = inherited(
        NetworkSettings, "layers", 1, "number of hidden layers; the original has none"
    )
    dropout: float = inherited(
        NetworkSettings, "dropout", 0.5, "rate, on what linear maps see; none in the original"
    )
    lr: float = inherited(NetworkSettings, "lr", 0.01)
    weight_decay: float = inherited(NetworkSettings, "weight_decay", 5e-4)
    optimizer: str = inherited(NetworkSettings, "optimizer", "adam")
    variant: str = setting(
        "lanczosnet",
        "the original, or that of LanczosNet's comparison (Liao and others 2019; stronger under "
        "validation)",
        choices=("original", "lanczosnet"),
    )
    hops: int = setting(
        3, "H of the original, its default", low=0, below=1000, search=(1, 2, 3, 4, 5)
    )
    scales: str = setting(
        "1,2,5,7",
        "powers of LanczosNet's variant: LanczosNet's own short scales on citation graphs",
        search=("1,2", "1,2,5,7", "1,2,5,7,10"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        powers(self.scales)


@register(
    "dcnn",
    summary="Powers of the operator on the features, each with weights of its own.",
    paper="Atwood, Towsley: Diffusion-Convolutional Neural Networks. NeurIPS 2016",
    equation="original: logits = [tanh(w_j ∘ L^j X)]_j V + b; lanczosnet: "
    "H_{l+1} = ReLU(Σ_s L^s H_l W_{l,s} + b_l)",
    settings=DCNNSettings,
)
class DCNNSystem(NetworkSystem):
    """L has self-loops, as everywhere here."""

    def network(self, features: int, classes: int) -> nn.Module:
        """The network of the settings."""
        s = self.settings
        if s.variant == "original":
            return DCNN(features, classes, s.hops, dropout=s.dropout)
        conv = partial(ScalesConv, scales=powers(s.scales))
        return Stack(conv, features, s.hidden, classes, s.layers, dropout=s.dropout)

    def engine(
        self, network: nn.Module, x: Matrix, L: Operator, nodes: Nodes, masks: Masks
    ) -> Forward:
        """The original on the rows that a step needs: nothing is diffused after the weights."""
        form = KeptRows if isinstance(network, DCNN) else Literal
        return form(network, x, L, nodes, masks)


class KeptRows(Forward):
    """The original DCNN, whose diffused features do not change: their rows are kept."""

    def __init__(
        self, network: nn.Module, x: Matrix, L: Operator, nodes: Nodes, masks: Masks
    ) -> None:
        super().__init__(network, x, L, nodes, masks)
        self.rows: list[Tensor] | None = None

    def _logits(self, first: int, masks: Masks) -> Tensor:
        """Those of the first of the scored nodes."""
        assert isinstance(self.network, DCNN)
        scored = self.nodes.scored
        if self.rows is None:
            # Made by the first step: an estimate needs no features.
            blocks = krylov_blocks(self.L, self.x, len(self.network.scale))
            self.rows = [block[scored] for block in blocks]
        rows = (block[:first] for block in self.rows)
        return self.network.of_blocks(rows, masks, scored[:first])

    def training(self) -> Tensor:
        """Of the training nodes, which come first."""
        return self._logits(self.nodes.training.numel(), self.masks)

    def scored(self) -> Tensor:
        """Of training and validation nodes."""
        return self._logits(self.nodes.scored.numel(), self.masks)

    def cost(self) -> Cost:
        """Not counted: a few hundred rows."""
        return Cost()
