"""`kryograph fit`, `predict` and `suggest` from end to end, as a person types them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from kryograph.data import Dataset, synthetic_citations
from tests.fraud_graph import FRAUD_CLASSES, draw_fraud_graph

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def data() -> Dataset:
    return synthetic_citations(n=240, classes=3, words=40, signal=0.7, homophily=0.85, seed=5)


def write_tables(data: Dataset, folder: Path, labelled: int = 60) -> tuple[Path, Path]:
    """The graph as two CSV files; the first nodes have their label."""
    folder.mkdir(exist_ok=True)
    edges, nodes = folder / "edges.csv", folder / "nodes.csv"
    pairs = sp.triu(data.graph.adjacency).tocoo()
    with edges.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target"])
        writer.writerows((f"n{i}", f"n{j}") for i, j in zip(pairs.row, pairs.col, strict=True))
    x = data.graph.features
    words = x.toarray() if sp.issparse(x) else x
    with nodes.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *(f"w{k}" for k in range(words.shape[1])), "topic"])
        for i, row in enumerate(words):
            topic = data.classes[data.labels[i]] if i < labelled else ""
            writer.writerow([f"n{i}", *(round(float(v), 6) for v in row), topic])
    return edges, nodes


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def tables(data: Dataset, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_tables(data, tmp_path_factory.mktemp("tables"))


@pytest.mark.slow
def test_from_two_tables_to_predictions_a_page_and_a_model(
    run: Run, tables: tuple[Path, Path], data: Dataset, tmp_path: Path
) -> None:
    edges, nodes = tables
    out = tmp_path / "run"
    code, said, _ = run("fit", "--edges", edges, "--nodes", nodes, "--label", "topic", "--out", out)
    assert code == 0
    assert "240 nodes" in said
    assert "60 labels of 3 classes" in said
    assert "Held-out accuracy" in said
    rows = rows_of(out / "predictions.csv")
    assert [row["id"] for row in rows] == [f"n{i}" for i in range(240)]
    assert [row["given"] for row in rows[:2]] == [data.classes[c] for c in data.labels[:2]]
    assert all(row["given"] == "" for row in rows[60:])
    right = [row["predicted"] == data.classes[data.labels[i]] for i, row in enumerate(rows)]
    assert np.mean(right[60:]) > 0.7
    for row in rows:
        chances = {name: float(row[f"p({name})"]) for name in data.classes}
        assert sum(chances.values()) == pytest.approx(1, abs=1e-5)
        assert row["predicted"] == max(chances, key=lambda name: chances[name])
        assert float(row["probability"]) == chances[row["predicted"]]
        assert row["predicted"] in row["set"].split(" | ")
    assert "<html" in (out / "report.html").read_text(encoding="utf-8")

    # The same graph again, by the model: the same answers.
    new = tmp_path / "new.csv"
    code, said, _ = run(
        *("predict", out / "model", "--edges", edges, "--nodes", nodes, "--out", new)
    )
    assert code == 0
    assert "240 nodes labelled" in said
    for ours, again in zip(rows, rows_of(new), strict=True):
        assert ours["id"] == again["id"]
        for name in data.classes:
            assert float(again[f"p({name})"]) == pytest.approx(float(ours[f"p({name})"]), abs=2e-6)

    code, said, _ = run("suggest", out, "--count", 3, "--json")
    assert code == 0
    chosen = json.loads(said)
    assert len(chosen) == 3
    assert all(int(row["id"][1:]) >= 60 for row in chosen)
    code, said, _ = run("suggest", out, "--count", 2)
    assert code == 0
    assert chosen[0]["id"] in said


def test_a_named_system_and_json(run: Run, tables: tuple[Path, Path], tmp_path: Path) -> None:
    edges, nodes = tables
    command = ("fit", "--edges", edges, "--nodes", nodes, "--label", "topic", "--system", "lp")
    code, said, _ = run(*command, "--set", "alpha=0.01", "--out", tmp_path / "run", "--json")
    assert code == 0
    summary = json.loads(said)
    assert summary["system"] == "lp"
    assert summary["settings"] == {"alpha": 0.01}
    assert summary["labels"] == 60
    low, high = summary["held_out_accuracy"]["ci95"]
    assert low < summary["held_out_accuracy"]["mean"] < high


@pytest.mark.slow
def test_a_search_changes_settings_only_for_the_better(
    run: Run, tables: tuple[Path, Path], tmp_path: Path
) -> None:
    edges, nodes = tables
    command = ("fit", "--edges", edges, "--nodes", nodes, "--label", "topic")
    searching = ("--system", "prototypes", "--search", "2s", "--json", "--out", tmp_path / "run")
    code, said, _ = run(*command, *searching)
    assert code == 0
    summary = json.loads(said)
    assert summary["system"] == "prototypes"
    assert set(summary["settings"]) == {"hops", "sharpness", "rounds", "pull", "representation"}


@pytest.mark.slow
def test_an_output_that_exists_is_kept_unless_asked(
    run: Run, tables: tuple[Path, Path], tmp_path: Path
) -> None:
    edges, nodes = tables
    out = tmp_path / "run"
    command = ("fit", "--edges", edges, "--nodes", nodes, "--label", "topic", "--system", "lp")
    assert run(*command, "--out", out)[0] == 0
    before = (out / "predictions.csv").read_bytes()
    code, _, said = run(*command, "--out", out)
    assert code == 2
    assert "exists already" in said
    assert (out / "predictions.csv").read_bytes() == before
    assert run(*command, "--out", out, "--overwrite")[0] == 0
    precious = tmp_path / "thesis"
    precious.mkdir()
    (precious / "chapter1.tex").write_text("\\section{Mine}")
    code, _, said = run(*command, "--out", precious, "--overwrite")
    assert code == 2
    assert "not the folder of a fit" in said
    assert (precious / "chapter1.tex").exists()


@pytest.fixture(scope="module")
def frauds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A fraud graph as two tables; about 20 of 250 labels are 'yes'."""
    graph, _, labels = draw_fraud_graph(600, labelled=0.4, share=0.08, signal=1.5, seed=4)
    data = Dataset("frauds", graph, np.maximum(labels, 0), FRAUD_CLASSES, "drawn")
    folder = tmp_path_factory.mktemp("frauds")
    edges, nodes = write_tables(data, folder, 0)
    rows = rows_of(nodes)
    with nodes.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        for row, label in zip(rows, labels, strict=True):
            writer.writerow(row | {"topic": FRAUD_CLASSES[label] if label >= 0 else ""})
    return edges, nodes


