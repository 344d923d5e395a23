"""NetworkSystem: what every trained network shares, from a task to a fit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from kryograph.engine.cost import Estimate
from kryograph.engine.forward import Forward, Nodes, WholeGraph, estimate
from kryograph.engine.machine import available_memory, check_bfloat16
from kryograph.graph import Graph, Task
from kryograph.nn.functional import Masks, NodeFeatures
from kryograph.operators import Operator, operator
from kryograph.sparse import SparseMatrix
from kryograph.systems.base import Fit, Probabilities, System, Weights
from kryograph.systems.settings import SearchRange, Settings, setting
from kryograph.training.loop import Conditions, Diverged, Epoch, nodes_of, train
from kryograph.training.optimizers import MOMENTS, OPTIMIZERS, optimizer


@dataclass(frozen=True)
class NetworkSettings(Settings):
    """Settings of every network; docs/results.md says how the defaults were found."""

    hidden: int = setting(
        64,
        "width of each hidden layer",
        low=1,
        below=100_000,
        search=SearchRange(16, 1024, log=True),
    )
    layers: int = setting(1, "number of hidden layers", low=1, below=10_000, search=(1, 2, 3, 5, 8))
    dropout: float = setting(
        0.95, "rate, on hidden outputs", low=0, below=1, search=SearchRange(0, 0.99)
    )
    lr: float = setting(
        0.0175, "learning rate", low=1e-12, below=1e3, search=SearchRange(1e-4, 1e-1, log=True)
    )
    weight_decay: float = setting(
        6e-4, "L2 on all parameters", low=0, below=1e3, search=SearchRange(1e-5, 1e-2, log=True)
    )
    optimizer: str = setting("rmsprop", "optimiser", choices=tuple(OPTIMIZERS))


@dataclass(frozen=True)
class MultiScaleSettings(NetworkSettings):
    """Settings of the paper's own three."""

    input_dropout: float = setting(
        0.0,
        "rate, on the features; the paper has none",
        low=0,
        below=1,
        search=SearchRange(0, 0.9),
        unless=0.0,
    )


class NetworkSystem(System):
    """A system that is a torch module, trained by the loop."""

    @abstractmethod
    def network(self, features: int, classes: int) -> nn.Module:
        """The untrained network."""

    def diffusion(self, graph: Graph) -> Operator:
        """What the network diffuses with."""
        return operator(graph, self.operator)

    def decayed(self, network: nn.Module) -> Collection[nn.Parameter] | None:
        """The parameters that weight decay acts on; all if None."""
        return None

    def forward(
        self, network: nn.Module, x: NodeFeatures, L: Operator, nodes: Nodes, masks: Masks
    ) -> Forward:
        """How the network is computed during a run, as the method says it."""
        return WholeGraph(network, x, L, nodes, masks)

    def engine(
        self, network: nn.Module, x: NodeFeatures, L: Operator, nodes: Nodes, masks: Masks
    ) -> Forward:
        """The same, faster, if there is a way."""
        return self.forward(network, x, L, nodes, masks)

    def estimate(self, task: Task, conditions: Conditions | None = None) -> Estimate:
        """What a run will cost."""
        forward = self._planned(task, conditions or Conditions(), Masks())
        return estimate(forward, MOMENTS[self.settings.optimizer])

    def _planned(self, task: Task, conditions: Conditions, masks: Masks) -> Forward:
        """The network and how it is computed; the weights have no storage yet."""
        if conditions.precision == "bfloat16" and torch.device(conditions.device).type == "cpu":
            check_bfloat16()
        x = features_on_device(task.graph, conditions.device)
        L = self.diffusion(task.graph)
        with torch.device("meta"):
            network = self.network(x.shape[1], len(task.classes))
        # Mixed precision is for the literal form: engines choose their own precision.
        how = self.engine if conditions.precision == "float32" else self.forward
        return how(network, x, L, nodes_of(task, conditions.device), masks)

    def _fit(
        self, task: Task, seed: int, conditions: Conditions, on_epoch: Callable[[Epoch], None]
    ) -> Fit:
        """Train on the task; the probabilities are those of the best epoch's weights."""
        generator = torch.Generator(conditions.device).manual_seed(seed)
        forward = self._planned(task, conditions, Masks(generator))
        network = forward.network
        estimate(forward, MOMENTS[self.settings.optimizer]).check(available_memory())
        # Weights are drawn once, and from this generator only. (`to_empty` would do, but it imports
        # symbolic algebra first.)
        storage = {
            name: torch.empty(value.shape, dtype=value.dtype, device=conditions.device)
            for name, value in network.state_dict().items()
        }
        network.load_state_dict(storage, assign=True)
        network.reset_parameters(generator)  # type: ignore[operator]
        trained = train(
            forward,
            task,
            optimizer(
                self.settings.optimizer,
                network.parameters(),
                lr=self.settings.lr,
                weight_decay=self.settings.weight_decay,
                decayed=self.decayed(network),
            ),
            conditions,
            on_epoch,
        )
        with conditions.autocast():
            probabilities = _probabilities(forward)
        return Fit(task, probabilities, trained.epochs, network.state_dict())

    def apply(self, weights: Weights, graph: Graph, classes: int) -> Probabilities:
        """The same network, on any graph with as many features."""
        return _probabilities(self._learned(weights, graph, classes))

    def embed(self, weights: Weights, graph: Graph, classes: int) -> npt.NDArray[np.float64]:
        """What the output layer is given, of the last hidden layer; logits if it has no name."""
        forward = self._learned(weights, graph, classes)
        seen: list[Tensor] = []

        def look(module: nn.Module, given: tuple[Any, ...]) -> None:
            blocks = given[0] if isinstance(given[0], list) else [given[0]]
            seen.append(blocks[-1])

        output = getattr(forward.network, "output", None)
        if not isinstance(output, nn.Module):
            return super().embed(weights, graph, classes)
        output.register_forward_pre_hook(look)
        _probabilities(forward)
        if not seen:  # an engine that does without the layer itself
            with torch.no_grad():
                forward.network(forward.x, forward.L)
        found: npt.NDArray[np.float64] = seen[-1].double().numpy()
        return found

    def _learned(self, weights: Weights, graph: Graph, classes: int) -> Forward:
        """The network with these weights, on a graph of which nothing is asked but everything."""
        x = features_on_device(graph, "cpu")
        with torch.device("meta"):
            network = self.network(x.shape[1], classes)
        network.load_state_dict(weights, assign=True)
        nobody = torch.empty(0, dtype=torch.int64)
        nodes = Nodes(training=nobody, validation=nobody)
        return self.engine(network, x, self.diffusion(graph), nodes, Masks())


@torch.no_grad()
def _probabilities(forward: Forward) -> Probabilities:
    """Those of every node, as the weights are now."""
    forward.network.eval()
    probabilities: Probabilities = forward.everything().double().softmax(dim=1).cpu().numpy()
    if not np.isfinite(probabilities).all():
        node = np.flatnonzero(~np.isfinite(probabilities).all(axis=1))[0]
        raise Diverged(f"The network's output for node {node} is not finite.")
    return probabilities


def features_on_device(graph: Graph, device: str) -> NodeFeatures:
    """The graph's features in torch's default type; sparse stays sparse."""
    features, dtype = graph.features, torch.get_default_dtype()
    if isinstance(features, sp.csr_array):
        return SparseMatrix.from_scipy(features, dtype=dtype, device=device)
    return torch.from_numpy(features.copy()).to(device, dtype)
