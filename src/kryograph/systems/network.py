"""NetworkSystem: how a system with a network turns a task into a workload and trains it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from typing_extensions import TypeVar

from kryograph.engine.cost import TOO_SHORT, Estimate
from kryograph.engine.forward import Forward, Nodes, WholeGraph, Workload, estimate
from kryograph.engine.machine import available_memory
from kryograph.explain.contributions import AdditiveForm
from kryograph.explain.layers import LayeredForm, PolynomialLayer
from kryograph.graph import NO_NODES, Graph, Task
from kryograph.nn.functional import Masks, NodeFeatures
from kryograph.nn.network import Network
from kryograph.operators import Operator, operator
from kryograph.sparse import SparseMatrix, shared_tensor
from kryograph.systems.base import Embedding, Fit, Probabilities, System, Weights
from kryograph.systems.settings import SearchRange, Settings, inherited, setting
from kryograph.threads import on_free_cores
from kryograph.training.loop import (
    DEFAULT_CONDITIONS,
    Conditions,
    Diverged,
    OnEpoch,
    ignore_epoch,
    nodes_of,
    train_network,
)
from kryograph.training.optimizers import MOMENTS, OPTIMIZERS, optimizer


@dataclass(frozen=True)
class NetworkSettings(Settings):
    """Settings that every network has; docs/results.md says how the defaults were found."""

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
class KipfSettings(NetworkSettings):
    """Training settings of Kipf and Welling's GCN, which most baselines share."""

    dropout: float = inherited(NetworkSettings, "dropout", 0.5, "rate, on every layer's input")
    lr: float = inherited(NetworkSettings, "lr", 0.01)
    weight_decay: float = inherited(NetworkSettings, "weight_decay", 5e-4)
    optimizer: str = inherited(NetworkSettings, "optimizer", "adam")


@dataclass(frozen=True)
class DecaySettings(KipfSettings):
    """Settings of networks that may restrict weight decay to the first layer."""

    hidden: int = inherited(NetworkSettings, "hidden", 16)
    weight_decay: float = inherited(NetworkSettings, "weight_decay", 5e-4, "L2")
    decay_all: bool = setting(
        False, "L2 on all parameters (Li, Han, Wu 2018), not the first layer's alone (Kipf)"
    )


N = TypeVar("N", bound=NetworkSettings, default=Any)
"""Type of the settings of a network."""


