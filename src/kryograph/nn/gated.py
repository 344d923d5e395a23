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
that a step is :math:`h^{t+1} = z h^t + (1 - z) \tanh(L h^t)`, with gates z drawn at random about
1/8; then training begins with features that are diffused, not mixed. How fast these weights learn
is one, too: the few labelled nodes need not bend a step that is good already.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from kryograph.errors import unknown
from kryograph.nn.functional import (
    Dense,
    Diffusion,
    Masks,
    NodeFeatures,
    as_operator,
    check_rate,
    dropout,
)
from kryograph.operators import Operator


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

    def __init__(self, width: int, rate: float = 1.0) -> None:
        super().__init__()
        self.send = Dense(width, width, bias=False, rate=rate)

    def reset_to_identity(self) -> None:
        """W = 1."""
        self.send.reset_to(torch.eye(len(self.send.weight)))

    def forward(self, h: Tensor, L: Diffusion) -> Tensor:
        """Multiplied, then diffused."""
        sent: Tensor = self.send(h)
        return L @ sent


class MLPMessage(_Message):
    """L MLP(h), with a hidden layer twice as wide as the state."""

    def __init__(self, width: int, rate: float = 1.0) -> None:
        super().__init__()
        self.inner = Dense(width, 2 * width, rate=rate)
        self.outer = Dense(2 * width, width, rate=rate)

    def reset_to_identity(self) -> None:
        """Biases are zero already."""
        _to_identity(self.inner, self.outer)

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

    def __init__(self, width: int, rate: float = 1.0) -> None:
        super().__init__()
        self.receive = Dense(width, 2 * width, rate=rate)
        self.send = Dense(width, 2 * width, bias=False, rate=rate)
        self.outer = Dense(2 * width, width, bias=False, rate=rate)
        self.constant = Dense(1, width, bias=False, rate=rate)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew; the last layer's bias, here a product with L 1, starts at zero."""
        super().reset_parameters(generator)
        nn.init.zeros_(self.constant.weight)

    def reset_to_identity(self) -> None:
        """At first the receiver does not matter."""
        _to_identity(self.send, self.outer)
        nn.init.zeros_(self.receive.weight)

    def forward(self, h: Tensor, L: Diffusion) -> Tensor:
        """Edge by edge between the two layers."""
        source, to, weight = _edges(L, h)
        sent = torch.relu(self.receive(h)[to] + self.send(h)[source]) * weight
        received = sent.new_zeros(len(h), sent.shape[1]).index_add(0, to, sent)
        total = h.new_zeros(len(h), 1).index_add(0, to, weight)
        return self.outer(received) + self.constant(total)  # type: ignore[no-any-return]


def _to_identity(inner: Dense, outer: Dense) -> None:
    """Set the weights of two layers with a ReLU between to the identity: h = ReLU(h) - ReLU(-h)."""
    one = torch.eye(len(inner.weight))
    inner.reset_to(torch.cat([one, -one], dim=1))
    outer.reset_to(torch.cat([one, -one]))


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


MESSAGES: dict[str, Callable[[int, float], _Message]] = {
    "linear": LinearMessage,
    "mlp": MLPMessage,
    "pair": PairMessage,
}
STARTS = ("random", "diffusion")

OPEN = -2.0
"""Where the bias of the gates starts, if with a diffusion: z = 0.12 for a state of zero."""


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
        step_rate: How fast they learn, compared with the other weights.
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
        step_rate: float = 1.0,
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
        self.step_rate = step_rate
        self.message = MESSAGES[message](hidden_channels, step_rate)
        self.gru = nn.GRUCell(hidden_channels, hidden_channels)
        self.outward = Dense(hidden_channels, out_channels)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew; the unit's from U(±1/√width), as torch does, unless they are set.

        In a diffusion a node sends its state, and the candidate is what it receives: it does not
        see the old state. There are no biases but that of the gates.
        """
        for part in (self.inward, self.message, self.outward):
            part.reset_parameters(generator)
        width = self.gru.hidden_size
        bound = 1 / math.sqrt(width)
        with torch.no_grad():
            for weight in self.gru.parameters():
                weight.uniform_(-bound, bound, generator=generator)
            if self.start == "diffusion":
                nn.init.eye_(self.gru.weight_ih[2 * width :])
                nn.init.zeros_(self.gru.weight_hh[2 * width :])
                for bias in (self.gru.bias_ih, self.gru.bias_hh):
                    nn.init.zeros_(bias)
                nn.init.constant_(self.gru.bias_ih[width : 2 * width], OPEN)
                self.message.reset_to_identity()
            for weight in self.gru.parameters():
                weight.div_(self.step_rate)

    def forward(
        self,
        x: NodeFeatures,
        edge_index: Diffusion | Tensor,
        edge_weight: Tensor | None = None,
        *,
        masks: Masks | None = None,
    ) -> Tensor:
        """Logits of every node; in training, dropout asks `masks` what to keep."""
        L = as_operator(edge_index, edge_weight, x.shape[0], self.operator)
        return self.logits(x, self.parts(L), masks)

    def logits(
        self, x: NodeFeatures, parts: Sequence[Diffusion], masks: Masks | None = None
    ) -> Tensor:
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
        return self.changed(h, self.message(h, L))

    def changed(self, h: Tensor, received: Tensor) -> Tensor:
        """The states after the unit, whose weights are `step_rate` times what is stored."""
        weights = {name: w * self.step_rate for name, w in self.gru.named_parameters()}
        return functional_call(self.gru, weights, (received, h))  # type: ignore[no-any-return]
