"""Forward: how the logits of one run are computed, and the workload that it computes with.

`WholeGraph` computes the logits of every node in every step, as the method is published. Other
forms give the same numbers and do less work (`krylov_forward`, `snowball_forward`, and forms of
single systems in their own files). `InputDropped` is the form of networks that drop features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from kryograph.engine.cost import (
    LOOP_LAUNCHES,
    RUN_BYTES,
    Cost,
    Estimate,
    Kernel,
    memory_pass_cost,
    resident,
    spmm_cost,
    temporary,
)
from kryograph.engine.hops import feature_product_cost
from kryograph.engine.tracing import trace_epoch
from kryograph.nn.functional import Masks, NodeFeatures
from kryograph.nn.network import Network
from kryograph.operators import Operator


@dataclass(frozen=True)
class Nodes:
    """Indices of the training nodes and of the validation nodes."""

    training: Tensor
    validation: Tensor

    @property
    def scored(self) -> Tensor:
        """Indices of the training nodes, followed by those of the validation nodes."""
        return torch.cat([self.training, self.validation])


@dataclass(frozen=True, eq=False)
class Workload:
    """Everything that one run computes with: features of every node, operator, dropout masks.

    The network may be on torch's "meta" device as long as only the cost is computed, and the nodes
    may be empty if only `Forward.everything` is called.
    """

    network: Network
    x: NodeFeatures
    L: Operator
    nodes: Nodes
    masks: Masks


class Forward(ABC):
    """Computes the logits of one run.

    A run alternates: `training`, a step of the optimiser, `scored`, `training`, … Nothing else may
    change the weights in between, so a form may start `training` from what `scored` computed.
    """

    def __init__(self, load: Workload) -> None:
        self.load = load
        self.network, self.x, self.L = load.network, load.x, load.L
        self.nodes, self.masks = load.nodes, load.masks

    @abstractmethod
    def training(self) -> Tensor:
        """Logits of the training nodes, with dropout and gradients."""

    @abstractmethod
    def scored(self) -> Tensor:
        """Logits of the training nodes, then of the validation nodes, without dropout."""

    def everything(self) -> Tensor:
        """Logits of every node, without dropout."""
        logits: Tensor = self.network(self.x, self.L)
        return logits

    def penalty(self) -> Tensor | None:
        """Term that a training step adds to the cross entropy; None if there is none."""
        return None

    @abstractmethod
    def cost(self) -> Cost | None:
        """Cost of one epoch without the step of the optimiser.

        It is None if it is not known, never an empty `Cost`, which would be an estimate of zero.
        """


class WholeGraph(Forward):
    """The formula as it is published, on every node in every step."""

    def training(self) -> Tensor:
        logits: Tensor = self.network(self.x, self.L, masks=self.masks)
        return logits[self.nodes.training]

    def scored(self) -> Tensor:
        return self.everything()[self.nodes.scored]

    def cost(self) -> Cost | None:
        return trace_epoch(self)


class InputDropped(WholeGraph):
    """Form of a network with dropout on its features: training on the whole graph.

    Each training step has other features than the step before, so nothing computed from them can
    be kept. Scores use the features without dropout and come from `scoring`, the faster form of the
    same workload.
    """

    def __init__(self, scoring: Forward) -> None:
        super().__init__(scoring.load)
        self.scoring = scoring

    def scored(self) -> Tensor:
        return self.scoring.scored()

    def everything(self) -> Tensor:
        return self.scoring.everything()

    def cost(self) -> Cost | None:
        """Cost of scoring, and of the part of a training step that depends on the features.

        That part is X W and L (X W) on every node, forwards and backwards. A weight with k F
        entries counts as k columns of W. Products between hidden layers are left out.
        """
        scoring = self.scoring.cost()
        if scoring is None:
            return None
        n, features = self.x.shape
        columns = sum(weight.numel() // features for weight in self.network.parameters())
        step = feature_product_cost(self.x, n, columns) + spmm_cost(self.L.matrix.nnz, n, columns)
        return scoring + step * 2 + temporary(3 * n * columns)


def estimate(forward: Forward, moments: int) -> Estimate | None:
    """Time and memory of a run; None if the cost of an epoch is not known.

    The optimiser keeps `moments` numbers for each weight. The weights need no storage yet.
    """
    epoch = forward.cost()
    if epoch is None:
        return None
    weights = sum(parameter.numel() for parameter in forward.network.parameters())
    # The optimiser reads weights, gradients and moments and writes all but the gradients. These
    # and the weights of the best epoch stay in memory.
    step = memory_pass_cost((3 + 2 * moments) * weights) + resident((3 + moments) * weights)
    loop = Cost((Kernel(0.0, 0.0, LOOP_LAUNCHES),), kept=RUN_BYTES)
    features = forward.x.numel() if isinstance(forward.x, Tensor) else 2 * forward.x.nnz
    data = features + 4 * forward.L.matrix.nnz
    return Estimate(weights, epoch + loop + step + resident(2 * data))
