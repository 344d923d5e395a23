"""Labelling of tables in Python; the result is that of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

import kryograph as kg
from kryograph.data.tables import read_tables
from kryograph.errors import UsageError
from kryograph.labelling import LabelledGraph, check_fit
from tests.helpers.own_tables import write_tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    write_tables(folder, 0)
    return folder


def fitted(folder: Path, **arguments: object) -> LabelledGraph:
    edges, nodes = folder / "follows.parquet", folder / "users.parquet"
    return kg.fit(edges, nodes, label="community", system="prototypes", **arguments)


def test_fit_reads_tables_and_keeps_their_plan(folder: Path) -> None:
    labelled = fitted(folder)
    assert labelled.plan is not None
    uses = {line.column: line.use for line in labelled.plan.lines}
    assert (uses["src"], uses["dst"], uses["user_id"]) == ("source", "target", "id")
    assert (uses["community"], uses["joined"]) == ("label", "date")
    assert labelled.accuracy[0] > labelled.baseline.accuracy
    assert labelled.as_dict()["plan"] == labelled.plan.as_dicts()


def test_fit_names_every_fault_of_the_tables(folder: Path) -> None:
    with pytest.raises(UsageError, match="--id-pad strip"):
        kg.fit(folder / "e4.csv", folder / "n6.csv", label="community")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"positive": "golf"}, "there are 3: leave 'golf' out"),
        ({"coverage_by": "node"}, "Unknown kind of coverage 'node'"),
        ({"coverage_by": "class", "coverage": 0.99}, "at least 99 labels of each class"),
        ({"metric": "f1"}, "two classes"),
    ],
)
def test_check_fit_finds_what_the_fit_would_refuse(
    folder: Path, arguments: dict[str, object], expected: str
) -> None:
    edges, nodes = folder / "follows.parquet", folder / "users.parquet"
    tables = read_tables(edges, nodes, label="community")
    check_fit(tables)
    with pytest.raises(UsageError, match=expected):
        check_fit(tables, **arguments)
    with pytest.raises(UsageError, match=expected):
        fitted(folder, **arguments)


def test_fit_suggests_the_name_of_an_argument(folder: Path) -> None:
    with pytest.raises(UsageError, match="Unknown argument of fit 'labl': did you mean 'label'"):
        kg.fit(folder / "e4.csv", labl="community")


def test_fit_takes_a_system_by_name_with_settings(folder: Path) -> None:
    labelled = fitted(folder, settings={"hops": 3})
    assert labelled.model.system.settings.as_dict()["hops"] == 3


def test_predict_repeats_the_predictions_of_the_fit(folder: Path) -> None:
    labelled = fitted(folder, ignore=["followers"])
    again = labelled.predict(folder / "follows.parquet", folder / "users.parquet")
    given = labelled.predicted.rows()
    without_labels = [[row[0], *row[2:]] for row in given]
    assert again.rows() == without_labels


def test_saved_folder_is_read_as_the_same_labelled_graph(folder: Path, tmp_path: Path) -> None:
    labelled = fitted(folder)
    labelled.save(tmp_path / "run")
    loaded = kg.load_run(tmp_path / "run")
    assert loaded.predicted.rows() == labelled.predicted.rows()
    assert loaded.as_dict() == labelled.as_dict()
    assert (tmp_path / "run" / "report.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    with pytest.raises(UsageError, match="exists already"):
        labelled.save(tmp_path / "run")
