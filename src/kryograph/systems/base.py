"""System: the contract of a published method, and the registry of all systems.

A system is a frozen record of its settings; `fit` takes a task and a seed and returns a `Fit`.
Networks, closed forms and systems around other systems have the same methods, so no caller depends
on the name of a system.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeAlias

import numpy as np
import numpy.typing as npt
from torch import Tensor
from typing_extensions import TypeVar

from kryograph.engine.cost import Estimate
from kryograph.errors import UsageError, unknown
from kryograph.explain.contributions import AdditiveForm
from kryograph.graph import Graph, Task
from kryograph.operators import OPERATORS
from kryograph.registry import Registry
from kryograph.systems.settings import Settings, read_pairs
from kryograph.training.loop import DEFAULT_CONDITIONS, Conditions, OnEpoch, ignore_epoch

Probabilities: TypeAlias = npt.NDArray[np.float64]
"""Class probabilities, N × C; each row sums to one."""

Embedding: TypeAlias = npt.NDArray[np.float64]
"""A vector for each node, N × d."""

Weights: TypeAlias = Mapping[str, Tensor]
"""Learned tensors by name. `System.apply` needs these and a graph, and nothing else."""

S = TypeVar("S", bound=Settings, default=Any)
"""Type of a system's settings; `System` alone means a system with any settings."""


@dataclass(frozen=True, eq=False)
class Fit:
    """Result of training a system on a task.

    Args:
        task: The task that was learned.
        probabilities: Class probabilities of every node.
        epochs: Number of epochs; 0 for a closed form.
        weights: Learned tensors.
    """

    task: Task
    probabilities: Probabilities
    epochs: int
    weights: Weights

    @property
    def validation_accuracy(self) -> float | None:
        """Share of the validation nodes that are right; None without validation labels."""
        if not self.task.has_validation:
            return None
        nodes = self.task.split.validation
        right = self.probabilities[nodes].argmax(axis=1) == self.task.labels[nodes]
        return float(right.mean())

    def predict_proba(self) -> Probabilities:
        """Return the N × C class probabilities."""
        return self.probabilities

    def predict(self) -> list[str]:
        """Return the name of the most probable class of every node."""
        return [self.task.classes[c] for c in self.probabilities.argmax(axis=1)]


@dataclass(frozen=True)
class System(ABC, Generic[S]):
    """A published method with its settings and its diffusion operator.

    A subclass implements `fit` and `apply`; `register` sets its name and description.
    """

    settings: S
    operator: str = "sym"

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str]
    equation: ClassVar[str]
    settings_type: ClassVar[type[Settings]]

    uses_features: ClassVar[bool] = True
    """Whether the output depends on node features."""
    uses_operator: ClassVar[bool] = True
    """Whether the output depends on the choice of the diffusion operator."""
    uses_seed: ClassVar[bool] = True
    """Whether anything is drawn at random; False for a closed form."""
    component_wise: ClassVar[bool] = True
    """Whether unlabelled nodes influence only their own connected component."""

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise unknown("operator", self.operator, OPERATORS)

    @abstractmethod
    def fit(
        self,
        task: Task,
        *,
        seed: int = 0,
        conditions: Conditions = DEFAULT_CONDITIONS,
        on_epoch: OnEpoch = ignore_epoch,
    ) -> Fit:
        """Train on a task.

        Args:
            task: Graph, split and the labels that training may see.
            seed: Determines every random draw.
            conditions: Stop rule, device and precision.
            on_epoch: Called after each epoch, if the system has epochs.
        """

    @abstractmethod
    def apply(self, weights: Weights, graph: Graph, classes: int) -> Probabilities:
        """Class probabilities of the nodes of a graph.

        Args:
            weights: Learned by `fit`; on another graph only if the system is `inductive`.
            graph: With as many features as the graph of the fit.
            classes: Number of classes of the fit.
        """

    def apply_changed(
        self, weights: Weights, graph: Graph, changed: Graph, classes: int
    ) -> Probabilities:
        """Class probabilities after edges or features of the graph of the fit were changed.

        Args:
            weights: Learned by `fit`.
            graph: The graph of the fit.
            changed: The same nodes, in the same order, with other edges or features.
            classes: Number of classes.

        Raises:
            UsageError: If nothing can be computed again without another fit.
        """
        if not self.recomputed:
            raise UsageError(
                f"{self.name} knows its own graph only: after a change of edges or features it "
                "must be fitted again."
            )
        return self.apply(weights, changed, classes)

    def not_recomputed(self, weights: Weights) -> list[str]:
        """Parts of the system whose predictions `apply_changed` leaves as they were."""
        return []

    @property
    def recomputed(self) -> bool:
        """Whether `apply_changed` computes new predictions without another fit."""
        return self.inductive

    @property
    def inductive(self) -> bool:
        """Whether weights that were learned on one graph can be applied to another."""
        return True

    @property
    def has_hidden_layer(self) -> bool:
        """Whether `embed` returns a hidden layer; otherwise it returns log-probabilities."""
        return False

    def embed(self, weights: Weights, graph: Graph, classes: int) -> Embedding:
        """Hidden representation of every node; log-probabilities without a hidden layer."""
        return log_probabilities(self.apply(weights, graph, classes))

    def additive(self, weights: Weights, graph: Graph, classes: int) -> AdditiveForm:
        """Form in which the log-odds of every node of the graph of the fit are a sum.

        Arguments are those of `apply`.

        Raises:
            UsageError: If there is no exact form.
        """
        raise UsageError(
            f"There is no exact explanation for {self.name}; --system truncated-krylov has one, "
            "and so has the default pool."
        )

    def estimate(self, task: Task, conditions: Conditions = DEFAULT_CONDITIONS) -> Estimate | None:
        """Time and memory of a run; None if they are not known."""
        return None


