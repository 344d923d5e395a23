"""Figure 1 and appendix III: how many columns stay independent, layer by layer.

The experiment of appendix II draws a graph G(n, p), features and weights from N(0, 1). L is the
renormalised adjacency, and each row of X is divided by its sum. A layer is one of

    GCN               H_{l+1} = f(L H_l W_l)
    Snowball          H_{l+1} = f(L [H_0, …, H_l] W_l)
    truncated Krylov  H_{l+1} = f([H_l, L H_l, …, L^{m-1} H_l] W_l)

and the rank of its output is the number of singular values above max(rows, columns) · ε · σ_max in
float64, which is what `rank` counts in NumPy and MATLAB.

With weights from N(0, 1) the entries grow by a factor per layer until they leave the range of
float64. Therefore all features are stored multiplied by a power of two s, and f is replaced by
f_s(z) = s f(z / s), so that a layer maps s H_l to s H_{l+1}. This changes no digit and no rank.
Identity, ReLU and leaky ReLU are their own f_s; the other activations take s.

>>> z = torch.tensor([-3.0, 0.25, 3.0], dtype=torch.float64)
>>> SCALED["softshrink"](z, 1.0).tolist(), SCALED["softshrink"](z / 4, 1 / 4).tolist()
([-2.5, 0.0, 2.5], [-0.625, 0.0, 0.625])
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from kryograph.figures.figure import FigureResult
from kryograph.figures.style import add_legend, letter_titles, panels, styled
from kryograph.nn.functional import side_by_side
from kryograph.operators import Operator, from_adjacency
from kryograph.text import OnProgress, ignore_progress

Ranks: TypeAlias = npt.NDArray[np.int64]
"""Ranks of the layers' outputs, repetitions × layers."""

RankTable: TypeAlias = Mapping[tuple[str, str], Ranks]
"""Ranks of each architecture and activation."""

BEND = 0.5
"""Threshold λ of hard and soft shrink, as in torch."""

ALPHA, GAIN = 1.6732632423543772, 1.0507009873554805
"""Constants α and λ of SELU."""


def _elu(z: Tensor, s: float, alpha: float = 1.0) -> Tensor:
    # Where z is positive the other branch may be infinite; `where` ignores it.
    return torch.where(z > 0, z, alpha * s * torch.expm1(z / s))