class NetworkSystem(System[N]):
    """A system that trains a torch module.

    A subclass implements `network`. It may override `diffusion` and `decayed`, `forward` if the
    training step has terms of its own, and `fast_forward` if there is a faster way to compute the
    same logits. Nothing but `prepare` and `_trained_forward` calls the last two.
    """

    @abstractmethod
    def network(self, features: int, classes: int) -> Network:
        """Build the untrained network for that many features and classes."""

    def sizes(self, features: int, classes: int) -> tuple[int, int, int, int]:
        """Numbers of features, hidden units, classes and hidden layers: arguments of networks."""
        return features, self.settings.hidden, classes, self.settings.layers

    def options(self, *names: str) -> dict[str, Any]:
        """Settings with these names: keyword arguments of networks."""
        return {name: getattr(self.settings, name) for name in names}

    def diffusion(self, graph: Graph) -> Operator:
        """Operator that the network diffuses with."""
        return operator(graph, self.operator)

    def decayed(self, network: Network) -> Collection[nn.Parameter] | None:
        """Parameters that weight decay acts on: all (None), or the weight of the first layer."""
        if isinstance(self.settings, DecaySettings) and not self.settings.decay_all:
            return [next(network.parameters())]
        return None

    def forward(self, load: Workload) -> Forward:
        """Form that computes the logits as published, on every node."""
        return WholeGraph(load)

    def fast_forward(self, load: Workload) -> Forward | None:
        """Form that computes exactly the same logits faster; None if there is none."""
        return None

    def prepare(
        self, task: Task, conditions: Conditions, masks: Masks, *, literal: bool = False
    ) -> Forward:
        """Build the workload of a run and choose the form that computes it.

        This is the only place where a run chooses between `forward` and `fast_forward`, and where
        device and precision are checked. A `literal` run uses `forward` even if there is a faster
        form. The weights have no storage yet: `draw_weights` makes it.
        """
        conditions.check()
        x = features_on_device(task.graph, conditions.device)
        with torch.device("meta"):
            network = self.network(x.shape[1], len(task.classes))
        nodes = nodes_of(task, conditions.device)
        load = Workload(network, x, self.diffusion(task.graph), nodes, masks)
        # Mixed precision is defined for the published form; fast forms choose their own precision.
        return self._form(load, literal=literal or conditions.precision != "float32")

    def _form(self, load: Workload, *, literal: bool) -> Forward:
        fast = None if literal else self.fast_forward(load)
        return self.forward(load) if fast is None else fast

    def estimate(self, task: Task, conditions: Conditions = DEFAULT_CONDITIONS) -> Estimate | None:
        forward = self.prepare(task, conditions, Masks())
        return estimate(forward, MOMENTS[self.settings.optimizer])

    @on_free_cores()
    def fit(
        self,
        task: Task,
        *,
        seed: int = 0,
        conditions: Conditions = DEFAULT_CONDITIONS,
        on_epoch: OnEpoch = ignore_epoch,
        literal: bool = False,
    ) -> Fit:
        """Train on a task; the probabilities are those of the weights of the best epoch.

        Arguments are those of `System.fit`, and `literal` is that of `prepare`.
        """
        conditions.check()  # before a generator is made on the device
        generator = torch.Generator(conditions.device).manual_seed(seed)
        forward = self.prepare(task, conditions, Masks(generator), literal=literal)
        network, s = forward.network, self.settings
        expected = estimate(forward, MOMENTS[s.optimizer])
        if expected is not None:
            expected.check(available_memory())
        draw_weights(network, generator)
        options = self.options("lr", "weight_decay") | {"decayed": self.decayed(network)}
        stepper = optimizer(s.optimizer, network.parameters(), **options)
        # By the nominal rates: the same threads on an idle machine and on a busy one.
        narrow = expected is not None and expected.epoch.narrow(seconds=TOO_SHORT)
        with on_free_cores(narrow=narrow):
            trained = train_network(forward, task, stepper, conditions, on_epoch)
        with conditions.autocast():
            probabilities = _probabilities(forward)
        return Fit(task, probabilities, trained.epochs, network.state_dict())

    def apply(self, weights: Weights, graph: Graph, classes: int) -> Probabilities:
        return _probabilities(self._trained_forward(weights, graph, classes))

    @property
    def has_hidden_layer(self) -> bool:
        with torch.device("meta"):
            return self.network(1, 2).output_layer is not None

    def embed(self, weights: Weights, graph: Graph, classes: int) -> Embedding:
        hidden = hidden_layer(self._trained_forward(weights, graph, classes))
        if hidden is None:
            return super().embed(weights, graph, classes)
        embedding: Embedding = hidden.double().numpy()
        return embedding

    def polynomial_layers(self, network: Network) -> Sequence[PolynomialLayer] | None:
        """Layers of a trained network; None if they are not polynomials of the operator."""
        return None

    def additive(self, weights: Weights, graph: Graph, classes: int) -> AdditiveForm:
        forward = self._trained_forward(weights, graph, classes)
        layers = self.polynomial_layers(forward.network)
        if layers is None:
            return super().additive(weights, graph, classes)
        return LayeredForm(self.diffusion(graph).matrix, graph.features, layers)

    def _trained_forward(self, weights: Weights, graph: Graph, classes: int) -> Forward:
        """Forward of a trained network; only `everything` may be called on it."""
        x = features_on_device(graph, "cpu")
        with torch.device("meta"):
            network = self.network(x.shape[1], classes)
        network.load_state_dict(weights, assign=True)
        empty = torch.from_numpy(NO_NODES.copy())
        load = Workload(network, x, self.diffusion(graph), Nodes(empty, empty), Masks())
        return self._form(load, literal=False)


def draw_weights(network: Network, generator: torch.Generator) -> None:
    """Give the weights of a network storage on the generator's device, and draw them from it."""
    # `Module.to_empty` would do, but it imports symbolic algebra first.
    storage = {
        name: torch.empty(value.shape, dtype=value.dtype, device=generator.device)
        for name, value in network.state_dict().items()
    }
    network.load_state_dict(storage, assign=True)
    network.reset_parameters(generator)


@torch.no_grad()
def hidden_layer(forward: Forward) -> Tensor | None:
    """Hidden representation of every node (N × d): the input of the network's output layer.

    None if the network has no hidden layer.
    """
    network = forward.network.eval()
    if network.output_layer is None:
        return None
    inputs: list[Tensor] = []

    def keep(layer: nn.Module, arguments: tuple[Any, ...]) -> None:
        blocks = arguments[0]
        inputs.append(blocks[-1] if isinstance(blocks, list) else blocks)

    hook = network.output_layer.register_forward_pre_hook(keep)
    try:
        forward.everything()
        if not inputs:  # a form that computes the logits without calling the layer
            network(forward.x, forward.L)
    finally:
        hook.remove()
    return inputs[-1]


@torch.no_grad()
def _probabilities(forward: Forward) -> Probabilities:
    """Class probabilities of every node with the current weights, on the CPU."""
    forward.network.eval()
    probabilities: Probabilities = forward.everything().double().softmax(dim=1).cpu().numpy()
    if not np.isfinite(probabilities).all():
        node = np.flatnonzero(~np.isfinite(probabilities).all(axis=1))[0]
        raise Diverged(f"The network's output for node {node} is not finite.")
    return probabilities


def features_on_device(graph: Graph, device: str) -> NodeFeatures:
    """Features of a graph in torch's default type; a sparse matrix stays sparse.

    The memory is that of the graph, if type and device agree: nobody may write to it.
    """
    features, dtype = graph.features, torch.get_default_dtype()
    if isinstance(features, sp.csr_array):
        return SparseMatrix.from_scipy(features, dtype=dtype, device=device)
    return shared_tensor(features).to(device, dtype)
