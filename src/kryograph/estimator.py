"""The paper's networks as semi-supervised classifiers in the manner of scikit-learn.

An unknown label is -1, or None in a list of names. After `fit`, `transduction_` holds a label for
every row, and `predict` takes new rows. There are three ways to state the edges between rows:

* `fit(X, y, adjacency=A)`: X holds the features of all nodes and A the edges between them;
* `fit(X, y)`: each row is joined to its nearest rows, as in scikit-learn's own
  `LabelSpreading(kernel="knn")`;
* `KrylovClassifier(graph=G).fit(nodes, y)`: rows are node numbers of a `Graph`, so `GridSearchCV`
  can divide the labelled nodes into folds while the graph stays whole.

>>> import numpy as np
>>> from kryograph.data import toy
>>> A = toy.two_cliques(4).adjacency
>>> y = [0, -1, -1, -1, -1, -1, -1, 1]
>>> model = KrylovClassifier(order=3, dropout=0.0, epochs=50, random_state=0)
>>> model.fit(np.eye(8), y, adjacency=A).transduction_.tolist()
[0, 0, 0, 0, 1, 1, 1, 1]
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from kryograph.errors import UsageError
from kryograph.features import normalised
from kryograph.graph import UNKNOWN, Graph, Task
from kryograph.model import Model
from kryograph.systems import SYSTEMS, System, system
from kryograph.training.loop import Conditions
from kryograph.training.stopping import exactly

Array = npt.NDArray[Any]

# The defaults of the classifiers are those of the systems; no value is written a second time.
_KRYLOV: Any = SYSTEMS["truncated-krylov"].settings_type()
_SNOWBALL: Any = SYSTEMS["snowball"].settings_type()


class _GraphClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the classifiers. Every setting of the system is a parameter of the same name."""

    @abstractmethod
    def _system_name(self) -> str:
        """Name of the system that the parameters ask for."""

    def _build_system(self) -> System:
        name = self._system_name()
        fields = dataclasses.fields(SYSTEMS[name].settings_type)
        settings = {field.name: getattr(self, field.name) for field in fields}
        return system(name, settings, operator=self.operator)

    def fit(self, X: Any, y: Any, adjacency: Any = None) -> Self:
        """Learn from the rows whose label is known, and label the others; see the module."""
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
            if adjacency is None:
                count = min(self.n_neighbors, X.shape[0] - 1)
                adjacency = NearestNeighbors(n_neighbors=count).fit(X).kneighbors_graph()
            graph, nodes = _graph(X, adjacency), np.arange(X.shape[0])
        labels = np.full(graph.n, UNKNOWN)
        labels[nodes[known]] = codes
        prepared, rule = normalised(graph)
        task = Task.labelled(prepared, labels, tuple(str(name) for name in self.classes_))
        method = self._build_system()
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        fit = method.fit(task, seed=seed, conditions=Conditions(exactly(self.epochs)))
        self.model_ = Model.of(method, fit, graph=graph, rule=rule)
        self.label_distributions_ = fit.predict_proba()[nodes]
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]
        self.n_iter_ = fit.epochs
        self._rows, self._node_probabilities = X, fit.predict_proba()
        return self

    def predict_proba(self, X: Any, adjacency: Any = None) -> Array:
        """Compute the class probabilities of rows.

        With an adjacency the network is applied to the graph of these rows. Without one, a row gets
        the probabilities of the nearest training rows, or its own if it is one of them.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        if self.graph is not None:
            return np.asarray(self._node_probabilities[_node_numbers(X, self.graph)])
        if adjacency is not None:
            return self.model_.predict_proba(_graph(X, adjacency))
        return self._by_nearest(X)

    def predict(self, X: Any, adjacency: Any = None) -> Array:
        """Return the most probable class of each row; see `predict_proba`."""
        best = self.predict_proba(X, adjacency).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _by_nearest(self, X: Any) -> Array:
        count = min(self.n_neighbors, self._rows.shape[0])
        distance, near = NearestNeighbors(n_neighbors=count).fit(self._rows).kneighbors(X)
        # Rounding makes the distance of a row to itself slightly larger than zero.
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
        dropout: Dropout rate of hidden outputs.
        input_dropout: Dropout rate of the features.
        classifier: Whether a tanh layer stands before the output.
        lr: Learning rate.
        weight_decay: Factor of the L2 penalty on all parameters.
        optimizer: "rmsprop" or "adam".
        operator: Diffusion operator, "sym" or "rw".
        epochs: Number of training epochs.
        graph: The graph if rows are node numbers, otherwise None.
        n_neighbors: Number of nearest rows that each row is joined to if there are no edges.
        random_state: Seed or generator of the weights and of dropout.
    """

    def __init__(
        self,
        order: int = _KRYLOV.order,
        *,
        hidden: int = _KRYLOV.hidden,
        layers: int = _KRYLOV.layers,
        dropout: float = _KRYLOV.dropout,
        input_dropout: float = _KRYLOV.input_dropout,
        classifier: bool = _KRYLOV.classifier,
        lr: float = _KRYLOV.lr,
        weight_decay: float = _KRYLOV.weight_decay,
        optimizer: str = _KRYLOV.optimizer,
        operator: str = System.operator,
        epochs: int = 200,
        graph: Graph | None = None,
        n_neighbors: int = 7,
        random_state: Any = None,
    ) -> None:
        _set_attributes(self, locals())

    def _system_name(self) -> str:
        return "truncated-krylov"


