"""Model: a fitted system that is kept on disk and predicts the nodes of other graphs.

A model is a folder with two files. `weights.safetensors` holds the learned tensors; `model.json`
holds the system, its settings, the classes and digests of both files. Loading a model runs no code
from the folder: its system is looked up by name among the installed ones.
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
from kryograph.explain.contributions import AdditiveForm
from kryograph.features import FeatureRule
from kryograph.files import replaced
from kryograph.graph import Graph
from kryograph.systems import SYSTEMS, Fit, System, system
from kryograph.systems.base import Embedding, Probabilities, Weights
from kryograph.threads import on_free_cores

MODEL_FORMAT = 1
"""Version of the folder's layout. Versions up to this one can be read."""

DESCRIPTION, WEIGHTS = "model.json", "weights.safetensors"

RULE = "features."
"""Prefix of the tensors of the rule for features."""


@dataclass(frozen=True, eq=False)
class Model:
    """A system with its learned weights.

    Args:
        system: The system, with its settings and its operator.
        classes: Names of the classes in the order of the columns of the probabilities.
        weights: Learned tensors by name.
        features: Number of features of each node.
        graph: Fingerprint of the graph on which the system was trained.
        extra: Further data of the caller, stored as JSON.
        rule: How features are made from those of a graph; None if a graph has them ready.
    """

    system: System
    classes: tuple[str, ...]
    weights: Weights
    features: int
    graph: str
    extra: Mapping[str, Any] = field(default_factory=dict)
    rule: FeatureRule | None = None

    @classmethod
    def of(
        cls,
        system: System,
        fit: Fit,
        *,
        graph: Graph | None = None,
        rule: FeatureRule | None = None,
        **extra: Any,
    ) -> Model:
        """Build the model of a fit.

        Args:
            system: The system that was fitted.
            fit: Its fit.
            graph: The graph before its features were normalised; None means that of the fit.
            rule: The rule that normalised them; None if there was none.
            **extra: Further data of the caller.
        """
        original = fit.task.graph if graph is None else graph
        weights = {name: value.detach().cpu() for name, value in fit.weights.items()}
        width = original.features.shape[1]
        return cls(system, fit.task.classes, weights, width, original.fingerprint, extra, rule)

    @on_free_cores()
    def predict_proba(self, graph: Graph) -> Probabilities:
        """Compute the N × C class probabilities of a graph with the same features."""
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
            return self.system.apply(self.weights, self.prepared(graph), len(self.classes))
        except (RuntimeError, KeyError, ValueError) as error:
            if isinstance(error, torch.OutOfMemoryError):
                raise
            reason = " ".join(str(error).split())
            raise UsageError(
                f"The weights do not fit a {self.system.name} with these settings: {reason}"
            ) from None

    @on_free_cores()
    def embed(self, graph: Graph) -> Embedding:
        """Hidden representation of every node, or log-probabilities; see `System.embed`."""
        return self.system.embed(self.weights, self.prepared(graph), len(self.classes))

    def additive(self, graph: Graph) -> AdditiveForm:
        """Form in which the log-odds of the graph of the fit are a sum; see `System.additive`."""
        return self.system.additive(self.weights, self.prepared(graph), len(self.classes))

    def prepared(self, graph: Graph) -> Graph:
        """The graph with the features that the system sees."""
        return graph if self.rule is None else self.rule.graph(graph)

    def save(self, folder: Path) -> None:
        """Write the model as a new folder, completely or not at all."""
        if folder.exists():
            raise UsageError(f"{folder} exists already: choose another folder.")
        with replaced(folder) as new:
            self.write(new)

    def write(self, folder: Path) -> None:
        """Create `folder` and write the files of the model one by one."""
        tensors = dict(self.weights)
        if self.rule is not None:
            tensors |= {RULE + k: torch.from_numpy(v) for k, v in vars(self.rule).items()}
        packed = save({name: value.contiguous() for name, value in tensors.items()})
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
        folder.mkdir()
        (folder / WEIGHTS).write_bytes(packed)
        text = json.dumps(description, indent=1, ensure_ascii=False)
        (folder / DESCRIPTION).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Model:
        """Read a folder that `save` wrote; a damaged one is a `UsageError`."""
        path = folder / DESCRIPTION
        description = _read_description(path)
        packed = _read_bytes(folder / WEIGHTS)
        if hashlib.sha256(packed).hexdigest() != description.get("weights"):
            raise UsageError(
                f"{folder / WEIGHTS} is not the file that {DESCRIPTION} belongs to: it was cut "
                "off or changed. Fit again, or copy the whole folder again."
            )
        try:
            tensors = load(packed)
            weights = {k: v for k, v in tensors.items() if not k.startswith(RULE)}
            parts = {
                k.removeprefix(RULE): v.numpy() for k, v in tensors.items() if k not in weights
            }
            rule = FeatureRule(**parts) if parts else None
            name, settings = description["system"], description["settings"]
            if name not in SYSTEMS and name not in SYSTEMS.failures:
                raise UsageError(
                    f"The model needs the system {name!r}: install the package that provides it."
                )
            method = system(name, settings, operator=description["operator"])
            classes, features = tuple(description["classes"]), int(description["features"])
            if not classes or any(not isinstance(name, str) for name in classes):
                raise ValueError("classes must be names")
            graph, extra = str(description["graph"]), dict(description["extra"])
            return cls(method, classes, weights, features, graph, extra, rule)
        except SafetensorError as error:
            raise UsageError(f"{folder / WEIGHTS} cannot be read: {error}.") from None
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from None
        except KeyError as error:
            raise UsageError(f"{path} has no entry {error.args[0]!r}.") from None
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise UsageError(f"{path} has a wrong entry: {error}.") from None


def _digest(description: Mapping[str, Any]) -> str:
    text = json.dumps(description, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _read_description(path: Path) -> dict[str, Any]:
    """Read model.json; check its format and its digest."""
    try:
        description = json.loads(_read_bytes(path).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}.") from None
    number = description.get("format") if isinstance(description, dict) else None
    if type(number) is not int or number < 1:
        raise UsageError(f"{path} does not describe a kryograph model.")
    if number > MODEL_FORMAT:
        raise UsageError(
            f"{path} has format {number}, written by kryograph {description.get('kryograph')}. "
            f"kryograph {version('kryograph')} reads formats up to {MODEL_FORMAT}: install a newer "
            "version."
        )
    content = {key: value for key, value in description.items() if key != "digest"}
    if description.get("digest") != _digest(content):
        raise UsageError(
            f"{path} was changed after it was written. Fit again, or copy the whole folder again."
        )
    return content


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise UsageError(
            f"There is no {path}: {path.parent} must be the folder of a model."
        ) from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
