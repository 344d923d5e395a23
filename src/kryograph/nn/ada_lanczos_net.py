r"""AdaLanczosNet: LanczosNet on a graph whose edge weights are learned.

.. math::
    A_{ij} = \tilde A_{ij} \exp(-\|f(x_i) - f(x_j)\|^2 / \varepsilon), \quad
    S = D^{-1/2} A D^{-1/2}

on the edges and loops of the graph; f has one hidden layer and ε is the mean of the squared
distances, over the edges of each component. Lanczos runs in every forward pass, with
gradients if they are wanted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from kryograph.krylov.lanczos import Basis, Multiplies, lanczos
from kryograph.krylov.parts import Parts
from kryograph.krylov.weighted import Weighted
from kryograph.nn.functional import Dense, Masks, Matrix, as_operator
from kryograph.nn.lanczos_net import LanczosNet, double
from kryograph.operators import Operator
from kryograph.sparse import SparseMatrix


@dataclass(frozen=True, eq=False)
class Edges:
    """A graph with loops, as the kernel needs it.

    Attributes:
        affinity: N × N, symmetric, in float64.
        rows: Each entry's row.
        columns: Each entry's column.
        edge: The edge i < j that each entry belongs to; E for a loop.
        difference: E × N; row e has 1 at one end of edge e and -1 at the other.
        parts: The components.
    """

    affinity: SparseMatrix
    rows: Tensor
    columns: Tensor
    edge: Tensor
    difference: SparseMatrix
    parts: Parts

    @classmethod
    def of(cls, affinity: Operator, device: torch.device | str) -> Edges:
        """The edges of an operator `affinity`."""
        entries = affinity.matrix.tocoo()
        i, j = entries.row.astype(np.int64), entries.col.astype(np.int64)
        pairs, edge = np.unique(
            np.minimum(i, j)[i != j] * affinity.n + np.maximum(i, j)[i != j], return_inverse=True
        )
        number = np.full(i.size, pairs.size)
        number[i != j] = edge
        ends = np.stack([pairs // affinity.n, pairs % affinity.n], axis=1)
        signs = np.tile([1.0, -1.0], pairs.size)
        shape = (pairs.size, affinity.n)
        start = 2 * np.arange(pairs.size + 1)
        difference = sp.csr_array((signs, ends.ravel(), start), shape=shape)
        return cls(
            affinity.tensor(torch.float64, device),
            torch.from_numpy(i).to(device),
            torch.from_numpy(j).to(device),
            torch.from_numpy(number).to(device),
            SparseMatrix.from_scipy(difference, dtype=torch.float64, device=device),
            Parts.of(affinity.matrix, device),
        )

    def kernel(self, f: Tensor) -> Tensor:
        """exp(-‖f_i - f_j‖² / ε) for every entry, 1 on loops."""
        square = (self.difference @ f).square().sum(dim=1)
        # Half of what each edge says to either end adds up to the edges of a component.
        ends = self.difference.with_values(torch.full_like(self.difference.values, 0.5))
        sums = self.parts.sum(ends.T @ torch.stack([square, torch.ones_like(square)], dim=1))
        # Where all nodes are alike, every distance is zero and any ε will do.
        mean = sums[:, :1] / sums[:, 1:].clamp(min=1.0)
        width = ends @ self.parts.spread(torch.where(mean > 0, mean, 1.0))
        weights = torch.exp(-square / width[:, 0])
        return torch.cat([weights, weights.new_ones(1)])[self.edge]

    def normalised(self, weights: Tensor) -> Weighted:
        """S for some weights of the entries."""
        values = self.affinity.values * weights
        degree = torch.zeros(self.affinity.shape[0], dtype=values.dtype, device=values.device)
        degree = degree.index_add(0, self.rows, values)
        root = degree.rsqrt()
        # In this order (i, j) and (j, i) are equal to the last digit.
        return Weighted(self.affinity, values * (root[self.rows] * root[self.columns]))


class AdaLanczosNet(LanczosNet):
    """LanczosNet with a learned kernel on the edges.

    Args:
        in_channels: Size of each node's features.
        hidden_channels: Width of every hidden layer.
        out_channels: Number of classes.
        layers: Number of hidden layers.
        kernel: "learned", or "frozen" at 1: then this is LanczosNet.
        kernel_hidden: Width of f's hidden layer and of its output.
        kernel_rate: How fast f learns, compared with the other weights.
        through_lanczos: Whether the kernel learns from the long diffusions, too. Their gradients
            are large and change from step to step, since the basis turns with every weight.
        filter: "matrix" or "none".
        options: As for `LanczosNet`.

    Shapes:
        - **input:** features (N, F) dense or sparse; `edge_index` (2, E) with `edge_weight` (E), or
          the `Operator` named affinity
        - **output:** logits (N, out_channels)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        layers: int = 1,
        *,
        kernel: str = "learned",
        kernel_hidden: int = 64,
        kernel_rate: float = 0.01,
        through_lanczos: bool = False,
        filter: str = "matrix",
        **options: Any,
    ) -> None:
        if filter == "ritz":
            raise ValueError("the eigenvectors of T have no bounded gradient: filter by its matrix")
        super().__init__(
            in_channels, hidden_channels, out_channels, layers, filter=filter, **options
        )
        self.through_lanczos = through_lanczos
        self.f = (
            nn.ModuleList(
                [
                    Dense(in_channels, kernel_hidden, rate=kernel_rate),
                    Dense(kernel_hidden, kernel_hidden, bias=False, rate=kernel_rate),
                ]
            )
            if kernel == "learned"
            else None
        )

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the start vector and the weights anew, those of the kernel last."""
        super().reset_parameters(generator)
        for layer in self.f or ():
            layer.reset_parameters(generator)  # type: ignore[operator]

    def prepare(self, x: Matrix, L: Operator) -> Any:
        """Features, edges and start vector; in float64, since distances are small differences."""
        if L.name != "affinity" or not L.symmetric:
            raise ValueError(f"the kernel goes with the affinity of an undirected graph, not {L}")
        return double(x), Edges.of(L, x.device), self.start_vector(x)

    def adapted(
        self, x: Matrix, edges: Edges, start: Tensor, basis: Basis | None = None
    ) -> tuple[Multiplies, Basis, Tensor | None]:
        """S with the weights that the kernel gives, its basis, unless it is known, and c."""
        weights = torch.ones_like(edges.affinity.values)
        if self.f is not None:
            first, second = self.f
            weights = edges.kernel(second(torch.relu(first(x))))
        S = edges.normalised(weights)
        # S is seen through the degrees of the graph itself, which no weight changes.
        scale = (edges.affinity @ torch.ones_like(start[:, None])).sqrt()
        # Only ratios count; where all degrees are equal, it is 1 to the last digit.
        scale = scale / scale.mean()
        if basis is None:
            with torch.set_grad_enabled(self.through_lanczos and torch.is_grad_enabled()):
                basis = lanczos(S, start, self.steps, edges.parts)
        return S, basis, scale if self.operator == "rw" else None

    def forward(
        self,
        x: Matrix,
        edge_index: Operator | Tensor,
        edge_weight: Tensor | None = None,
        *,
        masks: Masks | None = None,
        prepared: Any = None,
    ) -> Tensor:
        """Logits of every node; in training, dropout asks `masks` what to keep."""
        if prepared is None:
            L = as_operator(edge_index, edge_weight, x.shape[0], "affinity")
            assert isinstance(L, Operator)
            prepared = self.prepare(x, L)
        return self.layers(x, *self.adapted(*prepared), masks)
