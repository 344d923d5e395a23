from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kryograph.data import toy
from kryograph.errors import KryographError, UsageError
from kryograph.graph import UNKNOWN, Graph
from kryograph.labelling import LabelledGraph, label_nodes
from kryograph.labelling.explanation import Explanation, explain_node
from kryograph.systems import system
from tests.labelling.explained import from_table, labelled_graph

TABLES = ("hops", "neighbours", "nodes", "features")


@pytest.fixture(scope="module")
def labelled() -> LabelledGraph:
    return labelled_graph()


def check(explanation: Explanation) -> None:
    assert abs(explanation.gap) < 1e-4 * max(1, abs(explanation.log_odds))
    for name in TABLES:
        total = sum(getattr(explanation, name)["log_odds"].to_pylist())
        expected = explanation.log_odds + explanation.gap
        assert explanation.intercept + total == pytest.approx(expected, abs=1e-10), name


@pytest.mark.parametrize("features", ["words", "numbers", "none"])
def test_every_table_adds_up_to_the_log_odds_of_the_predictions(features: str) -> None:
    labelled = labelled_graph(features)
    before = labelled.probabilities.copy()
    for node in (3, 47, 89):
        explanation = labelled.explain(node, top=4)
        check(explanation)
        p = labelled.probabilities[node]
        first, second = np.argsort(-p)[:2]
        assert explanation.classes == (labelled.classes[first], labelled.classes[second])
        assert explanation.log_odds == pytest.approx(np.log(p[first] / p[second]))
    np.testing.assert_array_equal(labelled.probabilities, before)


@pytest.mark.parametrize(
    "name", ["truncated-krylov", "snowball", "linear-snowball", "prototypes", "diffused-logistic"]
)
def test_single_systems_are_explained_too(name: str) -> None:
    settings = {"hidden": 8} if "kr" in name or "snow" in name else {}
    explanation = labelled_graph(systems=[system(name, settings)]).explain(40)
    check(explanation)
    assert explanation.members.num_rows == 0


def test_against_names_the_class_to_compare_with(labelled: LabelledGraph) -> None:
    predicted = labelled.classes[labelled.probabilities[40].argmax()]
    for other in set(labelled.classes) - {predicted}:
        explanation = labelled.explain(40, against=other)
        assert explanation.classes == (predicted, other)
        check(explanation)
    with pytest.raises(UsageError, match=f"'{predicted}' is the predicted class of '40'"):
        labelled.explain(40, against=predicted)
    with pytest.raises(UsageError, match="Unknown class 'd'"):
        labelled.explain(40, against="d")


def test_bad_nodes_and_tops_are_refused(labelled: LabelledGraph) -> None:
    with pytest.raises(UsageError, match="no node 'x'"):
        labelled.explain("x")
    with pytest.raises(UsageError, match="At least one line"):
        labelled.explain(3, top=0)


def test_a_system_without_an_exact_form_is_refused() -> None:
    labelled = labelled_graph(systems=[system("lp")])
    with pytest.raises(UsageError, match="no exact explanation for lp; --system truncated-krylov"):
        labelled.explain(3)


def test_features_have_the_names_of_the_recipe(tmp_path: Path) -> None:
    explanation = from_table(tmp_path).explain("p40", top=30)
    check(explanation)
    names = set(explanation.features["feature"].to_pylist())
    assert {"age", "country = NO", "word gene"} <= names
    strongest = explanation.features["feature"][0].as_py()
    assert strongest.startswith(("country", "word"))


def test_a_node_without_neighbours_has_its_own_part_only(tmp_path: Path) -> None:
    explanation = from_table(tmp_path).explain("p59")
    check(explanation)
    assert any("has no neighbour: only its own features" in note for note in explanation.notes)
    nodes = [name for name in explanation.nodes["node"].to_pylist() if name]
    assert nodes == ["p59"]


def test_without_features_in_reach_there_is_only_the_intercept() -> None:
    features = np.zeros((8, 3))
    features[:4] = np.random.default_rng(0).normal(size=(4, 3))
    graph = Graph(toy.two_cliques(4).adjacency * 0, features)
    labels = np.array([0, 1, 0, 1, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN])
    bare = label_nodes(
        graph, labels, ("a", "b"), systems=[system("truncated-krylov", {"hidden": 4})]
    )
    empty = replace(bare, model=replace(bare.model, rule=None))
    probabilities = empty.calibration.probabilities(empty.model.predict_proba(graph))
    explanation = explain_node(replace(empty, probabilities=probabilities), 6)
    check(explanation)
    assert explanation.notes[0].startswith("There is only the intercept")
    assert explanation.intercept == pytest.approx(explanation.log_odds, abs=1e-6)


def test_predictions_of_another_model_are_an_error(labelled: LabelledGraph) -> None:
    other = replace(labelled, probabilities=labelled.probabilities[::-1])
    with pytest.raises(KryographError, match=r"add up to .* but the log-odds are"):
        explain_node(other, 40)


def test_probabilities_below_the_floor_are_scaled_and_said() -> None:
    sharp = system("prototypes", {"representation": "sum", "sharpness": 2000})
    labelled = labelled_graph("words", systems=[sharp])
    node = int(np.sort(labelled.probabilities)[:, -2].argmin())
    explanation = labelled.explain(node)
    check(explanation)
    assert any("probability below 1e-12" in note for note in explanation.notes)


def test_as_dict_is_json_of_plain_values(labelled: LabelledGraph) -> None:
    import json

    value = json.loads(json.dumps(labelled.explain(40).as_dict()))
    total = value["intercept"] + sum(line["log_odds"] for line in value["hops"])
    assert abs(total - value["log_odds"]) < 1e-4
    assert set(value["given_nearest"][0]) == {"node", "label", "similarity"}
