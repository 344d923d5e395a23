r"""GCN, and GCN-SVAT and GCN-DVAT: GCN with virtual adversarial training, sparse and dense.

H_{l+1} = ReLU(L H_l W_l + b_l), logits = L H_n W_n + b_n, where H_0 = X are the features, L is the
renormalised adjacency matrix or another operator and n the number of hidden layers; the original
has one. Virtual adversarial training adds a penalty:

.. math::
    \text{loss} = \text{CE} + \alpha \, \text{KL}(p(X) \,\|\, p(X + r)), \quad
    r_i = \epsilon \|x_i\| \frac{g_i}{\|g_i\|}, \quad
    g = \nabla_d \, \text{KL}(p(X) \,\|\, p(X + d)), \quad d_i = \xi \|x_i\| \frac{u_i}{\|u_i\|}

p are the predictions of all nodes, r is the small change of the features X that changes them most,
and u a random direction. The features of each node change by the share ε of their own length. SVAT
changes the features that are not zero, which leaves sparse features sparse; DVAT changes all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import scipy.sparse as sp
import torch
from torch import Tensor, nn

from kryograph.engine.cost import Cost, gemm_cost, memory_pass_cost, resident
from kryograph.engine.forward import Forward, WholeGraph, Workload
from kryograph.engine.tracing import trace_epoch
from kryograph.krylov.lanczos import Weighted
from kryograph.nn.functional import NodeFeatures
from kryograph.nn.network import GCN, Network
from kryograph.operators import Operator
from kryograph.sparse import SparseMatrix
from kryograph.systems.base import register
from kryograph.systems.network import DecaySettings, NetworkSystem
from kryograph.systems.settings import SearchRange, inherited, setting


@dataclass(frozen=True)
class GCNSettings(DecaySettings):
    """Settings of GCN: those of the original."""

    bias: bool = setting(True, "whether layers have biases; not so in Li, Han, Wu 2018")


@register(
    "gcn",
    summary="Graph convolutions with ReLU.",
    paper="Kipf, Welling: Semi-Supervised Classification with GCNs. ICLR 2017",
    equation="H_{l+1} = ReLU(L H_l W_l + b_l), logits = L H_n W_n + b_n",
    settings=GCNSettings,
)
class GCNSystem(NetworkSystem[GCNSettings]):
    """System of the network `GCN`."""

    def network(self, features: int, classes: int) -> Network:
        return GCN(*self.sizes(features, classes), **self.options("dropout", "bias"))


def divergence(logits: Tensor, others: Tensor) -> Tensor:
    """Mean over nodes of KL(p ‖ q), where p and q are the softmax of the two arguments."""
    p, q = (nn.functional.log_softmax(z, dim=1) for z in (logits, others))
    return nn.functional.kl_div(q, p, reduction="batchmean", log_target=True)


class Entries:
    """Entries of x that may change, all or only those that are not zero, as a tensor `values`."""

    def __init__(self, x: NodeFeatures, *, every: bool) -> None:
        self.pattern: SparseMatrix | None = None
        if every:
            self.values = x if isinstance(x, Tensor) else x.to_dense()
        else:
            if isinstance(x, Tensor):
                matrix = sp.csr_array(x.cpu().numpy())
                x = SparseMatrix.from_scipy(matrix, dtype=x.dtype, device=x.device)
            self.pattern, self.values = x, x.values
            entries = x.to_scipy().tocoo()
            indices = (torch.from_numpy(i).long() for i in (entries.row, entries.col))
            self._rows, self._columns = (i.to(x.device) for i in indices)
        self._length = self._row_length(self.values)

    def from_columns(self, numbers: Tensor) -> Tensor:
        """Give each entry the number of its column."""
        return numbers.expand_as(self.values) if self.pattern is None else numbers[self._columns]

    def scaled(self, d: Tensor, share: float) -> Tensor:
        """Scale each row of d to that share of the length of the features; zero stays zero."""
        length = self._row_length(d)
        return d * torch.where(length > 0, share * self._length / length, torch.zeros_like(length))

    def features(self, values: Tensor, *, variable: bool = False) -> NodeFeatures:
        """Features with other entries; if these are `variable`, products have their gradients."""
        if self.pattern is None:
            return values
        return (_Variables if variable else SparseMatrix.with_values)(self.pattern, values)

    def _row_length(self, d: Tensor) -> Tensor:
        """Length of the row that each entry belongs to; one column for dense rows."""
        if self.pattern is None:
            return d.square().sum(dim=1, keepdim=True).sqrt()
        squares = d.new_zeros(self.pattern.shape[0]).index_add_(0, self._rows, d.square())
        return squares.sqrt_()[self._rows]


class _Variables(SparseMatrix):
    """A sparse matrix whose products have gradients for its entries, not for the other factor."""

    def __init__(self, pattern: SparseMatrix, values: Tensor) -> None:
        super().__init__(pattern.with_values(values.detach())._matrix)
        self._weighted = Weighted(pattern, values)

    def __matmul__(self, x: Tensor) -> Tensor:
        return self._weighted @ x.detach()


def perturbed(
    network: Network,
    entries: Entries,
    L: Operator,
    logits: Tensor,
    words: Tensor,
    *,
    epsilon: float,
    xi: float,
    iterations: int = 1,
) -> NodeFeatures:
    """Compute X + r: the features after the change that moves the predictions most.

    The network is in evaluation mode: with dropout, only its noise would be seen. `logits` are
    those of the unchanged features. The start direction u, `words`, is one number for each feature
    and the same for every node, so that nothing depends on the order of the nodes.
    """
    d = entries.from_columns(words)
    for _ in range(iterations):
        values = (entries.values + entries.scaled(d, xi)).requires_grad_()
        with torch.enable_grad():
            change = divergence(logits, network(entries.features(values, variable=True), L))
        (d,) = torch.autograd.grad(change, values)
    return entries.features(entries.values + entries.scaled(d, epsilon))


DIRECTION_LAYER = 1_000
"""Number of the layer under which the start direction is drawn; no network has as many layers."""

VAT_PAPER = "Sun, Guo, Zhu, Lin: Virtual Adversarial Training on GCNs. arXiv 2019"


@dataclass(frozen=True)
class SVATSettings(GCNSettings):
    """Settings of sparse virtual adversarial training, beside those of GCN."""

    epsilon: float = setting(
        0.03,
        "length of the change, relative to that of a node's features; by validation",
        low=0,
        below=1e3,
        search=SearchRange(0.01, 3, log=True),
    )
    alpha: float = setting(
        1.0,
        "weight of the penalty (Miyato et al. 2018)",
        low=0,
        below=1e6,
        search=SearchRange(0, 4),
    )
    xi: float = setting(
        0.01, "relative step that finds the direction; seen by float32", low=1e-6, below=1e3
    )
    iterations: int = setting(1, "power iterations (Miyato et al. 2018)", low=1, below=100)


@dataclass(frozen=True)
class DVATSettings(SVATSettings):
    """Settings of dense virtual adversarial training: every feature may change, so by less."""

    epsilon: float = inherited(SVATSettings, "epsilon", 0.01)


class Adversarial(WholeGraph):
    """A GCN on the whole graph with the penalty α · KL(p(X) ‖ p(X + r))."""

    def __init__(self, load: Workload, entries: Entries, settings: SVATSettings) -> None:
        super().__init__(load)
        self.entries, self.settings = entries, settings

    def penalty(self) -> Tensor:
        """Penalty over all nodes, labelled or not; dropout is off in both terms."""
        s, blank = self.settings, self.entries.values.new_ones(1, self.x.shape[1])
        signs = 2.0 * self.masks.keep(blank, 0.5, DIRECTION_LAYER, None)[0] - 1.0
        self.network.eval()
        with torch.no_grad():
            logits = self.everything()
        x = perturbed(
            *(self.network, self.entries, self.L, logits, signs.to(blank.dtype)),
            epsilon=s.epsilon,
            xi=s.xi,
            iterations=s.iterations,
        )
        after = self.network(x, self.L)
        self.network.train()
        return s.alpha * divergence(logits, after)

    def cost(self) -> Cost:
        """Cost of a step of the network and of the passes of the penalty.

        Each iteration is one pass that finds a direction, with a gradient for every entry that may
        change; one more pass has the changed features.
        """
        step = trace_epoch(self, penalty=False)
        passes = self.settings.iterations + 1
        entries = self.entries.values.numel()
        hidden = next(self.network.parameters()).shape[1]
        if self.entries.pattern is None:
            n, features = self.x.shape
            products = gemm_cost(n, features, hidden) * (3 * passes)
        else:
            products = memory_pass_cost(3 * entries * hidden) * passes
        # Beside the features lie the direction, its gradient, the change and their product's parts.
        held = resident(5 * entries)
        return step * (1 + passes) + products + memory_pass_cost(16 * entries) * passes + held


@register(
    "gcn-svat",
    summary="GCN trained against the worst small change of the features that are not zero.",
    paper=VAT_PAPER,
    equation="loss = CE + α mean_i KL(p_i(X) ‖ p_i(X + r)), r = ε ∇KL / ‖∇KL‖ on x_ij ≠ 0",
    settings=SVATSettings,
)
class SVATSystem(GCNSystem):
    """GCN with sparse virtual adversarial training."""

    settings: SVATSettings

    component_wise = False  # the penalty is the mean over all nodes

    every: ClassVar[bool] = False
    """Whether all features may change, also those that are zero."""

    def forward(self, load: Workload) -> Forward:
        return Adversarial(load, Entries(load.x, every=self.every), self.settings)


@register(
    "gcn-dvat",
    summary="GCN trained against the worst small change of all features.",
    paper=VAT_PAPER,
    equation="loss = CE + α mean_i KL(p_i(X) ‖ p_i(X + r)), r = ε ∇KL / ‖∇KL‖",
    settings=DVATSettings,
)
class DVATSystem(SVATSystem):
    """GCN with dense virtual adversarial training: a change has nodes × words entries."""

    every = True
