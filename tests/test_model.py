"""Models on disk: the same answers after reading, and a sentence for every damaged folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kryograph.data import Dataset, synthetic_citations, toy
from kryograph.errors import UsageError
from kryograph.features import normalised
from kryograph.graph import Graph, Split
from kryograph.model import DESCRIPTION, WEIGHTS, Model, _digest
from kryograph.systems import system
from kryograph.training.loop import Conditions
from kryograph.training.stopping import StopRule

SPLIT = Split("by hand", train=range(30), validation=range(30, 60), test=range(60, 200))
SHORT = Conditions(rule=StopRule(max_epochs=5))


@pytest.fixture(scope="module")
def data() -> Dataset:
    return synthetic_citations(n=200, classes=3, words=40, seed=2)


@pytest.fixture(scope="module")
def model(data: Dataset) -> Model:
    made = system("truncated-krylov", {"hidden": 8, "order": 3})
    return Model.of(made, made.fit(data.task(SPLIT), conditions=SHORT), note="<kept>")


@pytest.fixture
def folder(model: Model, tmp_path: Path) -> Path:
    model.save(tmp_path / "model")
    return tmp_path / "model"


def test_what_is_read_is_what_was_written(model: Model, folder: Path, data: Dataset) -> None:
    found = Model.load(folder)
    assert found.system == model.system
    assert found.classes == model.classes
    assert found.extra == {"note": "<kept>"}
    assert found.graph == data.graph.fingerprint
    np.testing.assert_array_equal(found.predict_proba(data.graph), model.predict_proba(data.graph))


def test_a_model_answers_for_a_larger_graph_whose_old_part_is_as_it_was(
    model: Model, data: Dataset
) -> None:
    n = data.graph.n
    both = data.graph.adjacency.tocoo()
    features = data.graph.features
    rows = features.toarray() if hasattr(features, "toarray") else features
    larger = Graph.from_edges(
        np.stack([both.row, both.col]).astype(np.int64), n + 1, features=np.vstack([rows, rows[:1]])
    )
    found = model.predict_proba(larger)
    np.testing.assert_allclose(found[:n], model.predict_proba(data.graph), atol=1e-6)
    assert found.shape == (n + 1, 3)


def test_a_graph_with_other_features_is_refused(model: Model) -> None:
    graph = Graph.from_edges([[0], [1]], 2)
    with pytest.raises(UsageError, match="2 features, the model was trained with 40"):
        model.predict_proba(graph)


def test_a_model_is_never_written_over_another(model: Model, folder: Path) -> None:
    before = (folder / DESCRIPTION).read_bytes()
    with pytest.raises(UsageError, match="exists already"):
        model.save(folder)
    assert (folder / DESCRIPTION).read_bytes() == before


def test_nothing_but_the_two_files_is_left(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == [DESCRIPTION, WEIGHTS]
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def changed(**entries: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        said = json.loads((folder / DESCRIPTION).read_text()) | entries
        said["digest"] = _digest({k: v for k, v in said.items() if k != "digest"})
        (folder / DESCRIPTION).write_text(json.dumps(said))

    return change


def without(entry: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        said = json.loads((folder / DESCRIPTION).read_text())
        del said[entry]
        said["digest"] = _digest({k: v for k, v in said.items() if k != "digest"})
        (folder / DESCRIPTION).write_text(json.dumps(said))

    return change


def cut(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-20]) and None


def flipped(folder: Path) -> None:
    packed = bytearray((folder / WEIGHTS).read_bytes())
    packed[-1] ^= 1
    (folder / WEIGHTS).write_bytes(packed)


def swapped(folder: Path) -> None:
    said = json.loads((folder / DESCRIPTION).read_text())
    said["classes"].reverse()
    (folder / DESCRIPTION).write_text(json.dumps(said))


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (shutil.rmtree, "must be the folder of a model"),
        (lambda folder: (folder / WEIGHTS).unlink(), "must be the folder of a model"),
        (cut(WEIGHTS), "cut off or changed"),
        (flipped, "cut off or changed"),
        (cut(DESCRIPTION), "is not JSON"),
        (lambda folder: (folder / DESCRIPTION).write_text("[" * 100_000), "is not JSON"),
        (lambda folder: (folder / DESCRIPTION).write_text("[]"), "does not describe"),
        (changed(format=2, kryograph="9.0"), "has format 2, written by kryograph 9.0"),
        (changed(format=True), "does not describe"),
        (swapped, "was changed after it was written"),
        (
            changed(system="crystal-ball"),
            "needs the system .crystal-ball.: install",
        ),
        (changed(settings={"hidden": "many"}), "hidden"),
        (changed(settings=7), "wrong entry"),
        (changed(classes=[]), "wrong entry"),
        (changed(features=None), "wrong entry"),
        (without("operator"), "has no entry 'operator'"),
    ],
)
def test_a_damaged_folder_gets_a_sentence(
    folder: Path, damage: Callable[[Path], None], sentence: str
) -> None:
    damage(folder)
    with pytest.raises(UsageError, match=sentence) as caught:
        Model.load(folder)
    assert str(folder) in str(caught.value)


def test_settings_that_do_not_belong_to_the_weights_get_a_sentence(
    folder: Path, data: Dataset
) -> None:
    changed(settings={"hidden": 9, "order": 3})(folder)
    with pytest.raises(UsageError, match="weights do not fit a truncated-krylov"):
        Model.load(folder).predict_proba(data.graph)


def test_label_propagation_answers_for_its_own_graph_only(data: Dataset) -> None:
    made = system("self-training", {"inner": "lp"})
    kept = Model.of(made, made.fit(data.task(SPLIT)))
    assert kept.predict_proba(data.graph).shape == (200, 3)
    order = np.arange(200)[::-1]
    both = data.graph.adjacency[order][:, order]
    turned = Graph(both, data.graph.features[order])
    with pytest.raises(UsageError, match="knows the nodes of its own graph only"):
        kept.predict_proba(turned)


# Features by rule


def ruled(data: Dataset) -> tuple[Model, Graph]:
    """A model whose features are made by the rule, and the graph before."""
    words = np.random.default_rng(0).normal(5, 3, (200, 6)) + 4 * np.eye(6)[data.labels]
    original = Graph(data.graph.adjacency, words)
    graph, rule = normalised(original)
    made = system("prototypes")
    fit = made.fit(replace(data, graph=graph).task(SPLIT))
    return Model.of(made, fit, graph=original, rule=rule), original


def test_model_with_a_rule_predicts_from_features_as_they_were(
    data: Dataset, tmp_path: Path
) -> None:
    model, original = ruled(data)
    model.save(tmp_path / "model")
    read = Model.load(tmp_path / "model")
    assert read.graph == original.fingerprint
    assert not any(name.startswith("features.") for name in read.weights)
    first = model.predict_proba(original)
    np.testing.assert_array_equal(read.predict_proba(original), first)
    np.testing.assert_allclose(read.embed(original), np.log(first + 1e-12))
    shifted = Graph(original.adjacency, 10 * original.features + 3)
    assert np.abs(read.predict_proba(shifted) - first).max() > 0.01


def test_rule_of_a_model_is_that_of_its_own_graph(data: Dataset) -> None:
    """A part of the graph without edges to the rest has the same answer, whatever its mean is."""
    model, original = ruled(data)
    twice = toy.disjoint(original, original)
    x = np.vstack([original.features, original.features + 100])
    answer = model.predict_proba(Graph(twice.adjacency, x))
    np.testing.assert_allclose(answer[:200], model.predict_proba(original), atol=1e-6)


def test_model_without_a_rule_takes_features_as_they_are(model: Model, folder: Path) -> None:
    assert model.rule is None
    assert Model.load(folder).rule is None
