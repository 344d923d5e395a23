"""Trees: extremely randomised trees on aggregated features, degrees and eigenvectors.

Trees use thresholds and interactions of features, which a linear head cannot. They are a strong
baseline on tables, and on graphs whose neighbours often have different classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

from kryograph.basis import Basis
from kryograph.graph import Indices
from kryograph.systems.base import Probabilities, Weights, register
from kryograph.systems.head import HeadSystem, tensors
from kryograph.systems.settings import Settings, setting


@dataclass(frozen=True)
class TreesSettings(Settings):
    """Settings of the trees: how many are grown."""

    trees: int = setting(200, "number of trees", low=1, below=100_000)
    leaf: int = setting(
        1, "smallest number of labels in a leaf", low=1, below=100_000, search=(1, 2, 4)
    )
    fold_trees: int = setting(50, "number of trees where labels are held out", low=1, below=100_000)


@register(
    "trees",
    summary="Extremely randomised trees on aggregated features, degrees and eigenvectors.",
    paper="Geurts, Ernst, Wehenkel: Extremely randomized trees. Machine Learning 2006",
    equation="φ = [Z, PZ, P²Z, S²Z, degrees, eigenvectors of S and A]; mean of trees on φ",
    settings=TreesSettings,
)
class TreesSystem(HeadSystem[TreesSettings]):
    """Trees; the weights are the probabilities of all nodes of the graph of the fit."""

    @property
    def prior(self) -> float:
        return 6.0  # on folds there are fewer trees, which predict worse than all of them

    @property
    def representation(self) -> str:
        return "tree"

    @property
    def recomputed(self) -> bool:
        return False  # the forest is not kept

    def learn(
        self, basis: Basis, nodes: Indices, labels: Indices, classes: int, seed: int
    ) -> Weights:
        rows = basis.rows("tree")
        forest = self._grow(rows[nodes], labels, self.settings.trees, seed)
        return tensors(probabilities=_predict(forest, rows, classes))

    def score(self, basis: Basis, weights: Weights, classes: int) -> Probabilities:
        return np.asarray(weights["probabilities"].numpy())

    def learn_folds(
        self,
        basis: Basis,
        nodes: Indices,
        labels: Indices,
        classes: int,
        folds: Sequence[tuple[Indices, Indices]],
        seed: int,
    ) -> list[Probabilities]:
        rows = basis.rows("tree")[nodes]
        results = []
        for train, held_out in folds:
            forest = self._grow(rows[train], labels[train], self.settings.fold_trees, seed)
            results.append(_predict(forest, rows[held_out], classes))
        return results

    def _grow(
        self, rows: np.ndarray, labels: Indices, count: int, seed: int
    ) -> ExtraTreesClassifier:
        leaf = self.settings.leaf
        return ExtraTreesClassifier(count, min_samples_leaf=leaf, random_state=seed).fit(
            rows, labels
        )


def _predict(forest: ExtraTreesClassifier, rows: np.ndarray, classes: int) -> Probabilities:
    """Probabilities of all classes, also of those that the forest has not seen.

    The leaves of a tree are pure, so the mean vote for a class is often exactly zero. Half a vote
    is shared among all classes, which keeps every logarithm finite.
    """
    probabilities = np.zeros((len(rows), classes))
    votes = len(forest.estimators_)
    probabilities[:, forest.classes_] = forest.predict_proba(rows)
    return (probabilities * votes + 0.5 / classes) / (votes + 0.5)
