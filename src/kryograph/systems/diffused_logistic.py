"""Diffused logistic: softmax regression on one representation of the nodes, exactly.

With `rounds`, unlabelled nodes take part: the target of each is its present prediction, sharpened,
and all of them together weigh as much as the labels (soft EM). The rows are rotated to their 64
leading directions for it, because directions in which nodes hardly differ carry noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from kryograph.basis import REPRESENTATIONS, Basis, Rows
from kryograph.errors import UsageError
from kryograph.explain.contributions import Values
from kryograph.graph import Indices
from kryograph.systems.base import Probabilities, Weights, register
from kryograph.systems.head import HeadSystem, tensors
from kryograph.systems.settings import SearchRange, Settings, setting
from kryograph.training.softmax_regression import coordinates, softmax_regression

SPARSE = ("features", "weighted", "neighbours")
"""Representations with as many columns as features or nodes."""

SHARPENING = 2.0
"""Exponent of the predictions that serve as targets."""

ALIGNMENTS = 10
"""Steps in which predictions are scaled to shares of the classes."""

MOST_UNLABELLED = 4000
"""Largest number of unlabelled nodes that are learned from; more do not change the answer."""

ROTATED = 64
"""Number of directions that are kept where unlabelled nodes take part."""


@dataclass(frozen=True)
class DiffusedLogisticSettings(Settings):
    """Settings of softmax regression on a representation."""

    representation: str = setting(
        "diffused",
        "rows to learn from",
        choices=tuple(REPRESENTATIONS),
        search=("diffused", "centred", "hops", "contrast", "weighted", "features"),
    )
    penalty: float = setting(
        0.1,
        "λ: factor of ‖W‖²/2 beside the sum of the losses",
        low=1e-8,
        below=1e6,
        search=SearchRange(1e-3, 10, log=True),
    )
    rounds: int = setting(
        0, "how often predictions of unlabelled nodes are learned from", low=0, below=1000
    )
    align: bool = setting(
        False, "whether these predictions are scaled to the labels' shares of the classes"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rounds and self.representation in SPARSE:
            raise UsageError(
                f"The setting 'rounds' must be 0 for the representation {self.representation!r}, "
                "which has too many columns."
            )


@register(
    "diffused-logistic",
    summary="Softmax regression on diffused features, solved exactly; no epochs.",
    paper="kryograph, 2026",
    equation="W = argmin Σ_i -log softmax(φ_i W)_{y_i} + λ/2 ‖W‖²; φ = Σ_{k≤10} 0.9^k L^k Z",
    settings=DiffusedLogisticSettings,
)
class DiffusedLogisticSystem(HeadSystem[DiffusedLogisticSettings]):
    """Softmax regression; a class without labelled nodes is never predicted."""

    uses_seed = False

    def learn(
        self, basis: Basis, nodes: Indices, labels: Indices, classes: int, seed: int
    ) -> Weights:
        present = np.bincount(labels, minlength=classes)
        if self.settings.rounds:
            rotation = _rotation(basis, self.representation)
            rows = np.asarray(basis.rows(self.representation) @ rotation, dtype=np.float64)
            wide = rotation @ self._grow(rows, nodes, labels, present, seed)
        else:
            labelled_rows = basis.rows(self.representation)[nodes]
            q, b = coordinates(_gram(labelled_rows))
            wide = labelled_rows.T @ (b @ self._solve(q, labels, present))
        return tensors(weights=wide.astype(np.float32), labelled=present)

    def score(self, basis: Basis, weights: Weights, classes: int) -> Probabilities:
        logits = basis.rows(self.representation) @ weights["weights"].numpy()
        return _probabilities(np.asarray(logits, dtype=np.float64), weights["labelled"].numpy())

    def coefficients(self, weights: Weights, row: Values) -> Values:
        return weights["weights"].double().numpy()

    def learn_folds(
        self,
        basis: Basis,
        nodes: Indices,
        labels: Indices,
        classes: int,
        folds: Sequence[tuple[Indices, Indices]],
        seed: int,
    ) -> list[Probabilities]:
        results = []
        if self.settings.rounds:
            rotation = _rotation(basis, self.representation)
            rows = np.asarray(basis.rows(self.representation) @ rotation, dtype=np.float64)
        else:
            rows, _ = coordinates(_gram(basis.rows(self.representation)[nodes]))
        for train, held_out in folds:
            present = np.bincount(labels[train], minlength=classes)
            if self.settings.rounds:
                w = self._grow(rows, nodes[train], labels[train], present, seed)
                results.append(_probabilities(rows[nodes[held_out]] @ w, present))
            else:
                w = self._solve(rows[train], labels[train], present)
                results.append(_probabilities(rows[held_out] @ w, present))
        return results

    def _solve(self, q: np.ndarray, labels: Indices, present: Indices) -> np.ndarray:
        """Coefficients r × C; those of classes without labels are zero."""
        return _spread(
            softmax_regression(q, _one_hot(labels, present), self.settings.penalty), present
        )

    def _grow(
        self, rows: np.ndarray, nodes: Indices, labels: Indices, present: Indices, seed: int
    ) -> np.ndarray:
        """Coefficients d × C, learned from the labels and from predictions of unlabelled nodes."""
        targets = _one_hot(labels, present)
        w = softmax_regression(rows[nodes], targets, self.settings.penalty)
        others = np.setdiff1d(np.arange(len(rows)), nodes)
        if others.size > MOST_UNLABELLED:
            others = np.random.default_rng(seed).choice(others, MOST_UNLABELLED, replace=False)
        if not others.size:
            return _spread(w, present)
        shares = targets.sum(axis=0) + 1
        together = np.concatenate([rows[nodes], rows[others]])
        weights = np.repeat([1.0, nodes.size / others.size], [nodes.size, others.size])
        for _ in range(self.settings.rounds):
            guesses: np.ndarray = softmax(SHARPENING * rows[others] @ w, axis=1)
            for _ in range(ALIGNMENTS if self.settings.align else 0):
                guesses *= shares / shares.sum() / guesses.mean(axis=0)
                guesses /= guesses.sum(axis=1, keepdims=True)
            both = np.concatenate([targets, guesses])
            w = softmax_regression(together, both, self.settings.penalty, weights, w)
        return _spread(w, present)


def _one_hot(labels: Indices, present: Indices) -> np.ndarray:
    """Targets n × (number of classes with labels)."""
    numbers = np.cumsum(present > 0) - 1
    return np.asarray(np.eye(int(numbers[-1]) + 1)[numbers[labels]])


def _spread(w: np.ndarray, present: Indices) -> np.ndarray:
    """Coefficients of all classes; those of classes without labels are zero."""
    wide = np.zeros((len(w), present.size))
    wide[:, present > 0] = w
    return wide


def _rotation(basis: Basis, representation: str) -> np.ndarray:
    """The leading directions of the rows, d × 64."""
    rows = basis.rows(representation)
    _, directions = np.linalg.eigh(_gram(rows.T))
    return np.asarray(directions[:, ::-1][:, :ROTATED])


def _gram(rows: Rows) -> np.ndarray:
    product = rows @ rows.T
    dense = product.toarray() if isinstance(product, sp.csr_array) else product
    return np.asarray(dense, dtype=np.float64)


def _probabilities(logits: np.ndarray, labelled: np.ndarray) -> Probabilities:
    logits[:, labelled == 0] = -np.inf
    result: Probabilities = softmax(logits, axis=1)
    return result
