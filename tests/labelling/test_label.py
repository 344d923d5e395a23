from __future__ import annotations

import csv
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from kryograph.data import Dataset, synthetic_citations, toy
from kryograph.data.tables import read_tables
from kryograph.errors import KryographError, UsageError
from kryograph.features import normalised
from kryograph.graph import UNKNOWN, Graph, Indices, Task
from kryograph.labelling import LabelledGraph, label_nodes
from kryograph.labelling.calibration import Calibration
from kryograph.model import Model
from kryograph.systems import Fit, system
from kryograph.systems.prototypes import PrototypesSystem
from kryograph.training.loop import Diverged

TABLES = Path(__file__).parents[1] / "golden" / "tables"
FAST = [system("prototypes"), system("lp")]
FAILING = system("lnet", operator="walk-laplacian")
"""Lanczos needs a matrix that is similar to a symmetric one; this operator is not."""


class FailsOnAllLabels(PrototypesSystem):
    """Prototypes that pass cross-validation and fail in the final fit."""

    def fit(self, task: Task, **how: Any) -> Fit:
        if not task.split.validation.size:
            raise ZeroDivisionError("no validation")
        return super().fit(task, **how)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return synthetic_citations(n=240, classes=3, words=40, signal=0.7, homophily=0.85, seed=5)


def first_labels(data: Dataset, count: int) -> Indices:
    return np.where(np.arange(data.graph.n) < count, data.labels, UNKNOWN)


def test_label_nodes_labels_every_node_and_most_are_right(data: Dataset) -> None:
    calls: list[tuple[str, float]] = []
    labels = first_labels(data, 60)
    labelled = label_nodes(
        data.graph,
        labels,
        data.classes,
        systems=FAST,
        progress=lambda *call: calls.append(call),
    )
    np.testing.assert_allclose(labelled.probabilities.sum(axis=1), 1)
    assert np.mean(labelled.probabilities.argmax(axis=1)[60:] == data.labels[60:]) > 0.7
    share, low, high = labelled.accuracy
    assert low < share < high
    assert {stage for stage, _ in calls} == {"choosing", "checking", "training"}
    # Two systems, five folds, three draws.
    choosing = [fraction for stage, fraction in calls if stage == "choosing"]
    np.testing.assert_allclose(choosing, np.arange(31) / 30)
    assert all(labels[s.node] == UNKNOWN for s in labelled.suggestions)
    assert labelled.notes == ()
    first, second = labelled.candidates
    assert (first.system, first.weight, second.weight) == (labelled.model.system, 1.0, 0.0)
    assert not labelled.balanced


def test_label_nodes_gives_the_same_answers_for_the_same_seed(data: Dataset) -> None:
    labels = first_labels(data, 40)
    first, again = (
        label_nodes(data.graph, labels, data.classes, systems=FAST, seed=3) for _ in range(2)
    )
    np.testing.assert_array_equal(first.probabilities, again.probabilities)
    assert first.calibration == again.calibration


def test_label_nodes_never_holds_out_the_single_label_of_a_class(data: Dataset) -> None:
    labels = first_labels(data, 40)
    rare = np.flatnonzero(labels == 2)
    labels[rare[1:]] = UNKNOWN
    labelled = label_nodes(data.graph, labels, data.classes, systems=FAST)
    assert rare[0] not in labelled.held_out.nodes
    assert labelled.probabilities.shape == (240, 3)
    [note] = labelled.notes
    assert f"1 class with a single label, which is never held out: '{data.classes[2]}'" in note


