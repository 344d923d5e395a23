"""The classifiers keep scikit-learn's conventions; exceptions say why."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from kryograph.data import Dataset, synthetic_citations, toy
from kryograph.errors import UsageError
from kryograph.estimator import (
    GraphClassifier,
    KnownLabelsKFold,
    KrylovClassifier,
    LinearSnowballClassifier,
    PoolClassifier,
    SnowballClassifier,
)
from kryograph.systems import SYSTEMS, system

CLASSIFIERS = [PoolClassifier, KrylovClassifier, SnowballClassifier, LinearSnowballClassifier]
SMALL = {"hidden": 16, "dropout": 0.0, "epochs": 60, "lr": 0.02}

# The check fits labels -1 and 1. By default -1 is no class, as in scikit-learn's own
# semi-supervised classifiers, which the check leaves out by their names.
MINUS_ONE = {"check_classifiers_classes": "-1 means unknown; with unknown_label=None it is a class"}


@pytest.mark.slow
@parametrize_with_checks(
    [
        KrylovClassifier(order=2, **SMALL),
        PoolClassifier(members="prototypes + trees", unknown_label=None),
        KrylovClassifier(order=2, unknown_label=None, **SMALL),
        SnowballClassifier(unknown_label=None, **SMALL),
        LinearSnowballClassifier(unknown_label=None, **SMALL),
    ],
    expected_failed_checks=lambda e: {} if e.unknown_label is None else MINUS_ONE,
)
@pytest.mark.filterwarnings("ignore")  # scikit-learn's checks try what warns on purpose
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return synthetic_citations(n=240, classes=3, words=40, signal=0.7, homophily=0.85, seed=5)


@pytest.fixture(scope="module")
def given(data: Dataset) -> np.ndarray:
    return np.where(np.arange(240) < 60, data.labels, -1)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_graph_and_labels_of_some_of_its_nodes(
    kind: Any, data: Dataset, given: np.ndarray
) -> None:
    model = kind(random_state=0)
    model.fit(data.graph.features, given, adjacency=data.graph.adjacency)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.transduction_.shape == (240,)
    assert np.mean(model.transduction_[60:] == data.labels[60:]) > 0.7
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1)
    again = clone(model).fit(data.graph.features, given, adjacency=data.graph.adjacency)
    np.testing.assert_array_equal(again.label_distributions_, model.label_distributions_)


def test_edges_matter(data: Dataset, given: np.ndarray) -> None:
    X = data.graph.features.toarray()
    scores = []
    for adjacency in (data.graph.adjacency, sp.csr_array((240, 240))):
        model = KrylovClassifier(epochs=100, random_state=0).fit(X, given, adjacency=adjacency)
        scores.append(np.mean(model.transduction_[60:] == data.labels[60:]))
    assert scores[0] > scores[1] + 0.05


def test_names_as_classes_and_none_for_unknown(data: Dataset) -> None:
    names = np.array(["a", "b", "c"], dtype=object)[data.labels]
    names[60:] = None
    model = KrylovClassifier(epochs=30, random_state=0)
    model.fit(data.graph.features, names, adjacency=data.graph.adjacency)
    assert set(model.transduction_) <= {"a", "b", "c"}


def test_the_same_graph_is_predicted_as_it_was_fitted(data: Dataset, given: np.ndarray) -> None:
    X, A = data.graph.features, data.graph.adjacency
    model = KrylovClassifier(epochs=30, random_state=0).fit(X, given, adjacency=A)
    found = model.predict_proba(X, adjacency=A)
    np.testing.assert_allclose(found, model.label_distributions_, atol=1e-6)


def test_a_grid_search_over_the_labelled_nodes(data: Dataset) -> None:
    nodes = np.arange(60)[:, None]
    search = GridSearchCV(
        KrylovClassifier(graph=data.graph, epochs=30, random_state=0),
        {"order": [1, 6]},
        cv=StratifiedKFold(3),
    ).fit(nodes, data.labels[:60])
    by_order = dict(
        zip(search.cv_results_["param_order"], search.cv_results_["mean_test_score"], strict=True)
    )
    assert by_order[6] > by_order[1]  # neighbours help on this graph
    rest = np.arange(60, 240)[:, None]
    assert search.score(rest, data.labels[60:]) > 0.7


def test_in_a_pipeline_without_edges() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (40, 5)), rng.normal(4, 1, (40, 5))]) * 100
    y = np.full(80, -1)
    y[[0, 1, 40, 41]] = [0, 0, 1, 1]
    model = make_pipeline(StandardScaler(), KrylovClassifier(epochs=60, random_state=0)).fit(X, y)
    assert model.predict(X).tolist() == [0] * 40 + [1] * 40


def test_an_adjacency_of_another_size_is_refused(data: Dataset, given: np.ndarray) -> None:
    with pytest.raises(ValueError, match="adjacency must be 240 × 240"):
        KrylovClassifier().fit(data.graph.features, given, adjacency=np.eye(3))


def test_one_class_is_not_enough() -> None:
    with pytest.raises(ValueError, match="only one class"):
        KrylovClassifier().fit(np.eye(4), [0, 0, -1, -1])


def test_one_class_says_what_minus_one_means() -> None:
    with pytest.raises(ValueError, match=r"one class is present: 1\. The label -1 counts as un"):
        KrylovClassifier().fit(np.eye(4), [1, 1, -1, -1])
    model = KrylovClassifier(unknown_label=None, epochs=5).fit(np.eye(4), [1, 1, -1, -1])
    assert model.classes_.tolist() == [-1, 1]


# Unknown labels

PANDAS = {
    "None among names": pd.Series(["b", *[None] * 6, "a"]),
    "object NaN": pd.Series(["b", *[np.nan] * 6, "a"], dtype=object),
    "string NA": pd.Series(["b", *[None] * 6, "a"], dtype="string"),
    "categories": pd.Series(["b", *[None] * 6, "a"], dtype="category"),
    "unused categories": pd.Categorical(["b", *[None] * 6, "a"], categories=["z", "b", "a"]),
    "another index": pd.Series(["b", *[None] * 6, "a"], index=range(7, -1, -1)),
}
LISTS = {
    "None": ["b", *[None] * 6, "a"],
    "NaN in a list": ["b", *[float("nan")] * 6, "a"],
    "NA in a list": ["b", *[pd.NA] * 6, "a"],
    "mixed": ["b", None, float("nan"), pd.NA, -1, pd.NaT, None, "a"],
    "array of objects": np.array(["b", *[None] * 6, "a"], dtype=object),
}
NUMBERS = {
    "float NaN": np.array([1, *[np.nan] * 6, 0]),
    "Series of floats": pd.Series([1, *[None] * 6, 0]),
    "Int64": pd.Series([1, *[None] * 6, 0], dtype="Int64"),
    "boolean": pd.Series([True, *[None] * 6, False], dtype="boolean"),
    "categories of numbers": pd.Series([1, *[None] * 6, 0], dtype="category"),
    "minus one": [1, *[-1] * 6, 0],
    "minus one as a float": np.array([1.0, *[-1.0] * 6, 0.0]),
    "minus one and NaN": np.array([1.0, *[-1.0, np.nan] * 3, 0.0]),
}


@pytest.mark.parametrize("kind", PANDAS | LISTS | NUMBERS)
def test_every_kind_of_unknown_label(kind: str) -> None:
    y = (PANDAS | LISTS | NUMBERS)[kind]
    model = KrylovClassifier(order=3, dropout=0.0, epochs=50, random_state=0)
    model.fit(np.eye(8), y, adjacency=toy.two_cliques(4).adjacency)
    first, second = [1, 0] if kind in NUMBERS else ["b", "a"]
    assert model.transduction_.tolist() == [first] * 4 + [second] * 4
    assert model.classes_.tolist() == [second, first]
    # Only two rows are scored, both right, whatever the others are predicted as.
    nodes = KrylovClassifier(graph=toy.two_cliques(4), epochs=50, dropout=0.0, random_state=0)
    nodes.fit(np.arange(8), y)
    assert nodes.score(np.arange(8), y) == 1.0


def test_any_value_can_mean_unknown() -> None:
    y = ["a", *["?"] * 6, "b"]
    model = KrylovClassifier(unknown_label="?", epochs=5, random_state=0).fit(np.eye(8), y)
    assert model.classes_.tolist() == ["a", "b"]


@pytest.mark.parametrize("y", [[None] * 4, [-1] * 4, [np.nan] * 4])
def test_no_known_label_is_refused(y: list[Any]) -> None:
    with pytest.raises(ValueError, match="no known label: all 4 labels are missing"):
        KrylovClassifier().fit(np.eye(4), y)


def test_labels_of_several_types_are_refused() -> None:
    with pytest.raises(ValueError, match="labels in y are of several types: int, str"):
        KrylovClassifier().fit(np.eye(4), [1, "2", None, None])


def test_unknown_rows_are_not_scored() -> None:
    model = KrylovClassifier(order=3, dropout=0.0, epochs=50, random_state=0)
    A, X = toy.two_cliques(4).adjacency, np.eye(8)
    model.fit(X, [0, -1, -1, -1, -1, -1, -1, 1], adjacency=A)
    assert model.score(X, [0, 0, -1, None, np.nan, 1, 0, 0]) == pytest.approx(3 / 5)
    weight = [1, 1, 9, 9, 9, 1, 0, 0]
    assert model.score(X, [0, 0, -1, None, np.nan, 1, 0, 0], sample_weight=weight) == 1.0
    with pytest.raises(ValueError, match="no known label"):
        model.score(X, [-1] * 8)


# Cross-validation


def split_scores(model: Any, X: Any, y: Any, **options: Any) -> list[float]:
    return [float(score) for score in cross_val_score(model, X, y, error_score="raise", **options)]


@pytest.fixture(scope="module")
def sparse_labels(data: Dataset) -> np.ndarray:
    """Every fourth node has a label, in no order of the classes."""
    return np.where(np.arange(240) % 4 == 0, data.labels, -1)


@pytest.mark.parametrize("scoring", [None, "accuracy", "neg_log_loss", "f1_macro"])
def test_folds_of_known_labels_score_known_labels_only(
    data: Dataset, sparse_labels: np.ndarray, scoring: str | None
) -> None:
    model = KrylovClassifier(graph=data.graph, epochs=40, random_state=0)
    folds = KnownLabelsKFold(3)
    scores = split_scores(model, np.arange(240), sparse_labels, cv=folds, scoring=scoring)
    assert len(scores) == 3
    lowest = -1.0 if scoring == "neg_log_loss" else 0.7
    assert min(scores) > lowest
    pairs = list(folds.split(None, sparse_labels))
    held_out = np.concatenate([test for _, test in pairs])
    assert sorted(held_out) == np.flatnonzero(sparse_labels != -1).tolist()
    for train, test in pairs:
        assert sorted([*train, *test]) == list(range(240))


@pytest.mark.parametrize("dtype", ["object", "string", "category", "Int64", "float64"])
def test_every_kind_of_unknown_label_can_be_cross_validated(
    data: Dataset, sparse_labels: np.ndarray, dtype: str
) -> None:
    labels = data.labels if dtype in ("Int64", "float64") else np.array([*"abc"])[data.labels]
    y = pd.Series(labels, dtype=object).where(sparse_labels != -1, None).astype(dtype)
    assert y.isna().sum() == 180
    model = KrylovClassifier(graph=data.graph, epochs=40, random_state=0)
    options = {"cv": KnownLabelsKFold(3), "scoring": "balanced_accuracy"}
    assert min(split_scores(model, np.arange(240), y, **options)) > 0.7


def test_ordinary_folds_never_score_minus_one(data: Dataset, sparse_labels: np.ndarray) -> None:
    model = KrylovClassifier(graph=data.graph, epochs=40, random_state=0)
    scores = split_scores(model, np.arange(240), sparse_labels, cv=3)
    # Three quarters of each test fold are unknown: counted as a class, no score could exceed 1/4.
    assert min(scores) > 0.7


def test_labels_of_held_out_nodes_do_not_reach_the_fit(
    data: Dataset, sparse_labels: np.ndarray
) -> None:
    """Other labels in the held-out fold change the score, and nothing of the fit."""
    nodes = np.arange(240)
    train, test = next(KnownLabelsKFold(3).split(nodes, sparse_labels))
    shuffled = sparse_labels.copy()
    shuffled[test] = (shuffled[test] + 1) % 3
    for kind in (KrylovClassifier(epochs=20), PoolClassifier()):
        model = kind.set_params(graph=data.graph, random_state=0)
        fits = [clone(model).fit(nodes[train], y[train]) for y in (sparse_labels, shuffled)]
        first, second = (fit.predict_proba(nodes) for fit in fits)
        assert first.tobytes() == second.tobytes()
        assert fits[0].score(nodes[test], sparse_labels[test]) > 0.7
        assert fits[0].score(nodes[test], shuffled[test]) < 0.3


def test_a_label_that_only_a_leak_could_predict(data: Dataset) -> None:
    """With random labels on a graph without pattern, held-out accuracy is that of guessing."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=240)
    scores = split_scores(
        KrylovClassifier(graph=data.graph, epochs=40, random_state=0),
        np.arange(240),
        y,
        cv=KnownLabelsKFold(4),
    )
    assert 0.35 < np.mean(scores) < 0.65