def test_a_rare_class_has_honest_figures_and_sets_of_its_own(
    run: Run, frauds: tuple[Path, Path], tmp_path: Path
) -> None:
    edges, nodes = frauds
    out = tmp_path / "run"
    command = ("fit", "--edges", edges, "--nodes", nodes, "--label", "topic", "--out", out)
    code, printed, messages = run(*command, "--coverage-by", "class", "--metric", "f1")
    assert code == 0
    for beginning in ("Held-out accuracy", "Always 'no'", "Balanced accuracy", "Average precision"):
        assert f"\n{beginning}" in printed
    assert "top-ranked of" in printed
    assert "made for f1" in messages
    rows = rows_of(out / "predictions.csv")
    by_rank = sorted(rows, key=lambda row: int(row["p_rank"]))
    assert [int(row["p_rank"]) for row in by_rank] == list(range(1, 601))
    chances = [float(row["p(yes)"]) for row in by_rank]
    assert chances == sorted(chances, reverse=True)
    if (out / "disputed.csv").exists():
        assert set(rows_of(out / "disputed.csv")[0]) == {"id", "given", "predicted", "probability"}

    # The model has the thresholds by class and the positive class too.
    new = tmp_path / "new.csv"
    assert run("predict", out, "--edges", edges, "--nodes", nodes, "--out", new)[0] == 0
    for ours, again in zip(rows, rows_of(new), strict=True):
        assert (ours["set"], ours["p_rank"]) == (again["set"], again["p_rank"])


def test_json_of_a_fit_has_baseline_classes_ranking_and_disputed_labels(
    run: Run, frauds: tuple[Path, Path], tmp_path: Path
) -> None:
    edges, nodes = frauds
    command = ("fit", "--edges", edges, "--nodes", nodes, "--label", "topic", "--system", "lp")
    code, printed, _ = run(*command, "--positive", "no", "--json", "--out", tmp_path / "run")
    assert code == 0
    summary = json.loads(printed)
    assert summary["baseline"]["class"] == "no"
    assert [one["class"] for one in summary["per_class"]] == ["no", "yes"]
    assert summary["ranking"]["positive"] == "no"
    assert summary["coverage_by"] == "all"
    assert isinstance(summary["disputed"], list)


