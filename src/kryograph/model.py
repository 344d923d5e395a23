"""Model: a fitted system that can be kept on disk, and that answers for other graphs.

A model is a folder of two files: `weights.safetensors`, and `model.json` with the system, its
settings, the classes and a digest of the weights. Reading one runs no code that it brings along.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from kryograph.errors import UsageError
from kryograph.files import replaced
from kryograph.graph import Graph
from kryograph.systems import Fit, System, system
from kryograph.systems.base import Probabilities, Weights

MODEL_FORMAT = 1
"""The number of this form of folder; a reader knows its own and those before it."""

DESCRIPTION, WEIGHTS = "model.json", "weights.safetensors"


@dataclass(frozen=True, eq=False)
class Model:
    """A system with what it has learned.

    Args:
        system: With its settings and its operator.
        classes: Their names, in the order of the probabilities.
        weights: What was learned.
        features: How many columns the features have.
        graph: The fingerprint of the graph that it was learned on.
        extra: What else belongs to it, as JSON can say it.
    """

    system: System
    classes: tuple[str, ...]
    weights: Weights
    features: int
    graph: str
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, system: System, fit: Fit, **extra: Any) -> Model:
        """The model of a fit."""
        graph = fit.task.graph
        weights = {name: value.detach().cpu() for name, value in fit.weights.items()}
        width = graph.features.shape[1]
        return cls(system, fit.task.classes, weights, width, graph.fingerprint, extra)

    def predict_proba(self, graph: Graph) -> Probabilities:
        """N × C class probabilities of the nodes of a graph with the same features."""
        if graph.features.shape[1] != self.features:
            raise UsageError(
                f"This graph has {graph.features.shape[1]:,} features, the model was trained "
                f"with {self.features:,}."
            )
        if not self.system.inductive and graph.fingerprint != self.graph:
            raise UsageError(
                f"{self.system.name} knows the nodes of its own graph only, and this is another "
                "one (or its rows are in another order): fit again with this graph."
            )
        try:
            return self.system.apply(self.weights, graph, len(self.classes))
        except (RuntimeError, KeyError, ValueError) as error:
            if isinstance(error, torch.OutOfMemoryError):
                raise
            said = " ".join(str(error).split())
            raise UsageError(
                f"The weights do not fit a {self.system.name} with these settings: {said}"
            ) from None

    def save(self, folder: Path) -> None:
        """Write the folder; whole or not at all, and never over another."""
        if folder.exists():
            raise UsageError(f"{folder} exists already: choose another folder.")
        packed = save({name: value.contiguous() for name, value in self.weights.items()})
        description = {
            "format": MODEL_FORMAT,
            "kryograph": version("kryograph"),
            "system": self.system.name,
            "operator": self.system.operator,
            "settings": self.system.settings.as_dict(),
            "classes": list(self.classes),
            "features": self.features,
            "graph": self.graph,
            "weights": hashlib.sha256(packed).hexdigest(),
            "extra": self.extra,
        }
        description["digest"] = _digest(description)
        with replaced(folder) as new:
            new.mkdir()
            (new / WEIGHTS).write_bytes(packed)
            text = json.dumps(description, indent=1, ensure_ascii=False)
            (new / DESCRIPTION).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Model:
        """Read a folder that `save` wrote."""
        said = _described(folder)
        if said.get("digest") != _digest({k: v for k, v in said.items() if k != "digest"}):
            raise UsageError(
                f"{folder / DESCRIPTION} was changed after it was written. Fit again, or copy the "
                "whole folder again."
            )
        packed = _bytes(folder / WEIGHTS)
        if hashlib.sha256(packed).hexdigest() != said.get("weights"):
            raise UsageError(
                f"{folder / WEIGHTS} is not the file that {DESCRIPTION} belongs to: it was cut "
                "off or changed. Fit again, or copy the whole folder again."
            )
        try:
            weights = load(packed)
            made = system(said["system"], said["settings"], operator=said["operator"])
            classes, features = tuple(said["classes"]), int(said["features"])
            if not classes or any(not isinstance(name, str) for name in classes):
                raise ValueError("classes must be names")
            return cls(made, classes, weights, features, str(said["graph"]), dict(said["extra"]))
        except SafetensorError as error:
            raise UsageError(f"{folder / WEIGHTS} cannot be read: {error}.") from None
        except UsageError as error:
            raise UsageError(f"{folder / DESCRIPTION}: {error}") from None
        except KeyError as error:
            raise UsageError(f"{folder / DESCRIPTION} does not say {error.args[0]!r}.") from None
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise UsageError(f"{folder / DESCRIPTION} has a wrong entry: {error}.") from None


def _digest(description: Mapping[str, Any]) -> str:
    text = json.dumps(description, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _described(folder: Path) -> dict[str, Any]:
    """What model.json says, if it is of a form that can be read."""
    path = folder / DESCRIPTION
    try:
        said = json.loads(_bytes(path).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}.") from None
    form = said.get("format") if isinstance(said, dict) else None
    if type(form) is not int or form < 1:
        raise UsageError(f"{path} does not describe a kryograph model.")
    if form > MODEL_FORMAT:
        raise UsageError(
            f"{path} is of format {form}, written by kryograph {said.get('kryograph')}; this "
            f"is {version('kryograph')}, which reads up to format {MODEL_FORMAT}. Install a "
            "newer one."
        )
    return said  # type: ignore[no-any-return]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"There is no {path}: is {path.parent} a model's folder?") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
