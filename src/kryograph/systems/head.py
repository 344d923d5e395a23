"""Heads: systems that learn from one representation of the nodes, without epochs.

Heads share a `Basis`: what does not depend on labels is computed once for a graph, whatever the
number of heads and folds. Used alone, a head is a system like any other.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch

from kryograph.basis import RANK, REPRESENTATIONS, Basis, Rows
from kryograph.engine.cost import Estimate, gemm_cost, spmm_cost, temporary
from kryograph.errors import KryographError
from kryograph.explain.contributions import AdditiveForm, Values
from kryograph.explain.rows import LinearRows, RowForm, row_form
from kryograph.graph import Graph, Indices, Task
from kryograph.systems.base import Fit, Probabilities, S, System, Weights
from kryograph.training.loop import DEFAULT_CONDITIONS, Conditions, OnEpoch, ignore_epoch

BASIS_HOPS = 28
"""Number of products with an operator for all representations together."""

STATE = "basis."
"""Prefix of the tensors of a head's weights that are the state of its basis."""


class HeadSystem(System[S]):
    """Base class of heads: a subclass implements `learn` and `score`.

    It also overrides `learn_folds` if it can do better than to learn each fold anew.
    """

    uses_operator: ClassVar[bool] = False

    component_wise: ClassVar[bool] = False  # columns are standardised over all nodes

    @property
    def representation(self) -> str:
        """Name of the representation that the head learns from.

        A name that is not in `REPRESENTATIONS` stands for rows that the head computes itself.
        """
        settings: Any = self.settings
        return str(settings.representation)

    @property
    def prior(self) -> float:
        """Weight of the head in a pool before any evidence, relative to other heads."""
        return 1.0

    def exists(self, basis: Basis) -> bool:
        """Whether the graph has this representation."""
        return self.representation not in REPRESENTATIONS or basis.usable(self.representation)

    @abstractmethod
    def learn(
        self, basis: Basis, nodes: Indices, labels: Indices, classes: int, seed: int
    ) -> Weights:
        """Learn from the labels of some nodes.

        Args:
            basis: Representations of the graph.
            nodes: Numbers of the labelled nodes.
            labels: Their class numbers, in the same order.
            classes: Number of classes C.
            seed: Determines every random draw.
        """

    @abstractmethod
    def score(self, basis: Basis, weights: Weights, classes: int) -> Probabilities:
        """Class probabilities N × C of the nodes of a basis."""

    def learn_folds(
        self,
        basis: Basis,
        nodes: Indices,
        labels: Indices,
        classes: int,
        folds: Sequence[tuple[Indices, Indices]],
        seed: int,
    ) -> list[Probabilities]:
        """Predict held-out nodes, fold by fold.

        Args:
            basis: Representations of the graph.
            nodes: Numbers of the labelled nodes.
            labels: Their class numbers, in the same order.
            classes: Number of classes C.
            folds: Positions in `nodes` that are learned from, and positions that are held out.
            seed: Determines every random draw.
        """
        results = []
        for train, held_out in folds:
            weights = self.learn(basis, nodes[train], labels[train], classes, seed)
            results.append(self.score(basis, weights, classes)[nodes[held_out]])
        return results

    def fit(
        self,
        task: Task,
        *,
        seed: int = 0,
        conditions: Conditions = DEFAULT_CONDITIONS,
        on_epoch: OnEpoch = ignore_epoch,
    ) -> Fit:
        conditions.check()
        basis, nodes = Basis(task.graph), task.split.train
        if not self.exists(basis):
            raise KryographError(
                f"{self.name}: the representation {self.representation!r} does not exist for this "
                "graph, which has no features, few features or no edges. Choose another one."
            )
        weights = self.learn(basis, nodes, task.labels[nodes], len(task.classes), seed)
        probabilities = self.score(basis, weights, len(task.classes))
        state = {STATE + name: value for name, value in basis.state.items()}
        return Fit(task, probabilities, 0, {**weights, **state})

    def estimate(self, task: Task, conditions: Conditions = DEFAULT_CONDITIONS) -> Estimate | None:
        return closed_form_estimate(task, hops=BASIS_HOPS)

    def apply(self, weights: Weights, graph: Graph, classes: int) -> Probabilities:
        return self.score(Basis(graph, basis_state(weights)), weights, classes)

    def apply_changed(
        self, weights: Weights, graph: Graph, changed: Graph, classes: int
    ) -> Probabilities:
        if not self.recomputed:
            return super().apply_changed(weights, graph, changed, classes)
        basis = Basis(graph, basis_state(weights)).changed(changed)
        return self.score(basis, weights, classes)

    def coefficients(self, weights: Weights, row: Values) -> Values | None:
        """Coefficients d × C of the logits of a node with this row (d); None if not linear.

        They may depend on the length of the row, which explanations hold fixed.
        """
        return None

    def rows(self, basis: Basis, weights: Weights) -> Rows:
        """Rows of all nodes that the head learns from."""
        return basis.rows(self.representation)

    def row_form(self, basis: Basis, weights: Weights) -> RowForm | None:
        """How the rows come from the features; None if they are not linear in them."""
        return row_form(basis, self.representation)

    def additive(self, weights: Weights, graph: Graph, classes: int) -> AdditiveForm:
        form = self.additive_on(Basis(graph, basis_state(weights)), weights)
        return super().additive(weights, graph, classes) if form is None else form

    def additive_on(self, basis: Basis, weights: Weights) -> LinearRows | None:
        """Build the additive form on a basis that heads share; None if there is no exact one."""
        form = self.row_form(basis, weights)
        if form is None or self.coefficients(weights, form.at(0).row) is None:
            return None

        def coefficients(row: Values) -> Values:
            values = self.coefficients(weights, row)
            assert values is not None
            return values

        return LinearRows(
            form,
            basis.graph.features.shape[1],
            coefficients,
            weights["labelled"].numpy() > 0,
            lambda: self.rows(basis, weights),
        )

    @property
    def recomputed(self) -> bool:
        return True

    @property
    def inductive(self) -> bool:
        return REPRESENTATIONS[self.representation].inductive


def basis_state(weights: Weights) -> dict[str, torch.Tensor]:
    """State of the basis among the weights of a head or pool."""
    return {k.removeprefix(STATE): v for k, v in weights.items() if k.startswith(STATE)}


def closed_form_estimate(task: Task, *, hops: int, predictions: int = 1) -> Estimate:
    """Estimate of a system that diffuses the features and multiplies them, without epochs.

    Args:
        task: Graph and labels.
        hops: Number of products with an operator.
        predictions: How often the classes of all nodes are predicted.
    """
    graph, classes = task.graph, len(task.classes)
    n, features = graph.features.shape
    stored = graph.features.nnz if isinstance(graph.features, sp.csr_array) else n * features
    width = max(1, min(features, RANK))
    projection = spmm_cost(stored, n, width) * 6 + gemm_cost(n, width, width) * 4
    hop = spmm_cost(graph.adjacency.nnz + n, n, width)
    once = projection + hop * hops + gemm_cost(n, width, classes) * predictions
    return Estimate(classes * width, once + temporary(8 * n * width + stored), epochs=1)


def tensors(**arrays: np.ndarray) -> dict[str, torch.Tensor]:
    """Convert named arrays to tensors."""
    return {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in arrays.items()}