def test_an_adjacency_that_cross_validation_has_sliced_is_refused(data: Dataset) -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        model = KrylovClassifier(epochs=5).set_fit_request(adjacency=True)
        with pytest.raises(ValueError, match="pass the whole graph as `graph`"):
            split_scores(
                model,
                data.graph.features,
                data.labels,
                cv=3,
                params={"adjacency": data.graph.adjacency},
            )


def test_rows_without_edges_are_cross_validated_with_unknown_labels() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (40, 5)), rng.normal(4, 1, (40, 5))])
    y = pd.Series(np.where(np.arange(80) % 4 == 0, np.arange(80) // 40, None))
    model = make_pipeline(StandardScaler(), KrylovClassifier(epochs=40, random_state=0))
    assert split_scores(model, X, y, cv=KnownLabelsKFold(4)) == [1.0] * 4


def test_a_grid_search_of_the_pool_with_unknown_labels(
    data: Dataset, sparse_labels: np.ndarray
) -> None:
    names = pd.Series(np.array(["a", "b", "c"], dtype=object)[data.labels])
    names[sparse_labels == -1] = None
    search = GridSearchCV(
        PoolClassifier(graph=data.graph, random_state=0),
        {"members": ["prototypes + trees", "lp"]},
        cv=KnownLabelsKFold(2),
        error_score="raise",
    ).fit(np.arange(240), names)
    assert search.best_params_ == {"members": "prototypes + trees"}
    assert set(search.predict(np.arange(240))) <= {"a", "b", "c"}


def test_the_graph_is_not_copied() -> None:
    graph = toy.two_cliques(4)
    assert clone(KrylovClassifier(graph=graph)).graph is graph
    assert copy.deepcopy(graph) is graph


def test_a_node_with_two_labels_is_refused() -> None:
    model = KrylovClassifier(graph=toy.two_cliques(4), epochs=5)
    with pytest.raises(UsageError, match="Node 3 is listed twice, with different labels"):
        model.fit([3, 0, 3], ["a", "b", "b"])
    assert model.fit([3, 0, 3], ["a", "b", "a"]).classes_.tolist() == ["a", "b"]


# Parameters


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_parameters_are_the_settings_of_the_system_with_their_defaults(
    kind: type[GraphClassifier],
) -> None:
    known = system(kind.system_name)
    network = [] if kind is PoolClassifier else ["operator", "epochs"]
    common = [*network, "graph", "n_neighbors", "unknown_label", "random_state"]
    settings, parameters = known.settings.as_dict(), kind().get_params()
    assert list(inspect.signature(kind).parameters) == [*settings, *common]
    assert {name: parameters[name] for name in settings} == settings
    assert kind()._build_system() == known


def test_the_default_pool_is_that_of_the_command_line() -> None:
    assert PoolClassifier()._build_system() == system("pool")
    assert PoolClassifier.system_name in SYSTEMS


def test_a_parameter_that_the_system_does_not_have_is_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'hiden'"):
        KrylovClassifier(hiden=3)


def test_classifier_passes_changed_parameters_to_its_system() -> None:
    changed = KrylovClassifier(order=3, classifier=True, input_dropout=0.2, operator="rw")
    expected = {"order": 3, "classifier": True, "input_dropout": 0.2}
    assert changed._build_system() == system("truncated-krylov", expected, operator="rw")


def test_a_fitted_classifier_can_be_pickled(data: Dataset, given: np.ndarray) -> None:
    model = PoolClassifier(graph=data.graph, random_state=0).fit(np.arange(240), given)
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.predict_proba([3]), model.predict_proba([3]))