def test_sets_by_class_need_labels_of_each_class(
    run: Run, frauds: tuple[Path, Path], tmp_path: Path
) -> None:
    edges, nodes = frauds
    command = ("fit", "--edges", edges, "--nodes", nodes, "--label", "topic")
    strict = ("--coverage-by", "class", "--coverage", "0.99")
    code, _, complaint = run(*command, *strict, "--out", tmp_path / "run")
    assert code == 2
    assert "at least 99 labels of each class" in complaint
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Say --label NAME"),
        (("--label", "topic", "--metric", "f1"), "'f1' is one of two classes, and there are 3"),
        (("--label", "topic", "--metric", "f2"), "Unknown metric 'f2'"),
        (("--label", "topic", "--positive", "class 1"), "one of two classes, and there are 3"),
        (
            ("--label", "topic", "--system", "lp", "--metric", "balanced-accuracy"),
            "add --search, or leave --metric or --system out",
        ),
        (
            ("--label", "topic", "--system", "lp", "--class-weight", "balanced"),
            "belong to the pool",
        ),
        (("--label", "topics"), "did you mean 'topic'"),
        (("--label", "topic", "--coverage", "1.5"), "--coverage must lie between 0 and 1"),
        (("--label", "topic", "--system", "crystal-ball"), "Unknown system"),
        (("--label", "topic", "--set", "hidden=3"), "name it with --system"),
        (("--label", "topic", "--search", "soon"), "A duration is a number"),
        (("--label", "topic", "--ignore", "w99"), "w99"),
    ],
)
def test_misuse_gets_a_sentence_and_leaves_nothing(
    run: Run,
    tables: tuple[Path, Path],
    tmp_path: Path,
    arguments: tuple[str, ...],
    sentence: str,
) -> None:
    edges, nodes = tables
    out = tmp_path / "run"
    code, said, complaint = run("fit", "--edges", edges, "--nodes", nodes, *arguments, "--out", out)
    assert code == 2
    assert sentence in complaint
    lines = complaint.splitlines()
    assert [line for line in lines if " -> " not in line] == lines[-1:]  # after the plan
    assert said == ""
    assert list(tmp_path.iterdir()) == []


def test_labels_for_all_nodes_or_none_get_a_sentence(
    run: Run, data: Dataset, tmp_path: Path
) -> None:
    for labelled, sentence in ((240, "nothing is left to predict"), (0, "no labels")):
        edges, nodes = write_tables(data, tmp_path / str(labelled), labelled)
        command = ("fit", "--edges", edges, "--nodes", nodes, "--label", "topic")
        code, _, said = run(*command, "--out", tmp_path / "run")
        assert code == 2
        assert sentence in said
    assert not (tmp_path / "run").exists()


def test_predict_says_which_columns_are_missing(
    run: Run, tables: tuple[Path, Path], tmp_path: Path
) -> None:
    edges, nodes = tables
    command = ("fit", "--edges", edges, "--nodes", nodes, "--label", "topic")
    assert run(*command, "--system", "prototypes", "--out", tmp_path / "run")[0] == 0
    with nodes.open(newline="") as file:
        rows = list(csv.reader(file))
    fewer = tmp_path / "fewer.csv"
    with fewer.open("w", newline="") as file:
        csv.writer(file).writerows(row[:5] + row[6:] for row in rows)
    code, _, said = run(
        *("predict", tmp_path / "run" / "model", "--edges", edges, "--nodes", fewer),
        *("--out", tmp_path / "new.csv"),
    )
    assert code == 2
    assert "w4" in said
    assert not (tmp_path / "new.csv").exists()


def test_a_table_of_ones_own_is_never_overwritten(
    run: Run, tables: tuple[Path, Path], tmp_path: Path
) -> None:
    edges, nodes = tables
    command = ("fit", "--edges", edges, "--nodes", nodes, "--label", "topic", "--system", "lp")
    assert run(*command, "--out", tmp_path / "run")[0] == 0
    again = ("predict", tmp_path / "run", "--edges", edges, "--nodes", nodes, "--overwrite")
    for mine in (nodes, tmp_path / "run"):
        code, _, said = run(*again, "--out", mine)
        assert code == 2
        assert "not a table of predictions" in said
    assert run(*again, "--out", tmp_path / "new.csv")[0] == 0
    assert run(*again, "--out", tmp_path / "new.csv")[0] == 0


def test_a_place_that_cannot_be_written_is_noticed_first(
    run: Run, tables: tuple[Path, Path]
) -> None:
    edges, nodes = tables
    command = ("fit", "--edges", edges, "--nodes", nodes, "--label", "topic")
    code, _, said = run(*command, "--out", nodes / "run")
    assert code == 2
    assert "cannot be written" in said


def test_suggest_wants_the_folder_of_a_fit(run: Run, tmp_path: Path) -> None:
    code, _, said = run("suggest", tmp_path)
    assert code == 2
    assert "is" in said
    assert "the folder of a fit" in said


def test_a_graph_without_features_is_said_to_have_none(
    run: Run, tables: tuple[Path, Path], tmp_path: Path
) -> None:
    edges, nodes = tables
    bare = tmp_path / "bare.csv"
    with bare.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "topic"))
        writer.writerows((row["id"], row["topic"]) for row in rows_of(nodes))
    arguments = ("--edges", edges, "--nodes", bare, "--label", "topic", "--system", "lp")
    code, printed, _ = run("fit", *arguments, "--out", tmp_path / "run")
    assert code == 0
    assert "edges, no features, 60 labels" in printed
