"""Prototypes: class means of diffused features, a closed form that networks have to beat.

S = X + LX + … + L^K X with rows at unit length; the score of class c for node i is the cosine of
S_i and the mean of S over the labelled nodes of c. X are the features, L is the operator.

A mean of two or three nodes is a poor one. With `rounds`, unlabelled nodes contribute: each belongs
to the classes with its probabilities, and a prototype becomes the mean of the labelled nodes and of
these, which count as `pull` labels. With many labels they hardly matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from kryograph.basis import REPRESENTATIONS, Basis, Rows
from kryograph.engine.cost import Estimate, gemm_cost, memory_pass_cost, spmm_cost, temporary
from kryograph.explain.contributions import Values
from kryograph.explain.rows import RowForm, RowSource
from kryograph.graph import Graph, Indices, Task
from kryograph.nn import krylov_blocks
from kryograph.operators import operator
from kryograph.systems.base import Probabilities, Weights, register
from kryograph.systems.head import HeadSystem
from kryograph.systems.network import features_on_device
from kryograph.systems.settings import SearchRange, Settings, setting
from kryograph.training.loop import DEFAULT_CONDITIONS, Conditions

LARGEST_EXACT = 2 * 10**8
"""Features with more entries than this (nodes × features) are projected to fewer columns."""

PROJECTED = 512
"""Number of columns of projected features."""


def diffused(
    graph: Graph, name: str, hops: int, *, columns: int | None = None, device: str = "cpu"
) -> Tensor:
    """Compute X + LX + … + L^hops X with rows at unit length.

    Args:
        graph: Graph with features X.
        name: Name of the operator L.
        hops: Largest power.
        columns: Number of columns that X is projected to; None leaves X as it is.
        device: Device of the result.
    """
    x = features_on_device(graph, device)
    if columns is not None:
        x = x @ _random_projection(x.shape[1], columns, x.dtype).to(device)
    total = torch.zeros(tuple(x.shape), dtype=x.dtype, device=device)
    for block in krylov_blocks(operator(graph, name), x, hops + 1):
        total += block
    return normalize(total, dim=1)


def _random_projection(features: int, columns: int, dtype: torch.dtype) -> Tensor:
    """A projection that keeps cosines up to a few hundredths, F × columns.

    It depends on the number of features alone, so that every graph gets the same.
    """
    generator = torch.Generator().manual_seed(features)
    return torch.randn(features, columns, generator=generator, dtype=dtype)


DENSE = tuple(name for name, kind in REPRESENTATIONS.items() if kind.inductive)
"""Representations that prototypes can be made of, beside the sum of this file."""


@dataclass(frozen=True)
class PrototypesSettings(Settings):
    """Settings of the prototypes; ours."""

    hops: int = setting(
        16, "K: how often to diffuse at most", low=0, below=10_000, search=SearchRange(0, 32)
    )
    sharpness: float = setting(
        20.0, "by which cosines are multiplied before the softmax", low=1e-6, below=1e6
    )
    rounds: int = setting(
        0, "how often unlabelled nodes improve the means", low=0, below=10_000, search=(0, 5, 10)
    )
    pull: float = setting(
        5.0,
        "how many labels the unlabelled nodes of a class count as; by validation nodes",
        low=0,
        below=1e6,
        search=SearchRange(0.5, 20, log=True),
    )
    representation: str = setting(
        "powers",
        "rows to learn from; 'powers' is the sum S above with the features as they are",
        choices=("powers", *DENSE),
        neutral="powers",
    )


@register(
    "prototypes",
    summary="Cosine to the classes' mean diffused features; no training.",
    paper="kryograph, 2026",
    equation="S = X + LX + … + L^K X, rows at unit length; score_c = cos(S_i, mean of class c)",
    settings=PrototypesSettings,
)
class PrototypesSystem(HeadSystem[PrototypesSettings]):
    """Prototypes; a class without labelled nodes is never predicted."""

    uses_seed = False
    uses_operator = True
    component_wise = True

    @property
    def prior(self) -> float:
        # A few labels determine few means well, and not the weight that a pool should give them.
        return 3.0 if self.settings.representation == "centred" else 1.0

    def learn(
        self, basis: Basis, nodes: Indices, labels: Indices, classes: int, seed: int
    ) -> Weights:
        points = self._points(basis, _columns(basis.graph))
        train, numbers = torch.from_numpy(nodes.copy()), torch.from_numpy(labels.copy())
        sums = points.new_zeros(classes, points.shape[1]).index_add_(0, numbers, points[train])
        labelled = normalize(sums, dim=1)
        counts = numbers.bincount(minlength=classes)
        weights = {"prototypes": labelled, "labelled": counts}
        for _ in range(self.settings.rounds):
            shares = torch.from_numpy(self._compare(points, weights)).to(points)
            shares[train] = 0
            unlabelled = normalize(shares.T @ points, dim=1)
            mixed = counts[:, None].to(points) * labelled + self.settings.pull * unlabelled
            weights["prototypes"] = normalize(mixed, dim=1)
        return weights

    def score(self, basis: Basis, weights: Weights, classes: int) -> Probabilities:
        return self._compare(self._points(basis, _projected_width(basis, weights)), weights)

    def coefficients(self, weights: Weights, row: Values) -> Values:
        length = np.linalg.norm(row)
        factor = self.settings.sharpness / length if length > 0 else 0.0
        return np.asarray(factor * weights["prototypes"].double().numpy().T)

    def rows(self, basis: Basis, weights: Weights) -> Rows:
        return self._points(basis, _projected_width(basis, weights)).numpy()

    def row_form(self, basis: Basis, weights: Weights) -> RowForm | None:
        if self.settings.representation != "powers":
            return super().row_form(basis, weights)
        x, projection = basis.graph.features, None
        width = _projected_width(basis, weights)
        if width is not None:
            projection = _random_projection(x.shape[1], width, torch.get_default_dtype()).numpy()
        source = RowSource(x, np.ones(basis.graph.n), projection=projection)
        steps = [operator(basis.graph, self.operator).matrix] * self.settings.hops
        return RowForm(source, steps, np.ones((1, self.settings.hops + 1)))

    @property
    def inductive(self) -> bool:
        return True

    def estimate(self, task: Task, conditions: Conditions = DEFAULT_CONDITIONS) -> Estimate:
        n, features = task.graph.features.shape
        width = _columns(task.graph) or features
        hop = spmm_cost(task.graph.adjacency.nnz + n, n, width) + memory_pass_cost(3 * n * width)
        means = gemm_cost(n, width, len(task.classes)) * (2 * self.settings.rounds + 1)
        once = hop * self.settings.hops + means + temporary(3 * n * width)
        return Estimate(len(task.classes) * width, once, epochs=1)

    def _points(self, basis: Basis, columns: int | None) -> Tensor:
        """Rows of unit length, N × d."""
        if self.settings.representation == "powers":
            return diffused(basis.graph, self.operator, self.settings.hops, columns=columns)
        rows = basis.rows(self.settings.representation)
        return normalize(torch.from_numpy(np.asarray(rows)), dim=1)

    def _compare(self, points: Tensor, weights: Weights) -> Probabilities:
        scores = self.settings.sharpness * (points @ weights["prototypes"].T).double()
        scores[:, weights["labelled"] == 0] = -torch.inf
        probabilities: Probabilities = scores.softmax(dim=1).numpy()
        return probabilities


def _projected_width(basis: Basis, weights: Weights) -> int | None:
    """Number of columns that the features were projected to; None if they were not."""
    width = int(weights["prototypes"].shape[1])
    return None if width == basis.graph.features.shape[1] else width


def _columns(graph: Graph) -> int | None:
    """Number of columns that large features are projected to; None for others."""
    return PROJECTED if math.prod(graph.features.shape) > LARGEST_EXACT else None
