from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph
from kryograph.labelling import LabelledGraph, label_nodes
from kryograph.labelling.what_if import with_row_entries, without_columns
from kryograph.systems import system
from tests.labelling.explained import from_table, labelled_graph

FAST = system("diffused-logistic", {"representation": "hops"})


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> LabelledGraph:
    return from_table(tmp_path_factory.mktemp("people"), [FAST])


@pytest.fixture(scope="module")
def pooled() -> LabelledGraph:
    return labelled_graph("numbers")


def neighbour(labelled: LabelledGraph, node: int) -> int:
    return int(labelled.graph.adjacency[[node]].indices[0])


def test_another_country_changes_the_class(people: LabelledGraph) -> None:
    node = next(i for i in range(30, 60) if people.classes[people.probabilities[i].argmax()] == "a")
    outcome = people.what_if(node, values={"country": "SE", "about": "likes graph number1"})
    assert outcome.changes == ("country = SE", "about = likes graph number1")
    assert not outcome.refitted
    assert outcome.before.tolist() == people.probabilities[node].tolist()
    assert outcome.after[1] > outcome.before[1] + 0.1
    assert outcome.after.sum() == pytest.approx(1)


def test_the_value_that_it_has_changes_nothing(people: LabelledGraph) -> None:
    country = people.what_if(5, values={"country": "NO"})
    own = [people.what_if(5, values={"country": name}).after for name in ("NO", "SE", "DK")]
    assert min(np.abs(after - country.before).max() for after in own) < 1e-6


def test_without_a_feature_it_is_zero_for_all_nodes(people: LabelledGraph) -> None:
    whole = people.what_if("p40", without_feature=["country"])
    single = people.what_if("p40", without_feature=["country = NO", "country = SE", "country = DK"])
    np.testing.assert_allclose(whole.after, single.after, atol=1e-12)
    assert np.abs(whole.after - whole.before).max() > 1e-3
    assert whole.changes == ("without 'country' in all nodes",)


@pytest.mark.parametrize("features", ["words", "numbers", "none"])
def test_without_an_edge_the_fitted_pool_predicts_the_other_graph(features: str) -> None:
    labelled = labelled_graph(features)
    node = 50
    other = neighbour(labelled, node)
    outcome = labelled.what_if(node, without_edge=[str(other)])
    assert np.abs(outcome.after - outcome.before).max() > 1e-6
    assert outcome.changes == (f"without the edge to '{other}'",)
    assert labelled.graph.adjacency[node, other] > 0


def test_trees_keep_their_prediction_and_this_is_said(pooled: LabelledGraph) -> None:
    outcome = pooled.what_if(50, without_edge=[neighbour(pooled, 50)])
    weight = {one.system.name: one.weight for one in pooled.candidates}["trees"]
    assert weight > 0
    assert any(note.startswith("'trees:") and "stays as it was" in note for note in outcome.notes)


def test_all_edges_of_a_node_gone_leave_its_features() -> None:
    labelled = labelled_graph("words", [system("truncated-krylov", {"hidden": 8})])
    near = labelled.graph.adjacency[[50]].indices.tolist()
    outcome = labelled.what_if(50, without_edge=near)
    adjacency = labelled.graph.adjacency.toarray()
    adjacency[50] = adjacency[:, 50] = 0
    alone = Graph(sp.csr_array(adjacency), labelled.graph.features)
    expected = labelled.calibration.probabilities(labelled.model.predict_proba(alone))
    np.testing.assert_allclose(outcome.after, expected[50], atol=1e-9)


def test_labels_are_changed_by_fitting_again_with_the_same_seed(people: LabelledGraph) -> None:
    outcome = people.what_if("p40", without_label=["p0"], label_as={"p41": "a"})
    assert outcome.refitted
    assert outcome.changes == ("without the label of 'p0'", "'p41' labelled as 'a'")
    labels = people.given_labels.copy()
    labels[0], labels[41] = UNKNOWN, 0
    again = label_nodes(
        people.graph, labels, people.classes, recipe=recipe_of(people), systems=[FAST], seed=0
    )
    np.testing.assert_array_equal(outcome.after, again.probabilities[40])


def recipe_of(labelled: LabelledGraph):  # type: ignore[no-untyped-def]
    from kryograph.labelling.table_columns import stored_recipe

    return stored_recipe(labelled)


def test_a_node_that_is_labelled_as_another_class_is_predicted_as_it(
    people: LabelledGraph,
) -> None:
    outcome = people.what_if("p40", label_as={"p40": "b"})
    assert outcome.after[1] > outcome.before[1] or outcome.before[1] > 0.9


def test_features_without_a_table(pooled: LabelledGraph) -> None:
    outcome = pooled.what_if(50, values={"feature 1": "9.5"}, without_feature=["feature 0"])
    assert outcome.changes == ("feature 1 = 9.5", "without 'feature 0' in all nodes")
    assert np.abs(outcome.after - outcome.before).max() > 1e-6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "Nothing is changed"),
        ({"without_edge": [50]}, "'50' has no edge to '50': its neighbours are"),
        ({"without_edge": ["x"]}, "no node 'x'"),
        ({"without_label": [70]}, "'70' has no given label to withdraw"),
        ({"label_as": {"70": "z"}}, "Unknown class 'z'"),
        ({"values": {"feature 1": "many"}}, "'feature 1' is a number, not 'many'"),
        ({"values": {"feature 1": "inf"}}, "must be finite"),
        ({"without_feature": ["colour"]}, "no feature 'colour'"),
    ],
)
def test_bad_changes_are_refused(
    changes: dict[str, object], message: str, pooled: LabelledGraph
) -> None:
    with pytest.raises(UsageError, match=message):
        pooled.what_if(50, **changes)


def test_a_system_that_knows_its_own_graph_only_must_be_fitted_again() -> None:
    labelled = labelled_graph(systems=[system("lp")])
    with pytest.raises(UsageError, match="lp knows its own graph only"):
        labelled.what_if(50, without_edge=[neighbour(labelled, 50)])
    assert labelled.what_if(50, label_as={"50": "a"}).refitted


def test_as_dict_is_json_with_the_names_of_the_classes(people: LabelledGraph) -> None:
    value = json.loads(json.dumps(people.what_if("p40", values={"age": "40"}).as_dict()))
    assert value["node"] == "p40"
    assert value["changes"] == ["age = 40"]
    assert value["refitted"] is False
    assert list(value["after"]) == list(people.classes)
    assert value["predicted_before"] in people.classes


@pytest.mark.parametrize("make", [np.array, sp.csr_array])
def test_matrices_are_copied(make: type) -> None:
    x = make([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]])
    row = with_row_entries(x, 0, [0, 2], np.array([5.0, 6.0]))
    columns = without_columns(x, [1])
    for matrix, expected in (
        (row, [[5, 2, 6], [0, 3, 4]]),
        (columns, [[1, 0, 0], [0, 0, 4]]),
        (x, [[1, 2, 0], [0, 3, 4]]),
    ):
        dense = matrix.toarray() if sp.issparse(matrix) else matrix
        assert dense.tolist() == expected


def test_two_changes_of_different_kinds_act_together(tmp_path: Path) -> None:
    labelled = from_table(tmp_path, [FAST])
    node = 40
    other = neighbour(labelled, node)
    both = labelled.what_if(node, without_edge=[other], values={"age": "20"})
    alone = labelled.what_if(node, values={"age": "20"})
    assert len(both.changes) == 2
    assert np.abs(both.after - alone.after).max() > 1e-9
