r"""Gated graph networks: states of nodes that messages from neighbours change step by step.

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

X are the features, h^t the states after t of T steps, L is the operator. With L = D̃^{-1} Ã the sum
is a mean over a node and its neighbours, with L = A a plain sum. All steps share their weights.

The weights of a step start at random, as in torch's unit, or such that a step is
:math:`h^{t+1} = z h^t + (1 - z) \tanh(L h^t)` with gates z drawn about 1/8. In the second case
training begins with features that are diffused but not mixed. These weights may also learn more
slowly than the others, so that a few labelled nodes do not distort a step that is good already.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

from kryograph.errors import check_known
from kryograph.nn.functional import Dense, Masks, NodeFeatures, check_rate, dropout, reset_children
from kryograph.nn.network import Network
from kryograph.operators import Operator


class _Message(nn.Module):
    """Base of messages: maps the states of all nodes and L to the sums that nodes receive."""

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights again; None draws from torch's generator."""
        reset_children(self, generator)

    def reset_to_identity(self) -> None:
        """Set the weights such that every node sends its state."""
        raise NotImplementedError


class LinearMessage(_Message):
    """L h W, for states of the given width; `rate` is that of `Dense`."""

    def __init__(self, width: int, rate: float = 1.0) -> None:
        super().__init__()
        self.send = Dense(width, width, bias=False, rate=rate)

    def reset_to_identity(self) -> None:
        self.send.reset_to(torch.eye(len(self.send.weight)))

    def forward(self, h: Tensor, L: Operator) -> Tensor:
        sent: Tensor = self.send(h)
        return L @ sent


class MLPMessage(_Message):
    """L MLP(h) with a hidden layer that is twice as wide as the state."""

    def __init__(self, width: int, rate: float = 1.0) -> None:
        super().__init__()
        self.inner = Dense(width, 2 * width, rate=rate)
        self.outer = Dense(2 * width, width, rate=rate)

    def reset_to_identity(self) -> None:
        _set_to_identity(self.inner, self.outer)  # biases are zero already

    def forward(self, h: Tensor, L: Operator) -> Tensor:
        sent: Tensor = self.outer(torch.relu(self.inner(h)))
        return L @ sent


class PairMessage(_Message):
    """Σ_j L_ij MLP(h_i, h_j) with a hidden layer that is twice as wide as the state.

    The first layer is a sum of two products, one for each end of an edge, so both are computed per
    node. The last layer is linear, so it is applied after the sum over j, with its bias multiplied
    by Σ_j L_ij. Only the ReLU between them is computed per edge.
    """

    def __init__(self, width: int, rate: float = 1.0) -> None:
        super().__init__()
        self.receive = Dense(width, 2 * width, rate=rate)
        self.send = Dense(width, 2 * width, bias=False, rate=rate)
        self.outer = Dense(2 * width, width, bias=False, rate=rate)
        self.constant = Dense(1, width, bias=False, rate=rate)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights again; the bias of the last layer, `constant`, starts at zero."""
        super().reset_parameters(generator)
        nn.init.zeros_(self.constant.weight)

    def reset_to_identity(self) -> None:
        _set_to_identity(self.send, self.outer)
        nn.init.zeros_(self.receive.weight)  # at first a message does not depend on its receiver

    def forward(self, h: Tensor, L: Operator) -> Tensor:
        source, to = L.edge_index(h.device)
        # An operator has no bfloat16 form: its float32 values are converted.
        exact = torch.float64 if h.dtype == torch.float64 else torch.float32
        weight = L.tensor(exact, h.device).values.to(h.dtype)[:, None]
        sent = torch.relu(self.receive(h)[to] + self.send(h)[source]) * weight
        received = sent.new_zeros(len(h), sent.shape[1]).index_add(0, to, sent)
        total = h.new_zeros(len(h), 1).index_add(0, to, weight)
        message: Tensor = self.outer(received) + self.constant(total)
        return message


def _set_to_identity(inner: Dense, outer: Dense) -> None:
    """Make two layers with a ReLU in between the identity: h = ReLU(h) - ReLU(-h)."""
    one = torch.eye(len(inner.weight))
    inner.reset_to(torch.cat([one, -one], dim=1))
    outer.reset_to(torch.cat([one, -one]))


MESSAGES: dict[str, Callable[[int, float], _Message]] = {
    "linear": LinearMessage,
    "mlp": MLPMessage,
    "pair": PairMessage,
}
STARTS = ("random", "diffusion")

GATE_BIAS = -2.0
"""Bias of the gates z if steps start as a diffusion: z = 0.12 for a state of zero."""


class Gated(Network):
    """A network of states, messages and a gated recurrent unit, in T steps.

    `message` is a key of `MESSAGES`. Dropout acts on the last state and on the features, by default
    at the same rate. The weights of steps start as one of `STARTS`, and their learning rate
    `step_rate` is relative to that of the others.
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
        check_known("message", message, MESSAGES)
        check_known("start", start, STARTS)
        self.steps, self.start, self.operator = steps, start, operator
        self.dropout = check_rate(dropout)
        self.feature_dropout = check_rate(dropout if feature_dropout is None else feature_dropout)
        self.inward = Dense(in_channels, hidden_channels)
        self.step_rate = step_rate
        self.message = MESSAGES[message](hidden_channels, step_rate)
        self.gru = nn.GRUCell(hidden_channels, hidden_channels)
        self.outward = Dense(hidden_channels, out_channels)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all weights again; those of the unit come last, from U(±1/√width) as in torch.

        If steps start as a diffusion, a node sends its state, the candidate of the unit is the
        received message alone, and there are no biases but that of the gates.
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
                nn.init.constant_(self.gru.bias_ih[width : 2 * width], GATE_BIAS)
                self.message.reset_to_identity()
            for weight in self.gru.parameters():
                weight.div_(self.step_rate)

    @property
    def output_layer(self) -> nn.Module:
        return self.outward

    def logits(self, x: NodeFeatures, L: Operator, masks: Masks) -> Tensor:
        return self.after_steps(x, self.diffusions(L), masks)

    def after_steps(self, x: NodeFeatures, diffusions: Sequence[Operator], masks: Masks) -> Tensor:
        """Logits of every node of x; each step diffuses with `diffusions`."""
        on = float(self.training)
        h: Tensor = self.inward(dropout(x, on * self.feature_dropout, masks, 0))
        for _ in range(self.steps):
            h = self.step(h, diffusions)
        logits: Tensor = self.outward(dropout(h, on * self.dropout, masks, 1))
        return logits

    def diffusions(self, L: Operator) -> Sequence[Operator]:
        """Operators that one step diffuses with, in their order."""
        return [L]

    def step(self, h: Tensor, diffusions: Sequence[Operator]) -> Tensor:
        """States of all nodes after one step."""
        [L] = diffusions
        return self.updated(h, self.message(h, L))

    def updated(self, h: Tensor, received: Tensor) -> Tensor:
        """States after the unit, whose weights are `step_rate` times its parameters."""
        weights = {name: w * self.step_rate for name, w in self.gru.named_parameters()}
        states: Tensor = functional_call(self.gru, weights, (received, h))
        return states
