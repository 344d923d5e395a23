"""The ten activations of appendix III at any scale: f_s(z) = s f(z / s).

A deep network with weights from N(0, 1) grows by a factor per layer, and leaves float64's range
sooner or later. If everything is kept multiplied by s, a layer maps s H to s f(H …) = f_s(s H …):
the rank is the same, as s H has that of H. Where f is positively homogeneous (identity, ReLU, leaky
ReLU) f_s = f; the others have a bend or a slope at a place of their own, which moves with s. So the
formulas below take s, and no part of them leaves the range when z / s does.

>>> z = torch.tensor([-3.0, 0.25, 3.0], dtype=torch.float64)
>>> SCALED["softshrink"](z, 1.0).tolist(), SCALED["softshrink"](z / 4, 1 / 4).tolist()
([-2.5, 0.0, 2.5], [-0.625, 0.0, 0.625])

The rank experiment of appendix II: how many independent columns are left, layer by layer.

A graph G(n, p) and features from N(0, 1), both normalised as Kipf and Welling do (L is the
renormalised adjacency; each row of X is divided by its sum), weights from N(0, 1), and the rank of
every hidden layer's output on the way forward:

    GCN               H_{l+1} = f(L H_l W_l)
    Snowball          H_{l+1} = f(L [H_0, …, H_l] W_l)
    truncated Krylov  H_{l+1} = f([H_l, L H_l, …, L^{m-1} H_l] W_l)

The rank is the number of singular values above max(rows, columns) · ε · σ_max in float64, which is
what NumPy's and MATLAB's `rank` count. Everything is multiplied by a power of two before it gets
too large (`activations`): no digit changes, and no rank.

Figure 1 and the figures of appendix III: ranks against layers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import hardshrink, leaky_relu, softshrink

from kryograph.errors import UsageError, unknown
from kryograph.figures import style
from kryograph.figures.style import letter, panels, styled
from kryograph.nn.functional import side_by_side
from kryograph.operators import Operator, from_adjacency

Scaled: TypeAlias = Callable[[Tensor, float], Tensor]

BEND = 0.5
"""Where hard and soft shrink bend, as in torch."""

ALPHA, GAIN = 1.6732632423543772, 1.0507009873554805
"""The constants of SELU."""


def _elu(z: Tensor, s: float, alpha: float = 1.0) -> Tensor:
    # Where z is positive the other branch may be infinite: `where` does not look at it.
    return torch.where(z > 0, z, alpha * s * torch.expm1(z / s))


SCALED: dict[str, Scaled] = {
    "elu": _elu,
    "hardshrink": lambda z, s: hardshrink(z, BEND * s),
    "selu": lambda z, s: GAIN * _elu(z, s, ALPHA),
    "softshrink": lambda z, s: softshrink(z, BEND * s),
    "tanhshrink": lambda z, s: z - s * torch.tanh(z / s),
    "identity": lambda z, s: z,
    "sigmoid": lambda z, s: s * torch.sigmoid(z / s),
    "relu": lambda z, s: torch.relu(z),
    "leaky-relu": lambda z, s: leaky_relu(z),
    "tanh": lambda z, s: s * torch.tanh(z / s),
}
"""In the order in which appendix III lists them."""


def checked(names: Iterable[str]) -> tuple[str, ...]:
    """Names of activations, each of which exists and stands there once."""
    names = tuple(names)
    for name in names:
        if name not in SCALED:
            raise unknown("activation", name, SCALED)
        if names.count(name) > 1:
            raise UsageError(f"The activation {name!r} is named {names.count(name)} times.")
    if not names:
        raise UsageError(f"There must be an activation at least; there are: {', '.join(SCALED)}.")
    return names


LARGE_ENTRY = 2.0**300
"""When the largest entry is above this, everything is divided by it (rounded to a power of 2)."""

SMALLEST_ENTRY = 2.0**-900
"""At this scale all that scaling can tell apart is below the rounding of the largest entry."""

Ranks: TypeAlias = npt.NDArray[np.int64]
LayerStep: TypeAlias = Callable[[Operator, Sequence[Tensor], Tensor], Tensor]


def numerical_rank(matrix: Tensor | npt.NDArray[np.floating]) -> int:
    """Numerical rank: singular values above max(rows, columns) · ε · σ_max.

    >>> numerical_rank(torch.tensor([[1.0, 2.0], [2.0, 4.0]])), numerical_rank(torch.zeros(3, 2))
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
    step: LayerStep
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


