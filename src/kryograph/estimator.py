"""For people who think in scikit-learn: the paper's networks as semi-supervised classifiers.

Labels are -1 (or None, in a list of names) where they are not known, `transduction_` has a label
for every node, and `predict` answers for new rows. What the rows are, there are three ways to say:

* `fit(X, y, adjacency=A)`: features and labels of all nodes, and the edges between them;
* `fit(X, y)`: no edges; each row is joined to its nearest rows, as in scikit-learn's own
  `LabelSpreading(kernel="knn")`;
* `KrylovClassifier(graph=G).fit(nodes, y)`: rows are node numbers of a `Graph`. So `GridSearchCV`
  can split the labelled nodes among its folds while the graph stays whole.

>>> import numpy as np
>>> from kryograph.data import toy
>>> A = toy.two_cliques(4).adjacency
>>> y = [0, -1, -1, -1, -1, -1, -1, 1]
>>> model = KrylovClassifier(order=3, dropout=0.0, epochs=50, random_state=0)
>>> model.fit(np.eye(8), y, adjacency=A).transduction_.tolist()
[0, 0, 0, 0, 1, 1, 1, 1]
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph, Task
from kryograph.model import Model
from kryograph.systems import system
from kryograph.training.loop import Conditions
from kryograph.training.stopping import exactly

Array = npt.NDArray[Any]


class _GraphClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What both classifiers share; their parameters are the settings of a system."""

    _system: ClassVar[str]
    _settings: ClassVar[tuple[str, ...]]

    def fit(self, X: Any, y: Any, adjacency: Any = None) -> Self:
        """Learn from the rows whose label is known, and label the others.

        Args:
            X: Features of the nodes, dense or sparse; node numbers if there is a `graph`.
            y: Their classes; -1 or None if not known.
            adjacency: Edges between the rows, N × N, sparse or dense.
        """
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2
        )
        known = _known(y)
        check_classification_targets(y[known])
        self.classes_, codes = np.unique(y[known], return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"Classifier can't train when only one class is present: {self.classes_}."
            )
        if self.graph is not None:
            if adjacency is not None:
                raise ValueError("give adjacency or graph, not both")
            graph, nodes = self.graph, _node_numbers(X, self.graph)
        else:
            edges = self._nearest_rows(X) if adjacency is None else _edges(adjacency, X.shape[0])
            graph, nodes = _graph(X, edges), np.arange(X.shape[0])
        labels = np.full(graph.n, UNKNOWN)
        labels[nodes[known]] = codes
        task = Task.labelled(graph, labels, tuple(str(name) for name in self.classes_))
        changes = {name: getattr(self, name) for name in self._settings}
        made = system(self._system, changes, operator=self.operator)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        fit = made.fit(task, seed=seed, conditions=Conditions(exactly(self.epochs)))
        self.model_ = Model.of(made, fit)
        self.label_distributions_ = fit.predict_proba()[nodes]
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]
        self.n_iter_ = fit.epochs
        self._rows, self._of_nodes = X, fit.predict_proba()
        return self

    def predict_proba(self, X: Any, adjacency: Any = None) -> Array:
        """Class probabilities of rows.

        With an adjacency the network looks at the graph of these rows. Without one a row has the
        probabilities of the rows of training that are nearest to it, its own if it was among them.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        if self.graph is not None:
            return np.asarray(self._of_nodes[_node_numbers(X, self.graph)])
        if adjacency is not None:
            return self.model_.predict_proba(_graph(X, _edges(adjacency, X.shape[0])))
        return self._by_nearest(X)

    def predict(self, X: Any, adjacency: Any = None) -> Array:
        """The most probable class of rows."""
        chosen = self.predict_proba(X, adjacency).argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _nearest_rows(self, X: Any) -> sp.csr_array:
        count = min(self.n_neighbors, X.shape[0] - 1)
        return sp.csr_array(NearestNeighbors(n_neighbors=count).fit(X).kneighbors_graph())

    def _by_nearest(self, X: Any) -> Array:
        count = min(self.n_neighbors, self._rows.shape[0])
        distance, near = NearestNeighbors(n_neighbors=count).fit(self._rows).kneighbors(X)
        # Rounding makes the distance of a row to itself a little more than nothing.
        same = distance <= 1e-7 * (1 + np.abs(X).max())
        weight = np.where(same.any(axis=1, keepdims=True), same, 1 / np.maximum(distance, 1e-12))
        weight = weight / weight.sum(axis=1, keepdims=True)
        return np.asarray(np.einsum("nk,nkc->nc", weight, self.label_distributions_[near]))


class KrylovClassifier(_GraphClassifier):
    """A truncated block Krylov network.

    Args:
        order: Number of blocks X, LX, … in each layer.
        hidden: Width of each hidden layer.
        layers: Number of hidden layers.
        dropout: Rate, on hidden outputs.
        lr: Learning rate.
        weight_decay: L2 on all parameters.
        optimizer: "rmsprop" or "adam".
        operator: "sym" or "rw".
        epochs: For how long to train.
        graph: The graph, if rows are node numbers.
        n_neighbors: How many rows each is joined to, if there are no edges.
        random_state: Fixes weights and dropout.
    """

    _system = "truncated-krylov"
    _settings = ("order", "hidden", "layers", "dropout", "lr", "weight_decay", "optimizer")

    def __init__(
        self,
        order: int = 12,
        *,
        hidden: int = 64,
        layers: int = 1,
        dropout: float = 0.9,
        lr: float = 0.0115,
        weight_decay: float = 4e-4,
        optimizer: str = "rmsprop",
        operator: str = "sym",
        epochs: int = 200,
        graph: Graph | None = None,
        n_neighbors: int = 7,
        random_state: Any = None,
    ) -> None:
        self.order = order
        self.hidden = hidden
        self.layers = layers
        self.dropout = dropout
        self.lr = lr
        self.weight_decay = weight_decay
        self.optimizer = optimizer
        self.operator = operator
        self.epochs = epochs
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.random_state = random_state


class SnowballClassifier(_GraphClassifier):
    """A Snowball network; with `linear`, a linear one.

    Args:
        layers: Number of hidden layers.
        linear: Without activation.
        hidden: Width of each hidden layer.
        dropout: Rate, on hidden outputs.
        lr: Learning rate.
        weight_decay: L2 on all parameters.
        optimizer: "rmsprop" or "adam".
        operator: "sym" or "rw".
        epochs: For how long to train.
        graph: The graph, if rows are node numbers.
        n_neighbors: How many rows each is joined to, if there are no edges.
        random_state: Fixes weights and dropout.
    """

    _settings = ("hidden", "layers", "dropout", "lr", "weight_decay", "optimizer")

    def __init__(
        self,
        layers: int = 1,
        *,
        linear: bool = False,
        hidden: int = 64,
        dropout: float = 0.9,
        lr: float = 0.0175,
        weight_decay: float = 6e-4,
        optimizer: str = "rmsprop",
        operator: str = "sym",
        epochs: int = 200,
        graph: Graph | None = None,
        n_neighbors: int = 7,
        random_state: Any = None,
    ) -> None:
        self.layers = layers
        self.linear = linear
        self.hidden = hidden
        self.dropout = dropout
        self.lr = lr
        self.weight_decay = weight_decay
        self.optimizer = optimizer
        self.operator = operator
        self.epochs = epochs
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.random_state = random_state

    @property
    def _system(self) -> str:  # type: ignore[override]
        return "linear-snowball" if self.linear else "snowball"


def _known(y: Array) -> npt.NDArray[np.bool_]:
    """Which labels are neither -1 nor None."""
    if y.dtype == object:
        return np.array([label is not None and label != UNKNOWN for label in y])
    if y.dtype.kind in "iuf":
        return np.asarray(y != UNKNOWN)
    return np.ones(len(y), dtype=bool)


def _node_numbers(X: Any, graph: Graph) -> Array:
    """The nodes that rows name."""
    rows = X.toarray() if sp.issparse(X) else X
    if rows.shape[1] != 1 or np.any(rows != np.round(rows)):
        raise UsageError(f"With a graph, X has one column of node numbers; got {rows.shape}.")
    nodes = rows[:, 0].astype(np.int64)
    if nodes.min() < 0 or nodes.max() >= graph.n:
        raise UsageError(f"The graph has no node {nodes[(nodes < 0) | (nodes >= graph.n)][0]}.")
    return np.asarray(nodes)


def _edges(adjacency: Any, n: int) -> sp.csr_array:
    edges = sp.csr_array(adjacency)
    if edges.shape != (n, n):
        raise ValueError(f"adjacency must be {n} × {n}, as many as rows; it is {edges.shape}")
    return edges


def _graph(X: Any, edges: sp.csr_array) -> Graph:
    both = edges.tocoo()
    pairs = np.stack([both.row, both.col]).astype(np.int64)
    features = sp.csr_array(X) if sp.issparse(X) else X
    return Graph.from_edges(pairs, X.shape[0], weights=both.data, features=features)
