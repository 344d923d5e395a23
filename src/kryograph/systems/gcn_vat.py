r"""The small change of the features that changes a network's predictions most.

.. math::
    r = \epsilon \|x_i\| \frac{g_i}{\|g_i\|}, \quad
    g = \nabla_d \, \text{KL}(p(X) \,\|\, p(X + d)), \quad d_i = \xi \|x_i\| \frac{u_i}{\|u_i\|}

Lengths are those of rows: each node's features change by the share ε of their own length. `Every`
changes all features, `Stored` only those that are not zero, which leaves sparse features sparse.

GCN with virtual adversarial training: predictions that small changes of X do not move.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from kryograph.engine.cost import Cost, gemm_cost, memory_pass_cost
from kryograph.engine.forward import Forward, Nodes, WholeGraph
from kryograph.engine.tracing import trace_epoch
from kryograph.nn.functional import Diffusion, Masks, NodeFeatures
from kryograph.operators import Operator
from kryograph.sparse import SparseMatrix
from kryograph.systems.base import register
from kryograph.systems.gcn import GCNSettings, GCNSystem
from kryograph.systems.settings import SearchRange, inherited, setting

CHUNK = 2**17
"""How many entries' gradients are computed at a time."""


def divergence(logits: Tensor, others: Tensor) -> Tensor:
    """The mean over nodes of KL(p ‖ q), p and q being the softmax of the two."""
    p, q = (nn.functional.log_softmax(each, dim=1) for each in (logits, others))
    return nn.functional.kl_div(q, p, reduction="batchmean", log_target=True)


class Entries(Protocol):
    """The entries of the features that may change, as one tensor `values`."""

    values: Tensor
    n: int
    width: int

    def of_words(self, words: Tensor) -> Tensor:
        """For each entry the number that its column has in `words`."""

    def scaled(self, d: Tensor, share: float) -> Tensor:
        """A change in the direction of d, in each row as long as that share of the features."""

    def features(self, values: Tensor) -> NodeFeatures:
        """The features with other entries, as constants."""

    def variables(self, values: Tensor) -> NodeFeatures:
        """The features with other entries; products have gradients of the entries."""


class Every:
    """All features of all nodes."""

    def __init__(self, x: NodeFeatures) -> None:
        self.values = x if isinstance(x, Tensor) else x.to_dense()
        self.n, self.width = self.values.shape
        self._length = self.values.norm(dim=1, keepdim=True)

    def of_words(self, words: Tensor) -> Tensor:
        """The same row for every node."""
        return words.expand_as(self.values)

    def scaled(self, d: Tensor, share: float) -> Tensor:
        """Row by row."""
        return d * _ratio(share * self._length, d.norm(dim=1, keepdim=True))

    def features(self, values: Tensor) -> Tensor:
        """They are the features."""
        return values

    variables = features


class Stored:
    """The features that are not zero."""

    def __init__(self, x: NodeFeatures) -> None:
        if isinstance(x, Tensor):
            matrix = sp.csr_array(x.cpu().numpy())
            x = SparseMatrix.from_scipy(matrix, dtype=x.dtype, device=x.device)
        self.values = x.values
        self.n, self.width = x.shape
        self._x = x
        places = x.to_scipy().tocoo()
        self.rows, self.columns = (
            torch.from_numpy(each.astype(np.int64)).to(x.device)
            for each in (places.row, places.col)
        )
        self._length = self._norm(self.values)

    def of_words(self, words: Tensor) -> Tensor:
        """Each entry's column."""
        return words[self.columns]

    def scaled(self, d: Tensor, share: float) -> Tensor:
        """Row by row."""
        return d * _ratio(share * self._length, self._norm(d))[self.rows]

    def features(self, values: Tensor) -> SparseMatrix:
        """Other entries in the same places."""
        return self._x.with_values(values)

    def variables(self, values: Tensor) -> SparseMatrix:
        """Other entries in the same places, which gradients reach."""
        return _Variables(self, values)

    def _norm(self, values: Tensor) -> Tensor:
        return values.new_zeros(self.n).index_add_(0, self.rows, values.square()).sqrt_()


def _ratio(wanted: Tensor, found: Tensor) -> Tensor:
    """What to multiply with; a row without a direction stays zero."""
    return torch.where(found > 0, wanted / found, torch.zeros_like(found))


