"""System: a published method by its name, and the registry of all there are.

A system is a frozen record of its settings; `fit` takes a task and a seed and returns a `Fit`.
Networks, closed forms and wrappers answer alike, so nothing anywhere branches on a name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from torch import Tensor

from kryograph.engine.cost import Estimate
from kryograph.errors import UsageError, unknown
from kryograph.graph import Graph, Task
from kryograph.operators import OPERATORS
from kryograph.systems.settings import Settings
from kryograph.training.loop import Conditions, Epoch, ignore_epoch

Probabilities: TypeAlias = npt.NDArray[np.float64]
"""N × C, rows that sum to one."""

Weights: TypeAlias = Mapping[str, Tensor]
"""What a system has learned, by name; all that `System.apply` needs beside a graph."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A system after training: class probabilities of every node, what was learned, how it went."""

    task: Task
    probabilities: Probabilities
    epochs: int
    weights: Weights

    @property
    def validation_accuracy(self) -> float | None:
        """The share of validation nodes that these probabilities get right, if it may be known."""
        if not self.task.has_validation:
            return None
        nodes = self.task.split.validation
        right = self.probabilities[nodes].argmax(axis=1) == self.task.labels[nodes]
        return float(right.mean())

    def predict_proba(self) -> Probabilities:
        """N × C class probabilities."""
        return self.probabilities

    def predict(self) -> list[str]:
        """The most probable class of every node, by name."""
        return [self.task.classes[c] for c in self.probabilities.argmax(axis=1)]


@dataclass(frozen=True)
class System(ABC):
    """A method with its settings and its diffusion operator."""

    settings: Any
    operator: str = "sym"

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str]
    equation: ClassVar[str]
    settings_type: ClassVar[type[Settings]]

    uses_features: ClassVar[bool] = True
    """Whether node features matter."""
    uses_operator: ClassVar[bool] = True
    """Whether the choice of the diffusion operator matters."""
    uses_seed: ClassVar[bool] = True
    """Whether anything is drawn at random; a closed form draws nothing."""
    component_wise: ClassVar[bool] = True
    """Whether unlabelled nodes matter to no component but their own."""

    @property
    def inductive(self) -> bool:
        """Whether what was learned on one graph says anything of another."""
        return True

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise unknown("operator", self.operator, OPERATORS)

    def fit(
        self,
        task: Task,
        *,
        seed: int = 0,
        conditions: Conditions | None = None,
        on_epoch: Callable[[Epoch], None] = ignore_epoch,
    ) -> Fit:
        """Learn the task.

        Args:
            task: What may be seen.
            seed: Fixes every random draw.
            conditions: Stop rule, device, precision.
            on_epoch: Called after each epoch, if the system has epochs.
        """
        return self._fit(task, seed, conditions or Conditions(), on_epoch)

    def estimate(self, task: Task, conditions: Conditions | None = None) -> Estimate | None:
        """What a run will cost, if the system can tell."""
        return None

    @abstractmethod
    def apply(self, weights: Weights, graph: Graph, classes: int) -> Probabilities:
        """Class probabilities on a graph, by weights that were learned on this one or another."""

    def embed(self, weights: Weights, graph: Graph, classes: int) -> npt.NDArray[np.float64]:
        """What nodes look like to the system just before it decides: N × d, for pictures."""
        # Without a hidden layer there is nothing but the decision itself.
        logs: npt.NDArray[np.float64] = np.log(self.apply(weights, graph, classes) + 1e-12)
        return logs

    @abstractmethod
    def _fit(
        self, task: Task, seed: int, conditions: Conditions, on_epoch: Callable[[Epoch], None]
    ) -> Fit:
        """What `fit` does, with every argument given."""


BREAK_THE_CEILING = "Luan, Zhao, Chang, Precup: Break the Ceiling. NeurIPS 2019"
"""The paper whose three architectures are the reason for this package."""

SYSTEMS: dict[str, type[System]] = {}
"""All systems by name, in the order of their registration."""

Registered = TypeVar("Registered", bound=type[System])


def register(
    name: str, *, summary: str, paper: str, equation: str, settings: type[Settings]
) -> Callable[[Registered], Registered]:
    """Put a class into the registry under the name that the paper's tables give it.

    Args:
        name: By which it is asked for.
        summary: A sentence on what it does.
        paper: Authors, title, where and in which year.
        equation: What is computed, in one or two lines.
        settings: The record of its settings.
    """

    def add(cls: Registered) -> Registered:
        cls.name, cls.summary, cls.paper, cls.settings_type = name, summary, paper, settings
        cls.equation = equation
        SYSTEMS[name] = cls
        return cls

    return add


def system(
    name: str,
    settings: Settings | Mapping[str, object] | None = None,
    *,
    operator: str = "sym",
) -> System:
    """The system of that name: with its defaults, some of them changed, or whole settings.

    >>> system("truncated-krylov", {"hidden": 64}).settings.hidden
    64
    """
    if name not in SYSTEMS:
        raise unknown("system", name, SYSTEMS)
    cls = SYSTEMS[name]
    if isinstance(settings, Settings):
        if type(settings) is not cls.settings_type:
            raise UsageError(f"{type(settings).__name__} are not the settings of {name}.")
        return cls(settings, operator)
    return cls(cls.settings_type().replace(settings or {}), operator)
