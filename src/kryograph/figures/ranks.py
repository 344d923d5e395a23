"""The rank experiment of appendix II: how many independent columns are left, layer by layer.

A graph G(n, p) and features from N(0, 1), both normalised as Kipf and Welling do (L is the
renormalised adjacency; each row of X is divided by its sum), weights from N(0, 1), and the rank of
every hidden layer's output on the way forward:

    GCN               H_{l+1} = f(L H_l W_l)
    Snowball          H_{l+1} = f(L [H_0, …, H_l] W_l)
    truncated Krylov  H_{l+1} = f([H_l, L H_l, …, L^{m-1} H_l] W_l)

The rank is the number of singular values above max(rows, columns) · ε · σ_max in float64, which is
what NumPy's and MATLAB's `rank` count. Everything is multiplied by a power of two before it gets
too large (`activations`): no digit changes, and no rank.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from kryograph.errors import UsageError, unknown
from kryograph.figures.activations import SCALED, checked
from kryograph.nn.functional import side_by_side
from kryograph.operators import Operator, from_adjacency

LARGE = 2.0**300
"""When the largest entry is above this, everything is divided by it (rounded to a power of 2)."""

SMALLEST = 2.0**-900
"""At this scale all that scaling can tell apart is below the rounding of the largest entry."""

Ranks: TypeAlias = npt.NDArray[np.int64]
Step: TypeAlias = Callable[[Operator, Sequence[Tensor], Tensor], Tensor]


def rank(matrix: Tensor | npt.NDArray[np.floating]) -> int:
    """Numerical rank: singular values above max(rows, columns) · ε · σ_max.

    >>> rank(torch.tensor([[1.0, 2.0], [2.0, 4.0]])), rank(torch.zeros(3, 2))
    (1, 0)
    """
    values = torch.linalg.svdvals(torch.as_tensor(matrix))
    if not len(values):
        return 0
    tolerance = max(matrix.shape) * torch.finfo(values.dtype).eps * values[0]
    return int((values > tolerance).sum())


@dataclass(frozen=True)
class Architecture:
    """What goes into f, given H_0 … H_l and W_l; and how many blocks wide W_l is."""

    title: str
    step: Step
    blocks: Callable[[int], int]
    """How often the last layer's output is stacked, given the number m of Krylov blocks."""
    dense: bool = False
    """Whether a layer sees all layers before it, and not the last one only."""


def _gcn(L: Operator, hidden: Sequence[Tensor], weight: Tensor) -> Tensor:
    return L @ (hidden[-1] @ weight)


def _snowball(L: Operator, hidden: Sequence[Tensor], weight: Tensor) -> Tensor:
    return L @ side_by_side(hidden, weight)


def _krylov(L: Operator, hidden: Sequence[Tensor], weight: Tensor) -> Tensor:
    # By Horner: the products with L are as wide as the output.
    *first, last = torch.split(weight, hidden[-1].shape[1])
    total = hidden[-1] @ last
    for part in reversed(first):
        total = hidden[-1] @ part + L @ total
    return total


ARCHITECTURES: dict[str, Architecture] = {
    "gcn": Architecture("Deep GCN", _gcn, lambda order: 1),
    "snowball": Architecture("Snowball", _snowball, lambda order: 1, dense=True),
    "truncated-krylov": Architecture("Truncated block Krylov", _krylov, lambda order: order),
}