class _Variables(SparseMatrix):
    """A sparse matrix of variables; what it is multiplied by counts as constant."""

    def __init__(self, entries: Stored, values: Tensor) -> None:
        super().__init__(entries.features(values.detach())._matrix)
        self._entries, self._values = entries, values

    def __matmul__(self, x: Tensor) -> Tensor:
        result: Tensor = _Sampled.apply(self._values, x.detach(), self)  # type: ignore[no-untyped-call]
        return result

    def sampled(self, left: Tensor, right: Tensor) -> Tensor:
        """The entries of left · rightᵀ at the places of this matrix."""
        rows, columns = (
            torch.split(each, CHUNK) for each in (self._entries.rows, self._entries.columns)
        )
        places = zip(rows, columns, strict=True)
        return torch.cat([(left[i] * right[j]).sum(dim=1) for i, j in places])


class _Sampled(torch.autograd.Function):
    """A W for a variable A with fixed places; the gradient of entry (i, j) is dZ_i · W_j."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, weight: Tensor, matrix: _Variables) -> Tensor:
        ctx.weight, ctx.matrix = weight, matrix
        return matrix.product(weight)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return ctx.matrix.sampled(gradient, ctx.weight), None, None


def perturbed(
    network: nn.Module,
    entries: Entries,
    L: Diffusion,
    logits: Tensor,
    words: Tensor,
    *,
    epsilon: float,
    xi: float,
    iterations: int = 1,
) -> NodeFeatures:
    """X + r: the features after the change that does most to the predictions.

    Args:
        network: Not in training mode: dropout would be all that is seen.
        entries: What may change.
        L: What the network diffuses with.
        logits: Of the features as they are.
        words: The direction u to start from, the same for every node: nothing then depends on the
            order of the nodes.
        epsilon: Length of the change, relative to each row's own.
        xi: Length of the step by which the direction is found, likewise.
        iterations: How many times the direction is improved.
    """
    d = entries.of_words(words)
    for _ in range(iterations):
        values = (entries.values + entries.scaled(d, xi)).requires_grad_()
        with torch.enable_grad():
            change = divergence(logits, network(entries.variables(values), L))
        (d,) = torch.autograd.grad(change, values)
    return entries.features(entries.values + entries.scaled(d, epsilon))


DIRECTION = 1_000
"""The layer under which the start direction is drawn: no network has as many."""

DENG = "Sun, Guo, Zhu, Lin: Virtual Adversarial Training on GCNs. arXiv 2019"


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
    """A GCN on the whole graph, and α · KL between its predictions before and after a change of X.

    Args:
        entries: Which of the features may change.
        settings: ε, ξ, α and the number of iterations.
    """

    def __init__(
        self,
        network: nn.Module,
        x: NodeFeatures,
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

    def cost(self) -> Cost:
        """A step of the network, and the passes of the penalty.

        These are one to find each direction, with a gradient for every entry that may change, and
        one with the changed features.
        """
        step = trace_epoch(self, penalty=False)
        passes = self.settings.iterations + 1
        entries = self.entries.values.numel()
        hidden = next(self.network.parameters()).shape[1]
        if isinstance(self.entries, Every):
            n, features = self.x.shape
            products = gemm_cost(n, features, hidden) * (3 * passes)
        else:
            products = memory_pass_cost(3 * entries * hidden) * passes
        return step * (1 + passes) + products + memory_pass_cost(8 * entries) * passes

    def changed(self, logits: Tensor) -> NodeFeatures:
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
    paper=DENG,
    equation="loss = CE + α mean_i KL(p_i(X) ‖ p_i(X + r)), r = ε ∇KL / ‖∇KL‖ on x_ij ≠ 0",
    settings=SVATSettings,
)
class SVATSystem(GCNSystem):
    """Sparse: the features stay sparse."""

    component_wise = False  # the penalty is the mean over all nodes

    entries: ClassVar[Callable[[NodeFeatures], Entries]] = Stored

    def forward(
        self, network: nn.Module, x: NodeFeatures, L: Operator, nodes: Nodes, masks: Masks
    ) -> Forward:
        """With the penalty."""
        entries = type(self).entries(x)
        return Adversarial(network, x, L, nodes, masks, entries, self.settings)


@register(
    "gcn-dvat",
    summary="GCN trained against the worst small change of all features.",
    paper=DENG,
    equation="loss = CE + α mean_i KL(p_i(X) ‖ p_i(X + r)), r = ε ∇KL / ‖∇KL‖",
    settings=DVATSettings,
)
class DVATSystem(SVATSystem):
    """Dense: a change has as many entries as there are nodes times words."""

    entries: ClassVar[Callable[[NodeFeatures], Entries]] = Every