class SnowballClassifier(_GraphClassifier):
    """A Snowball network. Parameters not listed here are those of `KrylovClassifier`.

    Args:
        layers: Number of hidden layers.
        linear: Whether the network has no activation.
    """

    def __init__(
        self,
        layers: int = _SNOWBALL.layers,
        *,
        linear: bool = False,
        hidden: int = _SNOWBALL.hidden,
        dropout: float = _SNOWBALL.dropout,
        input_dropout: float = _SNOWBALL.input_dropout,
        lr: float = _SNOWBALL.lr,
        weight_decay: float = _SNOWBALL.weight_decay,
        optimizer: str = _SNOWBALL.optimizer,
        operator: str = System.operator,
        epochs: int = 200,
        graph: Graph | None = None,
        n_neighbors: int = 7,
        random_state: Any = None,
    ) -> None:
        _set_attributes(self, locals())

    def _system_name(self) -> str:
        return "linear-snowball" if self.linear else "snowball"


def _set_attributes(estimator: BaseEstimator, arguments: dict[str, Any]) -> None:
    """Set each argument of `__init__` as an attribute, as scikit-learn requires."""
    vars(estimator).update({k: v for k, v in arguments.items() if k != "self"})


def _known(y: Array) -> npt.NDArray[np.bool_]:
    """Mask of the labels that are neither -1 nor None."""
    if y.dtype == object:
        return np.array([label is not None and label != UNKNOWN for label in y])
    if y.dtype.kind in "iuf":
        return np.asarray(y != UNKNOWN)
    return np.ones(len(y), dtype=bool)


def _node_numbers(X: Any, graph: Graph) -> Array:
    """Convert rows with one column of node numbers to node numbers; check their range."""
    rows = X.toarray() if sp.issparse(X) else X
    if rows.shape[1] != 1 or np.any(rows != np.round(rows)):
        raise UsageError(f"With a graph, X has one column of node numbers; got {rows.shape}.")
    nodes = rows[:, 0].astype(np.int64)
    if nodes.min() < 0 or nodes.max() >= graph.n:
        raise UsageError(f"The graph has no node {nodes[(nodes < 0) | (nodes >= graph.n)][0]}.")
    return np.asarray(nodes)


def _graph(X: Any, adjacency: Any) -> Graph:
    edges, n = sp.csr_array(adjacency), X.shape[0]
    if edges.shape != (n, n):
        raise ValueError(f"adjacency must be {n} × {n}, one row per row of X; it is {edges.shape}")
    return Graph.from_scipy(edges, features=sp.csr_array(X) if sp.issparse(X) else X)
