"""GCN with virtual adversarial training: predictions that small changes of X do not move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from kryograph.engine.forward import Forward, Literal, Nodes
from kryograph.nn.adversarial import Entries, Every, Stored, divergence, perturbed
from kryograph.nn.functional import Masks, Matrix
from kryograph.operators import Operator
from kryograph.systems.base import register
from kryograph.systems.gcn import GCNSettings, GCNSystem
from kryograph.systems.settings import Range, inherited, setting

DIRECTION = 1_000
"""The layer under which the start direction is drawn: no network has as many."""

PAPER = "Sun, Guo, Zhu, Lin: Virtual Adversarial Training on GCNs. arXiv 2019"


@dataclass(frozen=True)
class SVATSettings(GCNSettings):
    """Settings of sparse virtual adversarial training, beside those of GCN."""

    epsilon: float = setting(
        0.03,
        "length of the change, relative to that of a node's features; by validation",
        low=0,
        below=1e3,
        search=Range(0.01, 3, log=True),
    )
    alpha: float = setting(
        1.0, "weight of the penalty (Miyato et al. 2018)", low=0, below=1e6, search=Range(0, 4)
    )
    xi: float = setting(
        0.01, "relative step that finds the direction; seen by float32", low=1e-6, below=1e3
    )
    iterations: int = setting(1, "power iterations (Miyato et al. 2018)", low=1, below=100)


@dataclass(frozen=True)
class DVATSettings(SVATSettings):
    """Settings of dense virtual adversarial training: every feature may change, so by less."""

    epsilon: float = inherited(SVATSettings, "epsilon", 0.01)


class Adversarial(Literal):
    """A GCN on the whole graph, and α · KL between its predictions before and after a change of X.

    Args:
        entries: Which of the features may change.
        settings: ε, ξ, α and the number of iterations.
    """

    def __init__(
        self,
        network: nn.Module,
        x: Matrix,
        L: Operator,
        nodes: Nodes,
        masks: Masks,
        entries: Entries,
        settings: SVATSettings,
    ) -> None:
        super().__init__(network, x, L, nodes, masks)
        self.entries, self.settings = entries, settings

    def penalty(self) -> Tensor:
        """Of all nodes, labelled or not; dropout is off in both terms."""
        self.network.eval()
        with torch.no_grad():
            logits = self.everything()
        after = self.network(self.changed(logits), self.L)
        self.network.train()
        return self.settings.alpha * divergence(logits, after)

    def changed(self, logits: Tensor) -> Matrix:
        """X after its adversarial change, which starts from a random sign for every word."""
        blank = self.entries.values.new_ones(1, self.entries.width)
        words = 2.0 * self.masks.keep(blank, 0.5, DIRECTION, None)[0] - 1.0
        s = self.settings
        return perturbed(
            *(self.network, self.entries, self.L, logits, words.to(blank.dtype)),
            epsilon=s.epsilon,
            xi=s.xi,
            iterations=s.iterations,
        )


@register(
    "gcn-svat",
    summary="GCN trained against the worst small change of the features that are not zero.",
    paper=PAPER,
    equation="loss = CE + α mean_i KL(p_i(X) ‖ p_i(X + r)), r = ε ∇KL / ‖∇KL‖ on x_ij ≠ 0",
    settings=SVATSettings,
)
class SVATSystem(GCNSystem):
    """Sparse: the features stay sparse."""

    component_wise = False  # the penalty is the mean over all nodes

    entries: ClassVar[Callable[[Matrix], Entries]] = Stored

    def forward(
        self, network: nn.Module, x: Matrix, L: Operator, nodes: Nodes, masks: Masks
    ) -> Forward:
        """With the penalty."""
        entries = type(self).entries(x)
        return Adversarial(network, x, L, nodes, masks, entries, self.settings)


@register(
    "gcn-dvat",
    summary="GCN trained against the worst small change of all features.",
    paper=PAPER,
    equation="loss = CE + α mean_i KL(p_i(X) ‖ p_i(X + r)), r = ε ∇KL / ‖∇KL‖",
    settings=DVATSettings,
)
class DVATSystem(SVATSystem):
    """Dense: a change has as many entries as there are nodes times words."""

    entries: ClassVar[Callable[[Matrix], Entries]] = Every
