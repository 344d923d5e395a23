"""One network in training, computed in the three ways that benchmarks compare.

The engine is the form that `fit` uses. The literal form is the published formula on every node in
every epoch, with dense features. The third form is what a user of PyTorch Geometric writes
(`pyg.py`). The last two use torch's own optimisers. Weight decay acts on all parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from kryograph.bench.pyg import PYG_NETWORKS, sign_blocks
from kryograph.engine.forward import Forward, Workload
from kryograph.graph import Task
from kryograph.nn.functional import Masks
from kryograph.operators import Operator
from kryograph.systems import system
from kryograph.systems.network import NetworkSettings, NetworkSystem, draw_weights
from kryograph.training.loop import DEFAULT_CONDITIONS, nodes_of
from kryograph.training.optimizers import Optimizer, optimizer

TORCH_OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "rmsprop": torch.optim.RMSprop,
}


@dataclass(frozen=True)
class Contestant:
    """A network, functions that compute its logits, and an optimiser."""

    network: nn.Module
    training: Callable[[], Tensor]  # logits of the training nodes
    scored: Callable[[], Tensor]  # logits of the training nodes, then of the validation nodes
    everything: Callable[[], Tensor]  # logits of every node
    optimizer: Optimizer | torch.optim.Optimizer
    task: Task

    def gradients(self) -> Tensor:
        """Leave the gradients of the loss in the parameters; return the training nodes' logits."""
        self.network.train()
        self.optimizer.zero_grad()
        logits = self.training()
        targets = torch.from_numpy(self.task.labels[self.task.split.train])
        nn.functional.cross_entropy(logits, targets).backward()  # type: ignore[no-untyped-call]
        return logits.detach()

    def score(self) -> Tensor:
        """Logits of the scored nodes, without dropout and gradients."""
        self.network.eval()
        with torch.no_grad():
            return self.scored()

    def epoch(self) -> Tensor:
        """Do a training step and return the logits of the scored nodes."""
        self.gradients()
        self.optimizer.step()
        return self.score()


def network_system(name: str, changes: Mapping[str, object] | None = None) -> NetworkSystem:
    """Build a system that trains a network; `changes` override its default settings."""
    method = system(name, changes)
    assert isinstance(method, NetworkSystem)
    return method


def engine_contestant(method: NetworkSystem, task: Task, masks: Masks) -> Contestant:
    """The form that `fit` uses, with the weights of seed 0 and kryograph's optimiser."""
    forward = method.prepare(task, DEFAULT_CONDITIONS, masks)
    draw_weights(forward.network, torch.Generator().manual_seed(0))
    s, parameters = method.settings, forward.network.parameters()
    stepper = optimizer(s.optimizer, parameters, lr=s.lr, weight_decay=s.weight_decay)
    return _contestant(forward, stepper, task)


def literal_contestant(
    method: NetworkSystem, task: Task, x: Tensor, L: Operator, masks: Masks
) -> Contestant:
    """The published formula on every node, with dense features and the weights of seed 0."""
    with torch.device("meta"):
        network = method.network(x.shape[1], len(task.classes))
    draw_weights(network, torch.Generator().manual_seed(0))
    forward = method.forward(Workload(network, x, L, nodes_of(task, "cpu"), masks))
    return _contestant(forward, _torch_optimizer(network, method.settings), task)


def _contestant(
    forward: Forward, stepper: Optimizer | torch.optim.Optimizer, task: Task
) -> Contestant:
    logits = (forward.training, forward.scored, forward.everything)
    return Contestant(forward.network, *logits, stepper, task)


def pyg_contestant(method: NetworkSystem, task: Task) -> Contestant:
    """A network of PyTorch Geometric's layers with the same settings, on dense features."""
    nodes, data, settings = nodes_of(task, "cpu"), task.graph.to_pyg(), method.settings
    inputs: tuple[Tensor, ...] = (data.x, data.edge_index, data.edge_weight)
    if method.name == "truncated-krylov":
        inputs = (sign_blocks(data, settings.order),)
    network = PYG_NETWORKS[method.name](inputs[0].shape[1], len(task.classes), settings)

    # SIGN trains on the rows of the training nodes alone, as PyTorch Geometric's example does.
    rows = inputs[0][nodes.training] if len(inputs) == 1 else None
    return Contestant(
        network,
        (lambda: network(*inputs)[nodes.training]) if rows is None else partial(network, rows),
        lambda: network(*inputs)[nodes.scored],
        partial(network, *inputs),
        _torch_optimizer(network, settings),
        task,
    )


def _torch_optimizer(network: nn.Module, settings: NetworkSettings) -> torch.optim.Optimizer:
    build = TORCH_OPTIMIZERS[settings.optimizer]
    return build(network.parameters(), lr=settings.lr, weight_decay=settings.weight_decay)
