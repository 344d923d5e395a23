"""Forward: how a run gets a network's logits. The literal way is to compute every node's.

Dropout on the features: a step sees others than the step before it, so nothing of them is kept.

Scores see them whole, and are computed as fast as ever.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from kryograph.engine.cost import (
    Cost,
    Estimate,
    gemm_cost,
    memory_pass_cost,
    resident,
    spmm_cost,
    temporary,
)
from kryograph.engine.tracing import trace_epoch
from kryograph.nn.functional import Masks, NodeFeatures
from kryograph.nn.network import Layered
from kryograph.operators import Operator


@dataclass(frozen=True)
class Nodes:
    """Whose logits a run asks for: those it trains on, then those it only scores."""

    training: Tensor
    validation: Tensor

    @property
    def scored(self) -> Tensor:
        """Training nodes, then validation nodes."""
        return torch.cat([self.training, self.validation])


class Forward(ABC):
    """A network on a graph, during one run.

    A run alternates: `training`, a step of the optimiser, `scored`, `training` … Nothing else may
    change the weights in between, so that a form may start `training` from what `scored` computed.

    Args:
        network: Its parameters are what is trained.
        x: Features of every node.
        L: The diffusion operator.
        nodes: What will be asked for.
        masks: What dropout keeps.
    """

    def __init__(
        self, network: nn.Module, x: NodeFeatures, L: Operator, nodes: Nodes, masks: Masks
    ) -> None:
        self.network, self.x, self.L, self.nodes, self.masks = network, x, L, nodes, masks

    @abstractmethod
    def training(self) -> Tensor:
        """Logits of the training nodes, with dropout and gradients."""

    @abstractmethod
    def scored(self) -> Tensor:
        """Logits of training and validation nodes, without dropout."""

    def everything(self) -> Tensor:
        """Logits of every node, without dropout."""
        logits: Tensor = self.network(self.x, self.L)
        return logits

    def penalty(self) -> Tensor | None:
        """What is added to the loss of a training step, if anything."""
        return None

    @abstractmethod
    def cost(self) -> Cost:
        """Cost of one epoch without the optimiser's step; the network may be without storage."""


class WholeGraph(Forward):
    """The formula as the paper writes it, on every node, every time."""

    def training(self) -> Tensor:
        """All logits, of which the training nodes' are used."""
        logits: Tensor = self.network(self.x, self.L, masks=self.masks)
        return logits[self.nodes.training]

    def scored(self) -> Tensor:
        """All logits, of which the scored nodes' are used."""
        return self.everything()[self.nodes.scored]

    def cost(self) -> Cost:
        return trace_epoch(self)


class InputDropped(WholeGraph):
    """Training on the whole graph, scores by another form of the same network.

    Args:
        scoring: That form.
    """

    def __init__(self, scoring: Forward) -> None:
        super().__init__(scoring.network, scoring.x, scoring.L, scoring.nodes, scoring.masks)
        self.scoring = scoring

    def scored(self) -> Tensor:
        """As the other form does it."""
        return self.scoring.scored()

    def everything(self) -> Tensor:
        """As the other form does it."""
        return self.scoring.everything()

    def cost(self) -> Cost:
        """Scoring, and of a step what meets features: X W and L (X W) on every node, and back.

        Weights with k F entries stand for k columns of W. What hidden layers add is left out.
        """
        n, features = self.x.shape
        columns = sum(weight.numel() // features for weight in self.network.parameters())
        with_x = (
            gemm_cost(n, features, columns)
            if isinstance(self.x, Tensor)
            else spmm_cost(self.x.nnz, n, columns)
        )
        step = with_x + spmm_cost(self.L.matrix.nnz, n, columns)
        return self.scoring.cost() + step * 2 + temporary(3 * n * columns)


def dropping_features(form: Forward) -> Forward:
    """A form, or what stands for it if its network drops features."""
    assert isinstance(form.network, Layered)
    return InputDropped(form) if form.network.input_dropout > 0 else form


def estimate(forward: Forward, moments: int) -> Estimate:
    """What a run costs.

    Args:
        forward: How the network will be computed; its weights need not have storage yet.
        moments: How many numbers per weight the optimiser remembers.
    """
    weights = sum(parameter.numel() for parameter in forward.network.parameters())
    # The optimiser reads weights, gradients and moments and writes all but the gradients. Kept are
    # these, and the best epoch's weights.
    step = memory_pass_cost((3 + 2 * moments) * weights) + resident((3 + moments) * weights)
    data = _numbers(forward.x) + 4 * forward.L.matrix.nnz
    return Estimate(weights, forward.cost() + step + resident(2 * data))


def _numbers(x: NodeFeatures) -> int:
    return x.numel() if isinstance(x, Tensor) else 2 * x.nnz
