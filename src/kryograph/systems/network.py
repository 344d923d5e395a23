"""NetworkSystem: what every trained network shares, from a task to a fit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from kryograph.graph import Task
from kryograph.nn.functional import Matrix
from kryograph.operators import Operator, operator
from kryograph.sparse import SparseMatrix
from kryograph.systems.base import Fit, System
from kryograph.systems.settings import Settings, setting
from kryograph.training.loop import Conditions, Diverged, Epoch, Logits, train
from kryograph.training.optimizers import OPTIMIZERS, optimizer


@dataclass(frozen=True)
class NetworkSettings(Settings):
    """Settings of every network; docs/results.md says how the defaults were found."""

    hidden: int = setting(64, "width of each hidden layer", low=1, below=100_000)
    layers: int = setting(1, "number of hidden layers", low=1, below=10_000)
    dropout: float = setting(0.95, "rate, on hidden outputs", low=0, below=1)
    lr: float = setting(0.0175, "learning rate", low=1e-12, below=1e3)
    weight_decay: float = setting(6e-4, "L2 on all parameters", low=0, below=1e3)
    optimizer: str = setting("rmsprop", "optimiser", choices=tuple(OPTIMIZERS))


class NetworkSystem(System):
    """A system that is a torch module, trained by the loop."""

    @abstractmethod
    def network(self, features: int, classes: int) -> nn.Module:
        """The untrained network."""

    def logits(
        self,
        network: nn.Module,
        x: Matrix,
        L: Operator,
        task: Task,
        generator: torch.Generator,
    ) -> Logits:
        """How the loop gets the logits of some nodes: here by computing those of all."""

        def of(nodes: Tensor) -> Callable[[], Tensor]:
            return lambda: network(x, L, generator=generator)[nodes]

        return of

    def _fit(
        self, task: Task, seed: int, conditions: Conditions, on_epoch: Callable[[Epoch], None]
    ) -> Fit:
        """Train on the task; the probabilities are those of the best epoch's weights."""
        generator = torch.Generator(conditions.device).manual_seed(seed)
        x = features_on_device(task, conditions.device)
        L = operator(task.graph, self.operator)
        # Made without storage first, so that weights are drawn once, and from this generator only.
        with torch.device("meta"):
            network = self.network(x.shape[1], len(task.classes))
        network.to_empty(device=conditions.device)
        network.reset_parameters(generator)  # type: ignore[operator]
        trained = train(
            network,
            self.logits(network, x, L, task, generator),
            task,
            optimizer(
                self.settings.optimizer,
                network.parameters(),
                lr=self.settings.lr,
                weight_decay=self.settings.weight_decay,
            ),
            conditions,
            on_epoch,
        )
        network.eval()
        with torch.no_grad(), conditions.autocast():
            probabilities = network(x, L).double().softmax(dim=1).cpu().numpy()
        if not np.isfinite(probabilities).all():
            node = np.flatnonzero(~np.isfinite(probabilities).all(axis=1))[0]
            raise Diverged(f"The network's output for node {node} is not finite.")
        return Fit(task, probabilities, epochs=len(trained.history))


def features_on_device(task: Task, device: str) -> Matrix:
    """The task's features in float32; sparse stays sparse."""
    features = task.graph.features
    if isinstance(features, sp.csr_array):
        return SparseMatrix.from_scipy(features, device=device)
    return torch.from_numpy(features.copy()).to(device, torch.float32)
