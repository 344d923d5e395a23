"""Forward: how a run gets a network's logits. The literal way is to compute every node's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from kryograph.engine.cost import Cost
from kryograph.nn.functional import Masks, Matrix
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
        self, network: nn.Module, x: Matrix, L: Operator, nodes: Nodes, masks: Masks
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
        """What one epoch costs, the optimiser's step left out."""


class Literal(Forward):
    """The formula as the paper writes it, on every node, every time."""

    def training(self) -> Tensor:
        """All logits, of which the training nodes' are used."""
        logits: Tensor = self.network(self.x, self.L, masks=self.masks)
        return logits[self.nodes.training]

    def scored(self) -> Tensor:
        """All logits, of which the scored nodes' are used."""
        return self.everything()[self.nodes.scored]

    def cost(self) -> Cost:
        """Not known: it depends on the network."""
        return Cost()