def test_label_nodes_holds_out_one_fold_in_a_large_graph(
    data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kryograph.labelling.answer.MAX_NODES_FOR_ALL_FOLDS", 100)
    labelled = label_nodes(data.graph, first_labels(data, 60), data.classes, systems=FAST)
    assert len(labelled.held_out.nodes) == 12
    assert labelled.probabilities.shape == (240, 3)


def test_label_nodes_refuses_labels_of_one_class(data: Dataset) -> None:
    labels = np.where(data.labels == 0, 0, UNKNOWN)
    with pytest.raises(UsageError, match="at least two classes"):
        label_nodes(data.graph, labels, data.classes)


def test_options_of_two_classes_are_refused_with_three(data: Dataset) -> None:
    labels = first_labels(data, 60)
    with pytest.raises(UsageError, match="one of two classes, and there are 3: leave 'class 0'"):
        label_nodes(data.graph, labels, data.classes, positive="class 0")
    with pytest.raises(UsageError, match="'f1' is one of two classes"):
        label_nodes(data.graph, labels, data.classes, metric="f1")
    assert label_nodes(data.graph, labels, data.classes, systems=FAST).positive is None


# Systems that fail


def test_label_nodes_skips_a_system_that_cannot_be_trained(data: Dataset) -> None:
    labels = first_labels(data, 60)
    alone = label_nodes(data.graph, labels, data.classes, systems=FAST)
    labelled = label_nodes(data.graph, labels, data.classes, systems=[FAILING, *FAST])
    assert [c.system for c in labelled.candidates] == [c.system for c in alone.candidates]
    np.testing.assert_array_equal(labelled.probabilities, alone.probabilities)
    [note] = labelled.notes
    assert note.startswith("lnet could not be trained (Lanczos needs a graph")
    assert note.endswith("It was left out.")


def test_label_nodes_skips_a_system_that_diverges(data: Dataset) -> None:
    diverging = system("linear-snowball", {"hidden": 8, "layers": 10, "lr": 900.0})
    labels = first_labels(data, 60)
    with pytest.raises(Diverged):
        label_nodes(data.graph, labels, data.classes, systems=[diverging])
    labelled = label_nodes(data.graph, labels, data.classes, systems=[diverging, system("lp")])
    assert labelled.model.system == system("lp")
    assert "linear-snowball could not be trained" in labelled.notes[0]


def test_label_nodes_takes_another_system_if_the_final_fit_fails(data: Dataset) -> None:
    late = FailsOnAllLabels(system("prototypes").settings)
    labels = first_labels(data, 60)
    labelled = label_nodes(data.graph, labels, data.classes, systems=[late, system("lp")])
    assert labelled.model.system == system("lp")
    assert [c.system.name for c in labelled.candidates] == ["lp"]
    assert labelled.notes == (
        "prototypes could not be trained (ZeroDivisionError: no validation). It was left out.",
    )


def test_label_nodes_names_every_reason_if_all_systems_fail(data: Dataset) -> None:
    other = system("lnet", {"hidden": 8}, operator="neighbour-mean")
    with pytest.raises(KryographError) as caught:
        label_nodes(data.graph, first_labels(data, 60), data.classes, systems=[FAILING, other])
    message = str(caught.value)
    assert message.startswith("None of the 2 systems could be trained. lnet could not be trained (")
    assert message.count("lnet could not be trained (Lanczos needs") == 2


def test_label_nodes_raises_the_own_error_of_a_single_system(data: Dataset) -> None:
    with pytest.raises(UsageError, match=r"^Lanczos needs"):
        label_nodes(data.graph, first_labels(data, 60), data.classes, systems=[FAILING])


# The default pool


@pytest.fixture(scope="module")
def pooled(data: Dataset) -> LabelledGraph:
    return label_nodes(data.graph, first_labels(data, 65), data.classes)


def test_label_nodes_pools_heads_unless_told_otherwise(
    pooled: LabelledGraph, data: Dataset
) -> None:
    assert pooled.model.system == system("pool")
    assert pooled.epochs == 0
    np.testing.assert_allclose(pooled.probabilities.sum(axis=1), 1)
    right = pooled.probabilities.argmax(axis=1)[65:] == data.labels[65:]
    share, low, high = pooled.accuracy
    assert low < share < high
    assert right.mean() > 0.9
    assert share == pytest.approx(right.mean(), abs=0.06)
    weights = [candidate.weight for candidate in pooled.candidates]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == pytest.approx(1)
    assert pooled.held_out.nodes.tolist() == list(range(65))


def test_summary_states_weights_metric_and_design(pooled: LabelledGraph) -> None:
    summary = pooled.as_dict()
    assert summary["system"] == "pool"
    assert summary["labels_taken_as"] == "uncertain"
    assert any("--random-labels" in note for note in pooled.notes)
    assert summary["held_out_balanced_accuracy"] == pooled.balanced_accuracy
    assert len(summary["candidates"]) == len(pooled.candidates)
    assert summary["candidates"][0]["weight"] == pooled.candidates[0].weight


def test_balanced_labels_are_named_in_a_note_and_count_by_the_shares_of_their_class(
    data: Dataset,
) -> None:
    labels = np.full(240, UNKNOWN)
    for c in range(3):
        labels[np.flatnonzero(data.labels == c)[:8]] = c
    guessed, drawn = (
        label_nodes(data.graph, labels, data.classes, label_design=design)
        for design in ("guess", "as drawn")
    )
    assert (guessed.balanced, drawn.balanced) == (True, False)
    assert any("balanced by design" in note for note in guessed.notes)
    assert not any("balanced by design" in note for note in drawn.notes)
    assert guessed.labels_taken_as == "balanced"
    assert drawn.labels_taken_as == "as drawn"
    held = guessed.held_out
    expected = held.right @ held.importance / held.importance.sum()
    assert guessed.accuracy[0] == pytest.approx(expected)
    np.testing.assert_array_equal(drawn.held_out.importance, 1)


def test_interval_is_wider_if_some_labels_count_more(pooled: LabelledGraph) -> None:
    uneven = np.where(np.arange(65) < 30, 1.8, 0.2)
    held = dataclasses.replace(pooled.held_out, importance=uneven)
    weighted = dataclasses.replace(pooled, held_out=held)
    widths = [one.accuracy[2] - one.accuracy[1] for one in (pooled, weighted)]
    assert widths[1] > 1.1 * widths[0]


# The same data through other doors


def doors(graph: Graph) -> dict[str, Graph]:
    """The graph as it arrives through each constructor, with counts and with normalised rows."""
    words = graph.features.toarray()
    counts = words / np.where(words > 0, words, np.inf).min(axis=1, keepdims=True)
    assert (counts == counts.round()).all()
    edges = np.stack(graph.adjacency.nonzero()).astype(np.int64)
    n = graph.n
    return {
        "scipy": Graph.from_scipy(graph.adjacency, features=graph.features),
        "edges, dense": Graph.from_edges(edges, n, features=words),
        "edges, sparse": Graph.from_edges(edges, n, features=sp.csr_array(words)),
        "counts": Graph.from_scipy(graph.adjacency, features=counts),
        "sparse counts": Graph.from_edges(edges, n, features=sp.csr_array(counts)),
        "pyg": Graph.from_pyg(Graph(graph.adjacency, counts).to_pyg()),
    }


@pytest.mark.slow
def test_same_data_have_the_same_answer_through_every_door(
    pooled: LabelledGraph, data: Dataset
) -> None:
    labels = first_labels(data, 65)
    for name, graph in doors(data.graph).items():
        answer = label_nodes(graph, labels, data.classes)
        difference = np.abs(answer.probabilities - pooled.probabilities)
        assert difference.max() < 0.05, name
        assert difference.mean() < 2e-3, name


@pytest.mark.slow
def test_same_numbers_have_the_same_answer_dense_and_sparse() -> None:
    rng = np.random.default_rng(0)
    known = np.arange(80) % 2
    x = rng.normal(3, 2, (80, 5)) + 2 * known[:, None]
    edges = rng.integers(0, 80, (2, 160))
    labels = np.where(np.arange(80) < 24, known, UNKNOWN)
    dense, sparse, scaled = (
        label_nodes(Graph.from_edges(edges, 80, features=y), labels, ("a", "b"))
        for y in (x, sp.csr_array(x), 100 * x - 7)
    )
    np.testing.assert_allclose(sparse.probabilities, dense.probabilities, atol=1e-6)
    np.testing.assert_allclose(scaled.probabilities, dense.probabilities, atol=0.03)


# Models


@pytest.fixture(scope="module")
def from_tables() -> LabelledGraph:
    tables = read_tables(TABLES / "edges.csv", TABLES / "nodes.csv", label="topic")
    return label_nodes(
        tables.graph,
        tables.labels,
        tables.classes,
        recipe=tables.columns,
        systems=[system("prototypes")],
    )


def test_saved_model_is_accepted_by_the_predict_command(
    from_tables: LabelledGraph, run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    from_tables.model.save(tmp_path / "model")
    out = tmp_path / "predictions.csv"
    options = ("--edges", TABLES / "edges.csv", "--nodes", TABLES / "nodes.csv", "--out", out)
    code, _, messages = run("predict", tmp_path / "model", *options)
    assert code == 0, messages
    with out.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == list(from_tables.graph.names or ())
    for c, name in enumerate(from_tables.classes):
        column = [float(row[f"p({name})"]) for row in rows]
        np.testing.assert_allclose(column, from_tables.probabilities[:, c], atol=1e-6)
    sets = [[row["set"] for row in rows].count(name) for name in from_tables.classes]
    single = from_tables.sets[from_tables.sets.sum(axis=1) == 1]
    assert sets == single.sum(axis=0).tolist()


def test_saved_model_without_a_recipe_is_refused_by_the_predict_command(
    data: Dataset, run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    labelled = label_nodes(data.graph, first_labels(data, 60), data.classes, systems=FAST[:1])
    labelled.model.save(tmp_path / "model")
    options = ("--edges", TABLES / "edges.csv", "--out", tmp_path / "out.csv")
    code, _, messages = run("predict", tmp_path / "model", *options)
    assert code == 2
    assert "recipe=tables.columns" in " ".join(messages.split())


def test_model_holds_what_a_prediction_needs(from_tables: LabelledGraph, tmp_path: Path) -> None:
    from_tables.model.save(tmp_path / "model")
    extra = Model.load(tmp_path / "model").extra
    assert extra.keys() == {"columns", "calibration", "seed", "epochs"}
    assert extra["calibration"]["temperature"] == from_tables.calibration.temperature
    assert (extra["seed"], extra["epochs"]) == (0, 0)


def test_saved_pool_predicts_its_own_graph_as_before(
    pooled: LabelledGraph, data: Dataset, tmp_path: Path
) -> None:
    pooled.model.save(tmp_path / "model")
    model = Model.load(tmp_path / "model")
    raw = model.predict_proba(data.graph)
    again = Calibration.from_extra(model.extra).probabilities(raw)
    np.testing.assert_allclose(again, pooled.probabilities, atol=1e-6)
    embedding = model.embed(data.graph)
    np.testing.assert_allclose(embedding, np.log(raw + 1e-12), atol=1e-6)


@pytest.mark.parametrize("kind", ["words", "numbers"])
def test_saved_pool_predicts_another_graph_by_its_inductive_members(
    kind: str, data: Dataset, tmp_path: Path
) -> None:
    x = data.graph.features.toarray()
    if kind == "numbers":
        x = np.random.default_rng(0).normal(5, 3, (240, 4)) + 4 * np.eye(4)[data.labels]
    graph = Graph(data.graph.adjacency, x)
    labelled = label_nodes(graph, first_labels(data, 60), data.classes)
    labelled.model.save(tmp_path / "model")
    union = toy.disjoint(graph, toy.cycle(5))
    model = Model.load(tmp_path / "model")
    answer = model.predict_proba(Graph(union.adjacency, np.vstack([x, x[:5]])))
    assert answer.shape == (245, 3)
    right = answer[60:240].argmax(axis=1) == data.labels[60:]
    assert right.mean() > 0.7
    with pytest.raises(UsageError, match="features, the model was trained with"):
        model.predict_proba(toy.cycle(5))


def test_saved_model_holds_the_rule_for_features(
    pooled: LabelledGraph, data: Dataset, tmp_path: Path
) -> None:
    pooled.model.save(tmp_path / "model")
    rule = Model.load(tmp_path / "model").rule
    _, expected = normalised(data.graph)
    assert rule is not None
    assert expected is not None
    for name, value in vars(expected).items():
        np.testing.assert_array_equal(getattr(rule, name), value)


def test_label_nodes_gives_the_same_by_a_pool_that_is_named(data: Dataset) -> None:
    """A pool holds labels out by itself; it is not cross-validated around that."""
    labels = first_labels(data, 30)
    members = "prototypes:rounds=2 + diffused-logistic:representation=hops"
    pool = system("pool", {"members": members})
    named = label_nodes(data.graph, labels, data.classes, systems=[pool], seed=1)
    assert [one.system.name for one in named.candidates] != ["pool"]
    assert len(named.candidates) == 2
    assert sum(one.weight for one in named.candidates) == pytest.approx(1)