SCALED: dict[str, Callable[[Tensor, float], Tensor]] = {
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
"""Functions f_s of z and s, in the order in which appendix III lists them."""


def check_activations(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of activations, if each of them exists and occurs once."""
    names = tuple(names)
    for name in names:
        if name not in SCALED:
            raise unknown("activation", name, SCALED)
        if names.count(name) > 1:
            raise UsageError(f"The activation {name!r} is named {names.count(name)} times.")
    if not names:
        raise UsageError(f"Name at least one activation: {', '.join(SCALED)}.")
    return names


LARGE_ENTRY = 2.0**300
"""If an entry is larger than this, all features are divided by the power of 2 above it."""

SMALLEST_SCALE = 2.0**-900
"""Lower limit of the scale; where f_s depends on a smaller one, the difference is rounding."""


def numerical_rank(matrix: Tensor | npt.NDArray[np.floating]) -> int:
    """Count the singular values above max(rows, columns) · ε · σ_max.

    >>> numerical_rank(torch.tensor([[1.0, 2.0], [2.0, 4.0]])), numerical_rank(torch.zeros(3, 2))
    (1, 0)
    """
    return int(torch.linalg.matrix_rank(torch.as_tensor(matrix)))


@dataclass(frozen=True)
class Architecture:
    """A network of the experiment.

    `step` computes the argument of f in a layer from L, H_0 … H_l and W_l.
    """

    title: str  # of its panel
    look: Mapping[str, Any]  # colour, label and dashes of its line
    step: Callable[[Operator, Sequence[Tensor], Tensor], Tensor]
    krylov: bool = False  # whether a layer sees m Krylov blocks of its input
    dense: bool = False  # whether a layer sees all layers before it instead of the last one


def _krylov(L: Operator, hidden: Sequence[Tensor], weight: Tensor) -> Tensor:
    # Horner's rule: the products with L are only as wide as the output.
    *first, last = torch.split(weight, hidden[-1].shape[1])
    total = hidden[-1] @ last
    for part in reversed(first):
        total = hidden[-1] @ part + L @ total
    return total


ARCHITECTURES: dict[str, Architecture] = {
    "gcn": Architecture(
        "Deep GCN",
        {"color": style.RED, "label": "GCN"},
        lambda L, hidden, weight: L @ (hidden[-1] @ weight),
    ),
    "snowball": Architecture(
        "Snowball",
        {"color": style.BLUE, "linestyle": style.DASHED, "label": "Snowball"},
        lambda L, hidden, weight: L @ side_by_side(hidden, weight),
        dense=True,
    ),
    "truncated-krylov": Architecture(
        "Truncated block Krylov",
        {"color": style.GREEN, "linestyle": style.DASHDOT, "label": "truncated Krylov"},
        _krylov,
        krylov=True,
    ),
}


@dataclass(frozen=True)
class RankExperiment:
    """Sizes of the experiment; the defaults are those of appendix II."""

    nodes: int = 1000  # n of G(n, p)
    probability: float = 0.01  # p of G(n, p)
    features: int = 500  # columns of X
    width: int = 128  # columns of every layer's output
    order: int = 3  # number m of Krylov blocks
    layers: int = 100
    repetitions: int = 20  # draws of graph, features and weights
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("nodes", "features", "width", "order", "layers", "repetitions"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1; it is {getattr(self, name)}.")
        if not 0 <= self.probability <= 1:
            raise UsageError(f"The probability of an edge cannot be {self.probability}.")
        if self.seed < 0:
            raise UsageError(f"--seed must not be negative; it is {self.seed}.")

    def draw(self, repetition: int) -> tuple[Operator, Tensor]:
        """Draw L and X of a repetition."""
        rng = np.random.default_rng([self.seed, repetition])
        upper = np.triu(rng.random((self.nodes, self.nodes)) < self.probability, 1)
        adjacency = sp.csr_array((upper | upper.T).astype(np.float64))
        x = rng.standard_normal((self.nodes, self.features))
        return from_adjacency(adjacency), torch.from_numpy(x / x.sum(axis=1, keepdims=True))

    def weights(self, architecture: str, repetition: int) -> Iterator[Tensor]:
        """Draw W_0, W_1, … of a repetition; they are the same for every activation."""
        index = list(ARCHITECTURES).index(architecture)
        traits = ARCHITECTURES[architecture]
        rng = np.random.default_rng([self.seed, repetition, 1 + index])
        inputs = self.features
        for _ in range(self.layers):
            rows = inputs * (self.order if traits.krylov else 1)
            yield torch.from_numpy(rng.standard_normal((rows, self.width)))
            inputs = inputs + self.width if traits.dense else self.width


QUICK_RANKS = RankExperiment(
    nodes=200, probability=0.05, features=100, width=32, layers=60, repetitions=3
)
"""The experiment at a fifth of the size."""


@dataclass
class ScaledLayers:
    """Forward pass of a deep network, layer by layer."""

    architecture: Architecture
    activation: str  # name of f
    hidden: list[Tensor]  # features that the next layer sees, multiplied by the scale
    scale: float = 1.0  # the power of two s
    large: float = LARGE_ENTRY  # largest entry that does not change the scale

    def forward(self, L: Operator, weight: Tensor) -> Tensor:
        """Compute one more layer, and return its output multiplied by the scale."""
        z = self.architecture.step(L, self.hidden, weight)
        h = SCALED[self.activation](z, self.scale)
        self.hidden = [*self.hidden, h] if self.architecture.dense else [h]
        largest = float(h.abs().max())
        if largest > self.large:
            factor = 2.0 ** -math.frexp(largest)[1]
            self.hidden = [block * factor for block in self.hidden]
            self.scale = max(self.scale * factor, SMALLEST_SCALE)
        return self.hidden[-1]


@torch.no_grad()
def measure_ranks(
    experiment: RankExperiment,
    architectures: Sequence[str] = tuple(ARCHITECTURES),
    activations: Sequence[str] = tuple(SCALED),
    progress: OnProgress = ignore_progress,
) -> dict[tuple[str, str], Ranks]:
    """Ranks of every layer's output, for every architecture and activation."""
    for name in architectures:
        if name not in ARCHITECTURES:
            raise unknown("architecture", name, ARCHITECTURES)
    activations = check_activations(activations)
    size = (experiment.repetitions, experiment.layers)
    table = {(a, f): np.zeros(size, np.int64) for a in architectures for f in activations}
    for repetition in range(experiment.repetitions):
        L, x = experiment.draw(repetition)
        stage = f"repetition {repetition + 1} of {experiment.repetitions}"
        for index, name in enumerate(architectures):
            networks = {f: ScaledLayers(ARCHITECTURES[name], f, [x]) for f in activations}
            for layer, weight in enumerate(experiment.weights(name, repetition)):
                for f, network in networks.items():
                    table[name, f][repetition, layer] = numerical_rank(network.forward(L, weight))
                part = (index + (layer + 1) / experiment.layers) / len(architectures)
                progress(stage, (repetition + part) / experiment.repetitions)
    return table


def compute_ranks(
    experiment: RankExperiment,
    activations: Sequence[str] = tuple(SCALED),
    *,
    transposed: bool = False,
    progress: OnProgress = ignore_progress,
) -> FigureResult:
    """Do the experiment and draw it; with `transposed`, also a panel for each activation."""
    table = measure_ranks(experiment, activations=activations, progress=progress)
    layers = [layer for layer in SUMMARY_LAYERS if layer <= experiment.layers]
    means = {
        f"{name} {f}": {str(layer): float(ranks[:, layer - 1].mean()) for layer in layers}
        for (name, f), ranks in table.items()
    }
    drawings = {"": draw_by_architecture(table)}
    if transposed:
        drawings["-transposed"] = draw_by_activation(table)
    about = {
        "experiment": dataclasses.asdict(experiment),
        "precision": "float64",
        "rank": "singular values above max(rows, columns) · eps · largest",
        "mean_rank": means,
    }
    headings = ("mean rank after layer", *map(str, layers))
    lines = [(line, *(f"{mean:.1f}" for mean in row.values())) for line, row in means.items()]
    return FigureResult(drawings, rank_rows(table), about, [(headings, lines)])


SUMMARY_LAYERS = (1, 10, 20, 30, 40, 50, 65, 80, 100)
"""Layers whose mean ranks are printed."""


def rank_rows(table: RankTable) -> list[dict[str, object]]:
    """Mean and standard deviation of each architecture, activation and layer."""
    return [
        {
            "architecture": name,
            "activation": f,
            "layer": layer + 1,
            "mean": float(column.mean()),
            "std": float(column.std(ddof=1)) if len(column) > 1 else 0.0,
        }
        for (name, f), ranks in table.items()
        for layer, column in enumerate(ranks.T)
    ]


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
"""Lines of the activations. Solid ones are drawn first, so that they cover no dashed one."""


@styled
def draw_by_architecture(table: RankTable) -> Figure:
    """Draw a panel for each architecture with a line for each activation."""
    architectures, activations = _lines_of(table)
    # Many names need the space below the panels; a few fit into the first panel.
    many = len(activations) > 4
    figure, axes = panels(1, len(architectures), 2.75 if many else 2.3, sharey=True)
    for name, axis in zip(architectures, axes, strict=True):
        _draw_panel(axis, [(table[name, f], LOOKS[f]) for f in activations], table)
        axis.set_xlabel("layer")
    letter_titles(axes, [ARCHITECTURES[name].title for name in architectures])
    axes[0].set_ylabel("independent columns")
    if many:
        add_legend(figure, loc="outside lower center", ncols=5)
    else:
        axes[0].legend(loc="center right")
    return figure


@styled
def draw_by_activation(table: RankTable) -> Figure:
    """Draw a panel for each activation with a line for each architecture."""
    architectures, activations = _lines_of(table)
    columns = min(5, len(activations))
    rows = -(-len(activations) // columns)
    figure, axes = panels(rows, columns, 0.5 + 1.5 * rows, sharex=True, sharey=True)
    used, unused = axes[: len(activations)], axes[len(activations) :]
    for axis in unused:
        axis.set_visible(False)
    for f, axis in zip(activations, used, strict=True):
        _draw_panel(axis, [(table[a, f], ARCHITECTURES[a].look) for a in architectures], table)
    letter_titles(used, [LOOKS[f]["label"] for f in activations])
    figure.supxlabel("layer", fontsize=8)
    figure.supylabel("independent columns", fontsize=8)
    add_legend(figure, loc="outside upper center", ncols=len(architectures))
    return figure


def _lines_of(table: RankTable) -> tuple[list[str], list[str]]:
    """Architectures and activations of a table, the latter in the order of drawing."""
    names, activations = zip(*table, strict=True)
    return list(dict.fromkeys(names)), [f for f in LOOKS if f in activations]


def _draw_panel(
    axis: Axes, lines: Sequence[tuple[Ranks, Mapping[str, Any]]], table: RankTable
) -> None:
    """Draw means with bands of one standard deviation; all panels have the limits of `table`."""
    for ranks, look in lines:
        layers = np.arange(1, ranks.shape[1] + 1)
        mean = ranks.mean(axis=0)
        axis.plot(layers, mean, **look)
        if len(ranks) > 1:
            std = ranks.std(axis=0, ddof=1)
            band = (layers, mean - std, mean + std)
            axis.fill_between(*band, color=look["color"], alpha=0.18, linewidth=0)
    axis.set_xlim(0, lines[0][0].shape[1])
    axis.set_ylim(0, 1.06 * max(int(ranks.max()) for ranks in table.values()))