QUICK_RANKS = RankExperiment(
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
    large: float = field(default=LARGE_ENTRY, repr=False)

    def forward(self, L: Operator, weight: Tensor) -> Tensor:
        """One layer more; returns its output, times the scale."""
        z = self.architecture.step(L, self.hidden, weight)
        h = SCALED[self.activation](z, self.scale)
        self.hidden = [*self.hidden, h] if self.architecture.dense else [h]
        largest = float(h.abs().max())
        if largest > self.large:
            factor = 2.0 ** -math.frexp(largest)[1]
            self.hidden = [block * factor for block in self.hidden]
            self.scale = max(self.scale * factor, SMALLEST_ENTRY)
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
                    found[name, f][repetition, layer] = numerical_rank(network.forward(L, weight))
                part = (place + (layer + 1) / experiment.layers) / len(architectures)
                progress(stage, (repetition + part) / experiment.repetitions)
    return found


def rank_rows(found: dict[tuple[str, str], Ranks]) -> list[dict[str, object]]:
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


RanksByActivation = Mapping[tuple[str, str], Ranks]

LOOKS: dict[str, dict[str, Any]] = {
    "relu": {"color": style.RED, "label": "ReLU"},
    "leaky-relu": {"color": style.RED, "linestyle": style.DASHED, "label": "leaky ReLU"},
    "elu": {"color": style.ORANGE, "label": "ELU"},
    "selu": {"color": style.ORANGE, "linestyle": style.DOTTED, "label": "SELU"},
    "hardshrink": {"color": style.GREY, "label": "hard shrink"},
    "identity": {"color": style.BLACK, "linestyle": style.DASHDOT, "label": "identity"},
    "softshrink": {"color": style.PINK, "linestyle": style.DASHED, "label": "soft shrink"},
    "tanhshrink": {"color": style.SKY, "linestyle": style.DOTTED, "label": "tanh shrink"},
    "tanh": {"color": style.BLUE, "label": "tanh"},
    "sigmoid": {"color": style.GREEN, "linestyle": style.DASHED, "label": "sigmoid"},
}
"""Solid lines come first, so that they hide no dashed one that lies on them."""

ARCHITECTURE_LOOKS: dict[str, dict[str, Any]] = {
    "gcn": {"color": style.RED, "label": "GCN"},
    "snowball": {"color": style.BLUE, "linestyle": style.DASHED, "label": "Snowball"},
    "truncated-krylov": {
        "color": style.GREEN,
        "linestyle": style.DASHDOT,
        "label": "truncated Krylov",
    },
}


@styled
def by_architecture(found: RanksByActivation) -> Figure:
    """A panel for each architecture, a line for each activation: figure 1, appendix III."""
    architectures, activations = _axes(found)
    # Many names go below the panels; a few fit into the first.
    many = len(activations) > 4
    figure, axes = panels(1, len(architectures), 2.75 if many else 2.3, sharey=True)
    for name, axis in zip(architectures, axes, strict=True):
        for f in activations:
            _line(axis, found[name, f], LOOKS[f])
        _limits(axis, found[name, activations[0]], found)
        axis.set_xlabel("layer")
    letter(axes, [ARCHITECTURES[name].title for name in architectures])
    axes[0].set_ylabel("independent columns")
    if many:
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5)
    else:
        axes[0].legend(loc="center right")
    return figure


@styled
def by_activation(found: RanksByActivation) -> Figure:
    """The transposed view: a panel for each activation, a line for each architecture."""
    architectures, activations = _axes(found)
    columns = min(5, len(activations))
    rows = -(-len(activations) // columns)
    figure, axes = panels(rows, columns, 0.5 + 1.5 * rows, sharex=True, sharey=True)
    for axis in axes[len(activations) :]:
        axis.set_visible(False)
    shown = axes[: len(activations)]
    for f, axis in zip(activations, shown, strict=True):
        for name in architectures:
            _line(axis, found[name, f], ARCHITECTURE_LOOKS[name])
        _limits(axis, found[architectures[0], f], found)
    letter(shown, [LOOKS[f]["label"] for f in activations])
    figure.supxlabel("layer", fontsize=8)
    figure.supylabel("independent columns", fontsize=8)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(architectures))
    return figure


def _axes(found: RanksByActivation) -> tuple[Sequence[str], Sequence[str]]:
    architectures = list(dict.fromkeys(name for name, _ in found))
    present = {f for _, f in found}
    return architectures, [f for f in LOOKS if f in present]


def _line(axis: Axes, table: Ranks, look: Mapping[str, Any]) -> None:
    layers = np.arange(1, table.shape[1] + 1)
    mean = table.mean(axis=0)
    axis.plot(layers, mean, **look)
    if len(table) > 1:
        std = table.std(axis=0, ddof=1)
        axis.fill_between(
            layers, mean - std, mean + std, color=look["color"], alpha=0.18, linewidth=0
        )


def _limits(axis: Axes, table: Ranks, found: RanksByActivation) -> None:
    top = max(int(each.max()) for each in found.values())
    axis.set_xlim(0, table.shape[1])
    axis.set_ylim(0, 1.06 * top)
