r"""Networks whose nodes have a state and change it, step by step, by what their neighbours send.

.. math::
    h^0 = X W_{in} + b_{in}, \quad h^{t+1} = \text{GRU}(m^t, h^t), \quad
    \text{logits} = h^T W_{out} + b_{out}

=============  =========================================================================
message        m_i
=============  =========================================================================
`linear`       Σ_j L_ij W h_j, the original gated graph network
`mlp`          Σ_j L_ij MLP(h_j)
`pair`         Σ_j L_ij MLP(h_i, h_j), a message-passing network
=============  =========================================================================

With L = D̃^{-1} Ã the sum is a mean over a node and its neighbours, with L = A a plain sum. All
steps have the same weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from kryograph.errors import unknown
from kryograph.nn.functional import (
    Diffusion,
    Masks,
    Matrix,
    as_operator,
    check_rate,
    dropout,
    glorot_,
)
from kryograph.operators import Operator


class Dense(nn.Module):
    """X W + b for dense or sparse X."""

    def __init__(self, in_channels: int, out_channels: int, *, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew."""
        glorot_(self.weight, self.bias, generator)

    def forward(self, x: Matrix) -> Tensor:
        """The product, and the bias."""
        out = x @ self.weight
        return out if self.bias is None else out + self.bias


class _Message(nn.Module):
    """What every node receives, given the state of all."""

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew."""
        for part in self.children():
            part.reset_parameters(generator)  # type: ignore[operator]


class LinearMessage(_Message):
    """L h W."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.send = Dense(width, width, bias=False)

    def forward(self, h: Tensor, L: Diffusion) -> Tensor:
        """Multiplied, then diffused."""
        sent: Tensor = self.send(h)
        return L @ sent


class MLPMessage(_Message):
    """L MLP(h), with a hidden layer as wide as the state."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner, self.outer = Dense(width, width), Dense(width, width)

    def forward(self, h: Tensor, L: Diffusion) -> Tensor:
        """Each node's message is made once, whoever receives it."""
        sent: Tensor = self.outer(torch.relu(self.inner(h)))
        return L @ sent


class PairMessage(_Message):
    """Σ_j L_ij MLP(h_i, h_j).

    The first layer is a sum of two products, one for each end of an edge, so both are computed node
    by node; the last layer is linear, so it comes after the sum over j, with the bias counted as
    often as there are messages. Per edge there is only the ReLU between.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.receive, self.send = Dense(width, width), Dense(width, width, bias=False)
        self.outer = Dense(width, width, bias=False)
        self.constant = Dense(1, width, bias=False)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew; the last layer's bias, here a product with L 1, starts at zero."""
        super().reset_parameters(generator)
        nn.init.zeros_(self.constant.weight)

    def forward(self, h: Tensor, L: Diffusion) -> Tensor:
        """Edge by edge between the two layers."""
        entries = (L.matrix if isinstance(L, Operator) else L.to_scipy()).tocoo()
        to, source = (
            torch.from_numpy(ends.astype(np.int64)).to(h.device)
            for ends in (entries.row, entries.col)
        )
        weight = torch.from_numpy(entries.data.copy()).to(h.device, h.dtype)[:, None]
        sent = torch.relu(self.receive(h)[to] + self.send(h)[source]) * weight
        received = torch.zeros_like(h).index_add(0, to, sent)
        total = h.new_zeros(len(h), 1).index_add(0, to, weight)
        return self.outer(received) + self.constant(total)  # type: ignore[no-any-return]


MESSAGES: dict[str, Callable[[int], nn.Module]] = {
    "linear": LinearMessage,
    "mlp": MLPMessage,
    "pair": PairMessage,
}


class Gated(nn.Module):
    """Nodes with a state, a message between them, and a gated recurrent unit.

    Args:
        in_channels: Size of each node's features.
        hidden_channels: Size of each node's state.
        out_channels: Number of classes.
        steps: Number T of steps.
        message: What is sent, of `MESSAGES`.
        dropout: Rate, on the features and on the last state.
        operator: Which L to make of an `edge_index`.

    Shapes:
        - **input:** features (N, F) dense or sparse; `edge_index` (2, E) with `edge_weight` (E), or
          an `Operator`
        - **output:** logits (N, out_channels)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        steps: int = 2,
        *,
        message: str = "linear",
        dropout: float = 0.0,
        operator: str = "sym",
    ) -> None:
        super().__init__()
        if message not in MESSAGES:
            raise unknown("message", message, MESSAGES)
        self.steps, self.dropout, self.operator = steps, check_rate(dropout), operator
        self.inward = Dense(in_channels, hidden_channels)
        self.message = MESSAGES[message](hidden_channels)
        self.gru = nn.GRUCell(hidden_channels, hidden_channels)
        self.outward = Dense(hidden_channels, out_channels)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew; the unit's from U(±1/√width), as torch does."""
        for part in (self.inward, self.message, self.outward):
            part.reset_parameters(generator)  # type: ignore[operator]
        bound = 1 / math.sqrt(self.gru.hidden_size)
        with torch.no_grad():
            for weight in self.gru.parameters():
                weight.uniform_(-bound, bound, generator=generator)

    def forward(
        self,
        x: Matrix,
        edge_index: Diffusion | Tensor,
        edge_weight: Tensor | None = None,
        *,
        masks: Masks | None = None,
    ) -> Tensor:
        """Logits of every node; in training, dropout asks `masks` what to keep."""
        L = self.prepared(as_operator(edge_index, edge_weight, x.shape[0], self.operator))
        rate, masks = self.dropout if self.training else 0.0, masks or Masks()
        h: Tensor = self.inward(dropout(x, rate, masks, 0))
        for _ in range(self.steps):
            h = self.step(h, L)
        return self.outward(dropout(h, rate, masks, 1))  # type: ignore[no-any-return]

    def prepared(self, L: Diffusion) -> Diffusion:
        """The operator as the steps need it."""
        return L

    def step(self, h: Tensor, L: Diffusion) -> Tensor:
        """The states after a step."""
        return self.gru(self.message(h, L), h)  # type: ignore[no-any-return]
