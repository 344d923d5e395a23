from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from tests.helpers.own_tables import ACCOUNTS, PEOPLE, TABLES, write_tables

TRUTH = tuple[Path, dict[str, tuple[str, ...]]]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> TRUTH:
    folder = tmp_path_factory.mktemp("tables")
    return folder, write_tables(folder, 7)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_all_files_are_written_and_depend_on_the_seed_only(tables: TRUTH, tmp_path: Path) -> None:
    folder, truth = tables
    assert sorted(path.name for path in folder.iterdir()) == sorted(TABLES)
    assert write_tables(tmp_path / "same", 7) == truth
    write_tables(tmp_path / "other", 8)
    for name in TABLES:
        content = (folder / name).read_bytes()
        assert (tmp_path / "same" / name).read_bytes() == content
        assert (tmp_path / "other" / name).read_bytes() != content


@pytest.mark.parametrize(
    ("edges", "nodes", "ends"),
    [
        ("tx.csv", "accounts.csv", ("from_account", "to_account")),
        ("cites.csv", "papers.csv", ("citing", "cited")),
        ("e4.csv", "n4.csv", ("source", "target")),
    ],
)
def test_most_edges_stay_inside_their_class(
    tables: TRUTH, edges: str, nodes: str, ends: tuple[str, str]
) -> None:
    folder, truth = tables
    ids = [next(iter(row.values())) for row in rows(folder / nodes)]
    class_of = dict(zip(ids, truth[nodes], strict=True))
    same = [class_of[row[ends[0]]] == class_of[row[ends[1]]] for row in rows(folder / edges)]
    # 0.8, and what the edges to nodes drawn from all classes add by chance.
    shares = np.array(list(Counter(truth[nodes]).values())) / len(ids)
    assert np.mean(same) == pytest.approx(0.8 + 0.2 * (shares**2).sum(), abs=0.03)


def test_a_fifth_of_the_labels_is_known(tables: TRUTH) -> None:
    folder, truth = tables
    accounts = rows(folder / "accounts.csv")
    labels = Counter(row["is_fraud"] for row in accounts)
    assert labels == {"no": 114, "yes": 6, "": 480}
    assert Counter(truth["accounts.csv"]) == {"no": 570, "yes": 30}
    assert sum(row["age"] == "" for row in accounts) == ACCOUNTS // 10
    for row, name in zip(accounts, truth["accounts.csv"], strict=True):
        assert row["is_fraud"] in ("", name)
    assert Counter(row["field"] for row in rows(folder / "papers.csv"))[""] == 240
    assert len(rows(folder / "labels4.csv")) == 60


def test_transactions_repeat_pairs(tables: TRUTH) -> None:
    transactions = rows(tables[0] / "tx.csv")
    pairs = Counter((row["from_account"], row["to_account"]) for row in transactions)
    assert len(transactions) == 3150
    assert len(pairs) < 3050


def test_papers_have_abstracts_and_users_have_embeddings(tables: TRUTH) -> None:
    folder, truth = tables
    paper = rows(folder / "papers.csv")[0]
    assert paper["paper_id"] == "arXiv:1900"
    assert len(paper["abstract"].split()) == 60
    users = parquet.read_table(folder / "users.parquet")
    assert str(users.schema.field("embedding").type).startswith("fixed_size_list")
    assert len(users["embedding"][0].as_py()) == 32
    assert str(users.schema.field("joined").type) == "date32[day]"
    assert users["community"].null_count == 240
    assert len(truth["users.parquet"]) == users.num_rows


def test_small_tables_have_one_oddity_each(tables: TRUTH) -> None:
    folder, truth = tables
    assert sum(float(row["weight"]) == 0 for row in rows(folder / "e5.csv")) == 24
    assert {len(row["id"]) for row in rows(folder / "n6.csv")} == {5}
    odd = rows(folder / "n7.csv")
    assert sum(row["age"] == "NA" for row in odd) == 30
    assert sum(row["income"] == "NaN" for row in odd) >= 29
    assert [row["id"] for row in odd if row["income"] == "1,200.5"] == ["41"]
    assert {"N/A", ""} < {row["city"] for row in odd}
    assert Counter(row["community"] for row in rows(folder / "n7b.csv"))["unknown"] == 240
    strangers = [row for row in rows(folder / "e8.csv") if int(row["target"]) >= PEOPLE]
    assert len(strangers) == 10
    lines = (folder / "e9.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["source"] for line in lines] == [
        int(row["source"]) for row in rows(folder / "e4.csv")
    ]
    archive = np.load(folder / "g9.npz")
    assert archive["edge_index"].shape == (2, 1200)
    assert archive["train_mask"].sum() == 60
    numbers = dict(zip(truth["n4.csv"], archive["y"] + 1, strict=True))
    for row, name in zip(rows(folder / "n10.csv"), truth["n4.csv"], strict=True):
        assert row["community"] in ("", str(numbers[name]))