def log_probabilities(probabilities: Probabilities) -> Embedding:
    """Logarithms of probabilities; zero counts as 1e-12."""
    logs: Embedding = np.log(probabilities + 1e-12)
    return logs


BREAK_THE_CEILING = "Luan, Zhao, Chang, Precup: Break the Ceiling. NeurIPS 2019"
"""Citation of the paper whose three architectures this package implements."""


def _check_class(name: str, cls: object) -> None:
    """Raise a `TypeError` if an object cannot be the system of that name."""
    if not (isinstance(cls, type) and issubclass(cls, System)):
        raise TypeError(f"{cls!r} is not a subclass of kryograph.systems.System")
    if getattr(cls, "name", None) != name:
        raise TypeError(f"{cls.__name__} lacks the decorator @register({name!r}, …)")


SYSTEMS: Registry[type[System]] = Registry("system", "kryograph.systems", _check_class)
"""All systems by name: built-in ones in the order of their registration, then plug-ins."""

Registered = TypeVar("Registered", bound=type[System])


def register(
    name: str, *, summary: str, paper: str, equation: str, settings: type[Settings]
) -> Callable[[Registered], Registered]:
    """Decorator that describes a system and adds it to `SYSTEMS`.

    Args:
        name: Name by which users select the system.
        summary: One sentence on what it does.
        paper: Authors, title, venue and year.
        equation: Formula of the method, in one or two lines.
        settings: Type of its settings.
    """

    def add(cls: Registered) -> Registered:
        cls.name, cls.summary, cls.paper, cls.settings_type = name, summary, paper, settings
        cls.equation = equation
        SYSTEMS.add(name, cls)
        return cls

    return add


def system(
    name: str,
    settings: Settings | Mapping[str, object] | None = None,
    *,
    operator: str = "sym",
) -> System:
    """Return the system of that name.

    Args:
        name: A key of `SYSTEMS`.
        settings: All settings, or those that differ from the defaults.
        operator: Name of the diffusion operator.

    >>> system("truncated-krylov", {"hidden": 64}).settings.hidden
    64
    """
    cls = SYSTEMS.find(name)
    if isinstance(settings, Settings):
        if type(settings) is not cls.settings_type:
            raise UsageError(f"{type(settings).__name__} are not the settings of {name}.")
        return cls(settings, operator)
    return cls(cls.settings_type().replace(settings or {}), operator)


def member_systems(text: str, operator: str) -> list[System]:
    """Build systems from a text such as "prototypes:rounds=5 + trees"."""
    members = []
    for part in text.split("+"):
        name, _, pairs = part.strip().partition(":")
        members.append(system(name.strip(), read_pairs(pairs.split(",")), operator=operator))
    return members


def member_text(member: System) -> str:
    """Text from which `member_systems` builds a system, such as "prototypes:rounds=5"."""
    fields = dataclasses.fields(member.settings)
    values = member.settings.as_dict()
    changed = [f"{f.name}={values[f.name]}" for f in fields if values[f.name] != f.default]
    return member.name + ":" * bool(changed) + ",".join(changed)
