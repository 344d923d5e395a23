"""Systems as semi-supervised classifiers in the manner of scikit-learn.

An unknown label is -1 (`unknown_label`), None, NaN, or pandas' NA; labels may be names, numbers or
categories, in a list, an array or a Series. After `fit`, `transduction_` holds a label for every
row, and `predict` takes new rows. There are three ways to state the edges between rows:

* `PoolClassifier(graph=G).fit(nodes, y)`: rows are node numbers of a `Graph`. This is the way for
  `cross_val_score` and `GridSearchCV`: the graph stays whole and the labels of the held-out nodes
  are hidden, because they are not among the rows that `fit` is given.
* `fit(X, y, adjacency=A)`: X holds the features of all nodes and A the edges between them.
  Cross-validation refuses it: scikit-learn would take rows of A, but not the same columns.
* `fit(X, y)`: each row is joined to its nearest rows, as in scikit-learn's own
  `LabelSpreading(kernel="knn")`. Under cross-validation the graph is sliced: it is made anew from
  the training rows, and a held-out row is labelled by the training rows that are nearest to it.

`score` leaves out rows whose label is unknown, so -1 is never scored as a class. Other metrics of
scikit-learn cannot know it: with `cv=KnownLabelsKFold()` the held-out rows all have a label, and
rows without one stay with the training rows.

>>> import numpy as np
>>> from kryograph.data import toy
>>> A = toy.two_cliques(4).adjacency
>>> y = [0, None, None, None, None, None, None, 1]
>>> model = KrylovClassifier(order=3, dropout=0.0, epochs=50, random_state=0)
>>> model.fit(np.eye(8), y, adjacency=A).transduction_.tolist()
[0, 0, 0, 0, 1, 1, 1, 1]
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from kryograph.errors import UsageError
from kryograph.features import normalised
from kryograph.graph import UNKNOWN, Graph, Task
from kryograph.model import Model
from kryograph.systems import SYSTEMS, NetworkSystem, System, system
from kryograph.systems.pool_members import NETWORK_EPOCHS
from kryograph.training.loop import DEFAULT_CONDITIONS, Conditions
from kryograph.training.stopping import exactly

Array = npt.NDArray[Any]


class GraphClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the classifiers: a subclass names a system, whose settings are its parameters.

    The parameters and their defaults are read from the system's record of settings. All
    classifiers have these parameters as well:

    * `operator`: name of the diffusion operator, if the system has one;
    * `epochs`: number of training epochs, if the system has a network;
    * `graph`: the `Graph` if rows are node numbers, otherwise None;
    * `n_neighbors`: number of nearest rows that each row is joined to if there are no edges;
    * `unknown_label`: label that means "unknown", beside None, NaN and NA; None means no other,
      so that -1 is a class;
    * `random_state`: seed or generator of every random draw.
    """

    system_name: ClassVar[str]
    """Name of the system that the parameters are settings of."""

    def __init_subclass__(cls, system: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if system is not None:
            cls.system_name = system
            initialise: Any = _initialiser(_parameters(SYSTEMS[system]))
            cls.__init__ = initialise  # type: ignore[method-assign]

    def _build_system(self) -> System:
        kind = SYSTEMS[self.system_name]
        fields = dataclasses.fields(kind.settings_type)
        settings = {field.name: getattr(self, field.name) for field in fields}
        operator = getattr(self, "operator", kind.operator)
        return system(self.system_name, settings, operator=operator)

    def fit(self, X: Any, y: Any, adjacency: Any = None) -> Self:
        """Learn from the rows whose label is known, and label the others; see the module."""
        if y is None:
            # scikit-learn's own checks expect these words.
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        X = self._rows_of(X, reset=True)
        known, labels = _known_labels(y, self.unknown_label)
        check_consistent_length(X, known)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(_too_few_classes(self.classes_, self.unknown_label))
        graph, nodes = self._graph_of(X, adjacency)
        classes = np.full(graph.n, UNKNOWN)
        classes[nodes[known]] = codes
        twice = nodes[known][classes[nodes[known]] != codes]
        if twice.size:
            raise UsageError(f"Node {twice[0]} is listed twice, with different labels.")
        prepared, rule = normalised(graph)
        task = Task.labelled(prepared, classes, tuple(str(name) for name in self.classes_))
        method, conditions = self._build_system(), DEFAULT_CONDITIONS
        if isinstance(method, NetworkSystem):
            conditions = Conditions(exactly(self.epochs))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        fit = method.fit(task, seed=seed, conditions=conditions)
        self.model_ = Model.of(method, fit, graph=graph, rule=rule)
        self.label_distributions_ = fit.predict_proba()[nodes]
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]
        self.n_iter_ = fit.epochs
        self._rows, self._node_probabilities = X, fit.predict_proba()
        return self

    def predict_proba(self, X: Any, adjacency: Any = None) -> Array:
        """Compute the class probabilities of rows.

        With an adjacency the system is applied to the graph of these rows. Without one, a row gets
        the probabilities of the nearest training rows, or its own if it is one of them.
        """
        check_is_fitted(self)
        X = self._rows_of(X, reset=False)
        if self.graph is not None:
            return np.asarray(self._node_probabilities[_node_numbers(X, self.graph)])
        if adjacency is not None:
            return self.model_.predict_proba(_graph(X, adjacency))
        return self._by_nearest(X)

    def predict(self, X: Any, adjacency: Any = None) -> Array:
        """Return the most probable class of each row; see `predict_proba`."""
        best = self.predict_proba(X, adjacency).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the share of correct predictions among the rows whose label is known."""
        known, labels = _known_labels(y, self.unknown_label)
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        predicted = self.predict(X)
        check_consistent_length(predicted, known)
        return float(accuracy_score(labels, predicted[known], sample_weight=weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _rows_of(self, X: Any, *, reset: bool) -> Any:
        """Check rows of features, or node numbers in one column or without columns."""
        if self.graph is not None and not sp.issparse(X) and np.ndim(X) == 1:
            X = np.asarray(X)[:, None]
        least = 2 if reset else 1
        return validate_data(
            self, X, accept_sparse="csr", dtype=np.float64, ensure_min_samples=least, reset=reset
        )

    def _graph_of(self, X: Any, adjacency: Any) -> tuple[Graph, Array]:
        """Graph to learn from, and the numbers of the nodes that rows are."""
        if self.graph is not None:
            if adjacency is not None:
                raise ValueError("give adjacency or graph, not both")
            return self.graph, _node_numbers(X, self.graph)
        if adjacency is None:
            count = min(self.n_neighbors, X.shape[0] - 1)
            adjacency = NearestNeighbors(n_neighbors=count).fit(X).kneighbors_graph()
        return _graph(X, adjacency), np.arange(X.shape[0])

    def _by_nearest(self, X: Any) -> Array:
        count = min(self.n_neighbors, self._rows.shape[0])
        distance, near = NearestNeighbors(n_neighbors=count).fit(self._rows).kneighbors(X)
        # Rounding makes the distance of a row to itself slightly larger than zero.
        same = distance <= 1e-7 * (1 + np.abs(X).max())
        weight = np.where(same.any(axis=1, keepdims=True), same, 1 / np.maximum(distance, 1e-12))
        weight = weight / weight.sum(axis=1, keepdims=True)
        return np.asarray(np.einsum("nk,nkc->nc", weight, self.label_distributions_[near]))


def _parameters(kind: type[System]) -> list[inspect.Parameter]:
    """Parameters of the classifier of a system: its settings, and those that all have."""
    fields = dataclasses.fields(kind.settings_type)
    rows = [(field.name, field.default, field.type) for field in fields]
    if kind.uses_operator:
        rows.append(("operator", kind.operator, "str"))
    if issubclass(kind, NetworkSystem):
        rows.append(("epochs", NETWORK_EPOCHS, "int"))
    rows += [("graph", None, "Graph | None"), ("n_neighbors", 7, "int")]
    rows += [("unknown_label", UNKNOWN, "Any"), ("random_state", None, "Any")]
    only = inspect.Parameter.KEYWORD_ONLY
    return [inspect.Parameter(n, only, default=d, annotation=t) for n, d, t in rows]


def _initialiser(parameters: list[inspect.Parameter]) -> Callable[..., None]:
    """Build the `__init__` with these parameters; it sets each as an attribute.

    scikit-learn reads the names and defaults of an estimator's parameters from its signature.
    """
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([first, *parameters], return_annotation="None")

    def __init__(self: Any, **values: Any) -> None:
        arguments = signature.bind(self, **values)
        arguments.apply_defaults()
        vars(self).update({k: v for k, v in arguments.arguments.items() if k != "self"})

    initialise: Any = __init__
    initialise.__signature__ = signature
    return __init__


class PoolClassifier(GraphClassifier, system="pool"):
    """The default of `kryograph fit`: a pool of heads on one Krylov basis. Start with this one."""


class KrylovClassifier(GraphClassifier, system="truncated-krylov"):
    """A truncated block Krylov network."""


class SnowballClassifier(GraphClassifier, system="snowball"):
    """A Snowball network with f = tanh."""


class LinearSnowballClassifier(GraphClassifier, system="linear-snowball"):
    """A Snowball network without activation."""


@dataclass(frozen=True)
class KnownLabelsKFold:
    """Stratified folds of the rows whose label is known, for the `cv` of scikit-learn's functions.

    Each such row is held out once. All rows without a label are training rows in every fold.

    Args:
        n_splits: Number of folds.
        random_state: Seed by which rows are shuffled.
        unknown_label: As in the classifiers.

    >>> [(train.tolist(), test.tolist()) for train, test in
    ...  KnownLabelsKFold(2).split(None, ["a", "b", None, "a", "b"])]
    [([0, 2, 4], [1, 3]), ([1, 2, 3], [0, 4])]
    """

    n_splits: int = 5
    random_state: int = 0
    unknown_label: Any = UNKNOWN

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[tuple[Array, Array]]:
        """Iterate over the numbers of the training rows and of the held-out rows."""
        mask, labels = _known_labels(y, self.unknown_label)
        known, others = np.flatnonzero(mask), np.flatnonzero(~mask)
        folds = StratifiedKFold(self.n_splits, shuffle=True, random_state=self.random_state)
        for train, held_out in folds.split(known, labels):
            yield np.sort(np.concatenate([known[train], others])), known[held_out]

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits


def _known_labels(y: Any, unknown_label: Any) -> tuple[npt.NDArray[np.bool_], Array]:
    """Mark the rows whose label is known, and return the labels of these rows.

    Lists and pandas' own types become objects first: an array of [0, None] would be of objects, of
    [0, NaN] of numbers and of ["a", NaN] of texts. A `ValueError` if no label is known.
    """
    plain = isinstance(getattr(y, "dtype", None), np.dtype)
    labels = column_or_1d(np.asarray(y) if plain else np.asarray(y, dtype=object), warn=True)
    known = np.array([not _is_unknown(label, unknown_label) for label in labels.tolist()], bool)
    if not known.any():
        raise ValueError(f"y has no known label: all {labels.size} labels are missing.")
    values = labels[known]
    if values.dtype == object:
        kinds = sorted({type(value).__name__ for value in values})
        if len(kinds) > 1 and "str" in kinds:
            raise ValueError(f"The labels in y are of several types: {', '.join(kinds)}.")
        values = np.asarray(values.tolist())
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError("The labels in y contain infinity.")
    check_classification_targets(values)
    return known, values


def _is_unknown(label: Any, unknown_label: Any) -> bool:
    """Whether a label is `unknown_label`, None, NaN, or pandas' NA or NaT."""
    if label is None or (isinstance(label, float) and math.isnan(label)):
        return True
    # Comparing pandas.NA with anything gives NA, which has no truth value.
    if type(label).__name__ in ("NAType", "NaTType"):
        return True
    return unknown_label is not None and bool(label == unknown_label)


def _too_few_classes(classes: Array, unknown_label: Any) -> str:
    names = ", ".join(map(str, classes))
    hint = "" if unknown_label is None else "; unknown_label=None makes it a class"
    return (
        f"Classifier can't train when only one class is present: {names}. "
        f"The label {unknown_label!r} counts as unknown{hint}."
    )


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
        sliced = edges.shape[0] == n < edges.shape[1]
        raise ValueError(
            f"adjacency must be {n} × {n}, one row per row of X; it is {edges.shape}."
            + sliced
            * " Cross-validation takes its rows only: pass the whole graph as "
            "`graph` to the classifier, and node numbers as X."
        )
    return Graph.from_scipy(edges, features=sp.csr_array(X) if sp.issparse(X) else X)
