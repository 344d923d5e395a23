"""Layers that diffuse, and the operator that an `edge_index` stands for.

* In general it is a constant `Operator`, which is kept for the next call (`kept_operator`).
* If the edge weights need gradients, or if a program is compiled or exported, it is an
  `EdgeOperator`, which computes the same numbers by torch's own functions, edge by edge.
* If an explainer of PyTorch Geometric has set an edge mask, each product is a `Hop`, whose
  messages the mask multiplies.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn

from kryograph.errors import UsageError
from kryograph.krylov.bases import krylov_blocks
from kryograph.lazy import lazy_imports
from kryograph.nn.functional import AnyDiffusion, Diffusion, Layer, NodeFeatures
from kryograph.nn.kept_operators import kept_operator
from kryograph.operators import EdgeOperator, Operator, edge_operator
from kryograph.sparse import SparseMatrix

with lazy_imports():
    # Message passing takes a second to import, and only explainers need it.
    from kryograph.nn import hop

MESSAGE_PASSING = "torch_geometric.nn.conv.message_passing"
"""Module of the class that explainers look for among the modules of a network."""


def as_operator(
    edge_index: AnyDiffusion | Tensor | None, edge_weight: Tensor | None, n: int, name: str
) -> AnyDiffusion | Operator:
    """Return an operator as it is, or the named constant operator of an `edge_index` on n nodes."""
    if isinstance(edge_index, Diffusion) and edge_weight is not None:
        raise ValueError("an Operator has its own weights: edge_weight goes with an edge_index")
    if edge_index is None:
        raise ValueError("a layer that diffuses needs an edge_index or an Operator")
    if isinstance(edge_index, Diffusion):
        return edge_index
    if _needs_gradients(edge_weight):
        raise UsageError("This network has no gradients with respect to edge weights: detach them.")
    return kept_operator(edge_index, edge_weight, n, name)


def as_diffusion(
    edge_index: Diffusion | Tensor | None,
    edge_weight: Tensor | None,
    n: int,
    name: str,
    *,
    explained: bool,
) -> Diffusion:
    """Return what layers diffuse with; as `as_operator`, or an `EdgeOperator` where one is needed.

    With `explained`, messages are masked edge by edge, so it must be an `edge_index`.
    """
    by_edges = explained or _needs_gradients(edge_weight) or torch.compiler.is_compiling()
    if by_edges and isinstance(edge_index, Tensor):
        return edge_operator(edge_index, edge_weight, n, name)
    if explained and not isinstance(edge_index, EdgeOperator):
        raise UsageError("An edge mask needs edges: pass an edge_index, not an Operator.")
    return as_operator(edge_index, edge_weight, n, name)


def _needs_gradients(edge_weight: Tensor | None) -> bool:
    return edge_weight is not None and edge_weight.requires_grad and torch.is_grad_enabled()


class DiffusingLayer(Layer):
    """Base of layers that multiply by L, a given number of times.

    Args:
        hops: Number of products with L.
        width: Number of columns of what is multiplied.
        operator: Name of the operator that is built from an `edge_index`.
        *sizes: Arguments of `Layer`.
        **options: Keyword arguments of `Layer`.
    """

    def __init__(self, *sizes: int, hops: int, width: int, operator: str, **options: Any) -> None:
        super().__init__(*sizes, **options)
        self.operator = operator
        self._hop_widths = [width] * hops

    def named_modules(self, *arguments: Any, **options: Any) -> Iterator[tuple[str, nn.Module]]:
        """Iterate over this layer and its modules; in PyTorch Geometric's company also its hops.

        Explainers set masks on the message passing modules of a network, and count them to know
        how far a node sees. Whoever looks for such modules has imported their class.
        """
        if MESSAGE_PASSING in sys.modules and "hops" not in self._modules:
            self.hops = nn.ModuleList(hop.Hop(width) for width in self._hop_widths)
        modules: Iterator[tuple[str, nn.Module]] = super().named_modules(*arguments, **options)
        return modules

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.extra_repr()})"  # also if there are hops

    @property
    def explained(self) -> bool:
        """Whether an explainer has set a mask on the edges, or listens to the messages."""
        hops: Any = self._modules.get("hops") or ()
        return any(module.explain is True or module._forward_hooks for module in hops)

    def diffusion(
        self, edge_index: Diffusion | Tensor | None, edge_weight: Tensor | None, n: int
    ) -> Diffusion:
        """Operator that the layer diffuses with."""
        return as_diffusion(edge_index, edge_weight, n, self.operator, explained=self.explained)

    def diffused(self, L: Diffusion, x: NodeFeatures) -> Iterator[Tensor]:
        """Iterate over x, Lx, L²x, … up to the number of hops."""
        if not self.explained:
            return krylov_blocks(L, x, len(self._hop_widths) + 1)
        block = x.to_dense() if isinstance(x, SparseMatrix) else x
        return accumulate(self.hops, lambda block, module: module(block, L), initial=block)
