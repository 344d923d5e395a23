from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import kryograph as kg
from kryograph.data import synthetic_citations, toy
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Cleaning, Graph
from kryograph.labelling import LabelledGraph, label_nodes
from kryograph.labelling.output import read_suggestions
from kryograph.labelling.run_folder import check_fit_output, load_run, write
from kryograph.model import Model
from kryograph.systems import system

FILES = ["model", "predictions.csv", "report.html", "run.json", "run.npz", "suggestions.csv"]


@pytest.fixture(scope="module")
def labelled() -> LabelledGraph:
    graph = toy.two_cliques(4)
    labels = np.array([0, 0, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, 1, 1])
    return label_nodes(graph, labels, ("left", "right"), systems=[system("lp")])


@pytest.fixture
def run(labelled: LabelledGraph, tmp_path: Path) -> Path:
    write(tmp_path / "run", labelled, "<p>page</p>")
    return tmp_path / "run"


def test_write_makes_a_folder_with_every_part(labelled: LabelledGraph, run: Path) -> None:
    assert sorted(path.name for path in run.iterdir()) == FILES
    assert (run / "report.html").read_text() == "<p>page</p>"
    raw = Model.load(run / "model").predict_proba(labelled.graph)
    calibrated = labelled.calibration.probabilities(raw)
    np.testing.assert_allclose(calibrated, labelled.probabilities, atol=1e-6)
    assert [row["id"] for row in read_suggestions(run)] == [
        str(suggestion.node) for suggestion in labelled.suggestions
    ]


def test_write_leaves_the_page_out_if_there_is_none(
    labelled: LabelledGraph, tmp_path: Path
) -> None:
    write(tmp_path / "run", labelled)
    assert not (tmp_path / "run" / "report.html").exists()


def test_check_fit_output_allows_to_overwrite_only_what_a_fit_wrote(run: Path) -> None:
    check_fit_output(run, overwrite=True, folder=True)
    check_fit_output(run / "new.csv", overwrite=False, folder=False)
    with pytest.raises(UsageError, match="exists already"):
        check_fit_output(run, overwrite=False, folder=True)
    with pytest.raises(UsageError, match="not a table of predictions"):
        check_fit_output(run / "suggestions.csv", overwrite=True, folder=False)
    (run / "diary.txt").write_text("private")
    with pytest.raises(UsageError, match="not the folder of a fit"):
        check_fit_output(run, overwrite=True, folder=True)


@pytest.mark.parametrize("features", ["words", "numbers", "none"])
def test_a_run_that_is_read_is_the_one_that_was_written(features: str, tmp_path: Path) -> None:
    data = synthetic_citations(n=60, classes=2, words=70, signal=0.7, homophily=0.8, seed=1)
    x = {
        "words": data.graph.features,
        "numbers": np.random.default_rng(0).normal(size=(60, 3)),
        "none": sp.eye_array(60, format="csr"),
    }
    names = (*(f"knoten {i}" for i in range(57)), "", "łódź\n", "<b>")
    graph = Graph(data.graph.adjacency, x[features], names, Cleaning(loops=2))
    labels = np.where(np.arange(60) < 20, data.labels, UNKNOWN)
    members = "diffused-logistic + trees:trees=5,fold_trees=5"
    first = label_nodes(
        graph, labels, ("a", "b"), systems=[system("pool", {"members": members})], suggestions=3
    )
    write(tmp_path / "one", first)
    again = kg.load_run(tmp_path / "one")
    assert again.graph.fingerprint == graph.fingerprint
    assert again.graph.names == names
    assert again.graph.cleaning == graph.cleaning
    assert again.suggestions == first.suggestions
    assert again.as_dict() == first.as_dict()
    assert again.notes == first.notes
    np.testing.assert_array_equal(again.held_out.probabilities, first.held_out.probabilities)
    assert again.explain(30).as_dict() == first.explain(30).as_dict()
    write(tmp_path / "two", again)
    for path in (tmp_path / "one").rglob("*"):
        if path.is_file():
            other = tmp_path / "two" / path.relative_to(tmp_path / "one")
            assert path.read_bytes() == other.read_bytes(), path.name


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def change(path: Path, entry: str, value: object) -> None:
    content = json.loads(path.read_text())
    content[entry] = value
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda run: (run / "run.json").unlink(), "There is no .*run.json: is .* the folder of"),
        (lambda run: (run / "run.npz").unlink(), "There is no .*run.npz: copy the whole folder"),
        (lambda run: cut(run / "run.json"), "run.json is not JSON"),
        (lambda run: cut(run / "run.npz"), "run.npz is not the file that run.json belongs to"),
        (lambda run: change(run / "run.json", "epochs", 7), "run.json was changed after"),
        (lambda run: change(run / "run.json", "format", 9), "has format 9, .*newer version"),
        (lambda run: change(run / "run.json", "format", "1"), "does not describe a fit"),
        (lambda run: (run / "run.json").write_text("[]"), "does not describe a fit"),
        (lambda run: cut(run / "model" / "weights.safetensors"), "weights.safetensors is not the"),
        (lambda run: change(run / "model" / "model.json", "classes", []), "model.json is not the"),
    ],
)
def test_a_damaged_folder_is_refused(
    damage: Callable[[Path], object], message: str, run: Path
) -> None:
    damage(run)
    with pytest.raises(UsageError, match=message):
        load_run(run)


def sign(run: Path) -> None:
    """Write digests that fit the files, as somebody could who wants to deceive."""
    from kryograph.files import sha256
    from kryograph.labelling.run_folder import _digest

    content = json.loads((run / "run.json").read_text())
    content["sha256"] = {name: sha256(run / name) for name in content["sha256"]}
    del content["digest"]
    (run / "run.json").write_text(json.dumps(content | {"digest": _digest(content)}))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("given_labels", np.array([{}], dtype=object), "wrong entry"),
        ("adjacency.indices", np.array([99] * 26), "wrong entry"),
        ("probabilities", None, "no entry 'probabilities'"),
    ],
)
def test_arrays_with_fitting_digests_are_still_checked(
    name: str, value: np.ndarray | None, message: str, run: Path
) -> None:
    with np.load(run / "run.npz") as archive:
        arrays = dict(archive)
    arrays.pop(name, None)
    if value is not None:
        arrays[name] = value
    np.savez(run / "run.npz", **arrays)
    sign(run)
    with pytest.raises(UsageError, match=message):
        load_run(run)
