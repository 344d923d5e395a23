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
steps have the same weights. Where they start is a choice: at random, as torch's unit does, or such
that a step is :math:`h^{t+1} = z h^t + (1 - z) \tanh(L h^t)`, with gates z still drawn at random;
then training begins with features that are diffused, not mixed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

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

    def reset_to_identity(self) -> None:
        """Set the weights such that a node sends its state."""
        raise NotImplementedError


class LinearMessage(_Message):
    """L h W."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.send = Dense(width, width, bias=False)

    def reset_to_identity(self) -> None:
        """W = 1."""
        nn.init.eye_(self.send.weight)

    def forward(self, h: Tensor, L: Diffusion) -> Tensor:
        """Multiplied, then diffused."""
        sent: Tensor = self.send(h)
        return L @ sent


class MLPMessage(_Message):
    """L MLP(h), with a hidden layer twice as wide as the state."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner, self.outer = Dense(width, 2 * width), Dense(2 * width, width)

    def reset_to_identity(self) -> None:
        """Biases are zero already."""
        _to_identity(self.inner.weight, self.outer.weight)

    def forward(self, h: Tensor, L: Diffusion) -> Tensor:
        """Each node's message is made once, whoever receives it."""
        sent: Tensor = self.outer(torch.relu(self.inner(h)))
        return L @ sent


class PairMessage(_Message):
    """Σ_j L_ij MLP(h_i, h_j), with a hidden layer twice as wide as the state.

    The first layer is a sum of two products, one for each end of an edge, so both are computed node
    by node; the last layer is linear, so it comes after the sum over j, with the bias counted as
    often as there are messages. Per edge there is only the ReLU between.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.receive, self.send = Dense(width, 2 * width), Dense(width, 2 * width, bias=False)
        self.outer = Dense(2 * width, width, bias=False)
        self.constant = Dense(1, width, bias=False)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew; the last layer's bias, here a product with L 1, starts at zero."""
        super().reset_parameters(generator)
        nn.init.zeros_(self.constant.weight)

    def reset_to_identity(self) -> None:
        """At first the receiver does not matter."""
        _to_identity(self.send.weight, self.outer.weight)
        nn.init.zeros_(self.receive.weight)

    def forward(self, h: Tensor, L: Diffusion) -> Tensor:
        """Edge by edge between the two layers."""
        source, to, weight = _edges(L, h)
        sent = torch.relu(self.receive(h)[to] + self.send(h)[source]) * weight
        received = sent.new_zeros(len(h), sent.shape[1]).index_add(0, to, sent)
        total = h.new_zeros(len(h), 1).index_add(0, to, weight)
        return self.outer(received) + self.constant(total)  # type: ignore[no-any-return]


def _to_identity(inner: Tensor, outer: Tensor) -> None:
    """Set the weights of two layers with a ReLU between to the identity: h = ReLU(h) - ReLU(-h)."""
    one = torch.eye(len(inner), dtype=inner.dtype, device=inner.device)
    with torch.no_grad():
        inner.copy_(torch.cat([one, -one], dim=1))
        outer.copy_(torch.cat([one, -one]))


def _edges(L: Diffusion, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Who sends, who receives, and with which weight; an operator makes them once."""
    if isinstance(L, Operator):
        # Mixed precision has no operator of its own.
        exact = torch.float64 if h.dtype == torch.float64 else torch.float32
        source, to = L.edge_index(h.device)
        return source, to, L.tensor(exact, h.device).values.to(h.dtype)[:, None]
    entries = L.to_scipy().tocoo()
    source, to = torch.from_numpy(np.stack([entries.col, entries.row]).astype(np.int64)).to(
        h.device
    )
    return source, to, L.values.to(h.dtype)[:, None]


MESSAGES: dict[str, Callable[[int], _Message]] = {
    "linear": LinearMessage,
    "mlp": MLPMessage,
    "pair": PairMessage,
}
STARTS = ("random", "identity")


class Gated(nn.Module):
    """Nodes with a state, a message between them, and a gated recurrent unit.

    Args:
        in_channels: Size of each node's features.
        hidden_channels: Size of each node's state.
        out_channels: Number of classes.
        steps: Number T of steps.
        message: What is sent, of `MESSAGES`.
        dropout: Rate, on the last state.
        feature_dropout: Rate, on the features; that of the state if None.
        start: Where the weights of steps start, of `STARTS`.
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
        feature_dropout: float | None = None,
        start: str = "random",
        operator: str = "sym",
    ) -> None:
        super().__init__()
        if message not in MESSAGES:
            raise unknown("message", message, MESSAGES)
        if start not in STARTS:
            raise unknown("start", start, STARTS)
        self.steps, self.start, self.operator = steps, start, operator
        self.dropout = check_rate(dropout)
        self.feature_dropout = check_rate(dropout if feature_dropout is None else feature_dropout)
        self.inward = Dense(in_channels, hidden_channels)
        self.message = MESSAGES[message](hidden_channels)
        self.gru = nn.GRUCell(hidden_channels, hidden_channels)
        self.outward = Dense(hidden_channels, out_channels)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew; the unit's from U(±1/√width), as torch does, unless they are set.

        The identity is that of the message and of the candidate's input; the candidate does not see
        the old state, and there are no biases.
        """
        for part in (self.inward, self.message, self.outward):
            part.reset_parameters(generator)
        width = self.gru.hidden_size
        bound = 1 / math.sqrt(width)
        with torch.no_grad():
            for weight in self.gru.parameters():
                weight.uniform_(-bound, bound, generator=generator)
            if self.start == "identity":
                nn.init.eye_(self.gru.weight_ih[2 * width :])
                nn.init.zeros_(self.gru.weight_hh[2 * width :])
                for bias in (self.gru.bias_ih, self.gru.bias_hh):
                    nn.init.zeros_(bias)
                self.message.reset_to_identity()

    def forward(
        self,
        x: Matrix,
        edge_index: Diffusion | Tensor,
        edge_weight: Tensor | None = None,
        *,
        masks: Masks | None = None,
    ) -> Tensor:
        """Logits of every node; in training, dropout asks `masks` what to keep."""
        L = as_operator(edge_index, edge_weight, x.shape[0], self.operator)
        return self.logits(x, self.parts(L), masks)

    def logits(self, x: Matrix, parts: Sequence[Diffusion], masks: Masks | None = None) -> Tensor:
        """Logits of every node of x, given what a step diffuses with."""
        masks, on = masks or Masks(), float(self.training)
        h: Tensor = self.inward(dropout(x, on * self.feature_dropout, masks, 0))
        for _ in range(self.steps):
            h = self.step(h, parts)
        return self.outward(dropout(h, on * self.dropout, masks, 1))  # type: ignore[no-any-return]

    def parts(self, L: Diffusion) -> Sequence[Diffusion]:
        """What a step diffuses with, one after the other."""
        return [L]

    def step(self, h: Tensor, parts: Sequence[Diffusion]) -> Tensor:
        """The states after a step."""
        [L] = parts
        return self.gru(self.message(h, L), h)  # type: ignore[no-any-return]