@dataclass(frozen=True)
class RankExperiment:
    """Appendix II, with its numbers.

    Args:
        nodes: n of G(n, p).
        probability: p of G(n, p).
        features: Columns of X.
        width: Columns of every layer's output.
        order: Number m of Krylov blocks.
        layers: How deep.
        repetitions: How often a graph, features and weights are drawn.
        seed: Fixes all of them.
    """

    nodes: int = 1000
    probability: float = 0.01
    features: int = 500
    width: int = 128
    order: int = 3
    layers: int = 100
    repetitions: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("nodes", "features", "width", "order", "layers", "repetitions"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1; it is {getattr(self, name)}.")
        if not 0 <= self.probability <= 1:
            raise UsageError(f"An edge's probability cannot be {self.probability}.")
        if self.seed < 0:
            raise UsageError(f"--seed must not be negative; it is {self.seed}.")

    def draw(self, repetition: int) -> tuple[Operator, Tensor]:
        """L and X of a repetition."""
        rng = np.random.default_rng([self.seed, repetition])
        upper = np.triu(rng.random((self.nodes, self.nodes)) < self.probability, 1)
        adjacency = sp.csr_array((upper | upper.T).astype(np.float64))
        x = rng.standard_normal((self.nodes, self.features))
        return from_adjacency(adjacency), torch.from_numpy(x / x.sum(axis=1, keepdims=True))

    def weights(self, architecture: str, repetition: int) -> Iterator[Tensor]:
        """W_0, W_1, …: the same ones for every activation."""
        made = ARCHITECTURES[architecture]
        place = list(ARCHITECTURES).index(architecture)
        rng = np.random.default_rng([self.seed, repetition, 1 + place])
        seen = self.features
        for _ in range(self.layers):
            rows = seen * made.blocks(self.order)
            yield torch.from_numpy(rng.standard_normal((rows, self.width)))
            seen = seen + self.width if made.dense else self.width


QUICK = RankExperiment(
    nodes=200, probability=0.05, features=100, width=32, layers=60, repetitions=3
)
"""The same shapes, at a fifth of the size."""


@dataclass
class Network:
    """A network on its way forward: s H_0 … s H_l, as many of them as the next layer sees."""

    architecture: Architecture
    activation: str
    hidden: list[Tensor]
    scale: float = 1.0
    large: float = field(default=LARGE, repr=False)

    def forward(self, L: Operator, weight: Tensor) -> Tensor:
        """One layer more; returns its output, times the scale."""
        z = self.architecture.step(L, self.hidden, weight)
        h = SCALED[self.activation](z, self.scale)
        self.hidden = [*self.hidden, h] if self.architecture.dense else [h]
        largest = float(h.abs().max())
        if largest > self.large:
            factor = 2.0 ** -math.frexp(largest)[1]
            self.hidden = [block * factor for block in self.hidden]
            self.scale = max(self.scale * factor, SMALLEST)
        return self.hidden[-1]


@torch.no_grad()
def ranks(
    experiment: RankExperiment,
    architectures: Sequence[str] = tuple(ARCHITECTURES),
    activations: Sequence[str] = tuple(SCALED),
    progress: Callable[[str, float], None] = lambda stage, share: None,
) -> dict[tuple[str, str], Ranks]:
    """Repetitions × layers ranks, for every architecture and activation."""
    for name in architectures:
        if name not in ARCHITECTURES:
            raise unknown("architecture", name, ARCHITECTURES)
    activations = checked(activations)
    size = (experiment.repetitions, experiment.layers)
    found = {(a, f): np.zeros(size, np.int64) for a in architectures for f in activations}
    for repetition in range(experiment.repetitions):
        L, x = experiment.draw(repetition)
        stage = f"repetition {repetition + 1} of {experiment.repetitions}"
        for place, name in enumerate(architectures):
            networks = {f: Network(ARCHITECTURES[name], f, [x]) for f in activations}
            for layer, weight in enumerate(experiment.weights(name, repetition)):
                for f, network in networks.items():
                    found[name, f][repetition, layer] = rank(network.forward(L, weight))
                part = (place + (layer + 1) / experiment.layers) / len(architectures)
                progress(stage, (repetition + part) / experiment.repetitions)
    return found


def rows(found: dict[tuple[str, str], Ranks]) -> list[dict[str, object]]:
    """A row for each architecture, activation and layer: mean and standard deviation."""
    return [
        {
            "architecture": name,
            "activation": f,
            "layer": layer + 1,
            "mean": float(column.mean()),
            "std": float(column.std(ddof=1)) if len(column) > 1 else 0.0,
        }
        for (name, f), table in found.items()
        for layer, column in enumerate(table.T)
    ]
