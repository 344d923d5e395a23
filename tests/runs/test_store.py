from __future__ import annotations

import json
import resource
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kryograph.errors import KryographError, UsageError
from kryograph.runs.store import Row, Store, exported_rows, read_csv, stored_rows, write_csv

ROW = Row(
    system="gcn",
    dataset="cora",
    split="1%",
    protocol="validation",
    stop="paper",
    operator="sym",
    precision="float32",
    settings={"hidden": 16, "lr": 0.01, "optimizer": "adam", "bias": True},
    seed=0,
    settings_source="default",
    split_digest="0123",
    epochs=120,
    seconds=1.25,
    validation_accuracy=0.79,
    test_accuracy=0.8,
    peak_bytes=10_000,
    versions={"torch": "2.13.0"},
    revision="abc",
    finished="2026-11-16T07:00:00+00:00",
)
FAILED = replace(
    ROW, test_accuracy=None, validation_accuracy=None, error='Diverged: too\nhigh, "x"'
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "new" / "runs.sqlite")


def test_a_store_that_does_not_exist_is_empty_and_is_not_made_by_looking(store: Store) -> None:
    assert store.rows() == []
    assert not store.has(ROW.key)
    assert not store.path.parent.exists()


def test_what_is_added_is_there(store: Store) -> None:
    assert store.add(ROW)
    assert store.has(ROW.key)
    assert store.rows() == [ROW]


def test_there_are_never_two_rows_of_a_run(store: Store) -> None:
    assert store.add(ROW)
    assert not store.add(replace(ROW, test_accuracy=0.9, revision="later", finished="later"))
    assert store.rows() == [ROW]


@pytest.mark.parametrize(
    "change",
    [
        {"system": "gat"},
        {"dataset": "pubmed"},
        {"split": "public"},
        {"protocol": "no-validation"},
        {"stop": "li"},
        {"operator": "rw"},
        {"precision": "bfloat16"},
        {"settings": {"hidden": 17}},
        {"seed": 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_run_has_another_key(change: dict[str, Any]) -> None:
    assert replace(ROW, **change).key != ROW.key


def test_where_settings_come_from_does_not_make_another_run() -> None:
    assert replace(ROW, settings_source="tuned").key == ROW.key


def test_the_digest_of_a_setting_knows_the_operator_and_not_the_seed() -> None:
    assert replace(ROW, seed=5).setting_digest == ROW.setting_digest
    assert replace(ROW, operator="rw").setting_digest != ROW.setting_digest


def test_a_failure_leaves_room_for_a_later_success(store: Store) -> None:
    assert store.add(FAILED)
    assert not store.has(FAILED.key)
    assert store.add(ROW)
    assert store.rows() == [FAILED, ROW]


def test_rows_cannot_be_changed_or_deleted(store: Store) -> None:
    store.add(ROW)
    database = sqlite3.connect(store.path)
    for statement in ("update runs set row = '{}'", "delete from runs"):
        with pytest.raises(sqlite3.IntegrityError, match="append only"):
            database.execute(statement)
    database.close()


def test_all_rows_or_none(store: Store) -> None:
    bad = replace(ROW, seed=1, settings={"x": float("nan")})
    with pytest.raises(ValueError, match="JSON"):
        store.add_all([ROW, bad])
    assert store.rows() == []


@pytest.mark.parametrize("score", [float("nan"), -0.1, 1.01])
def test_a_score_that_is_none_is_refused(score: float) -> None:
    with pytest.raises(UsageError, match=r"gcn, cora 1%, seed 0: the test accuracy must be from 0"):
        replace(ROW, test_accuracy=score)


def test_a_row_has_a_score_or_an_error() -> None:
    with pytest.raises(UsageError, match="either a test accuracy or an error"):
        replace(ROW, test_accuracy=None)
    with pytest.raises(UsageError, match="either a test accuracy or an error"):
        replace(ROW, error="no")


# A file that is not what was written.


def edit(store: Store, *statements: str) -> None:
    database = sqlite3.connect(store.path, isolation_level=None)
    for statement in ("drop trigger no_update", *statements):
        database.execute(statement)
    database.close()


def test_an_edited_row_is_found(store: Store) -> None:
    store.add(ROW)
    edit(store, "update runs set row = replace(row, '0.8,', '0.9,')")
    with pytest.raises(UsageError, match=r"runs.sqlite, row 1: the digest does not fit"):
        store.rows()


def test_a_row_under_the_key_of_another_is_found(store: Store) -> None:
    store.add(ROW)
    edit(store, "update runs set key = 'abc'")
    with pytest.raises(UsageError, match=r"row 1: the key is that of another run"):
        store.rows()


def test_a_store_of_a_newer_version_is_not_touched(store: Store) -> None:
    store.add(ROW)
    edit(store, "pragma user_version = 3")
    before = store.path.read_bytes()
    for use in (store.rows, lambda: store.add(replace(ROW, seed=1))):
        with pytest.raises(UsageError, match=r"newer kryograph \(layout 3, this one knows 2\)"):
            use()
    assert store.path.read_bytes() == before


def test_another_database_is_not_taken_for_a_store(store: Store) -> None:
    store.path.parent.mkdir()
    other = sqlite3.connect(store.path)
    other.execute("create table mine (x)")
    other.close()
    with pytest.raises(UsageError, match="a database, but not a results store"):
        store.add(ROW)


@pytest.mark.parametrize("keep", [100, 4096, 5000, 9000])
def test_a_file_that_is_cut_off_is_a_sentence(store: Store, keep: int) -> None:
    store.add_all(replace(ROW, seed=seed) for seed in range(40))
    whole = store.path.read_bytes()
    assert len(whole) > 9000
    store.path.write_bytes(whole[:keep])
    with pytest.raises(UsageError, match=r"runs.sqlite is damaged or not a results store"):
        store.rows()


def test_any_other_file_is_a_sentence(store: Store) -> None:
    store.path.parent.mkdir()
    store.path.write_text("system,dataset\n" * 100)
    with pytest.raises(UsageError, match="damaged or not a results store"):
        store.add(ROW)


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be opened"):
        Store(tmp_path).add(ROW)


def test_a_full_disk_keeps_what_was_there(store: Store) -> None:
    """The limit on a file's size is as real as a full disk, and does not need one."""
    store.add(ROW)
    size = store.path.stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        with pytest.raises(KryographError, match="disk is full or cannot be written") as raised:
            store.add_all(replace(ROW, seed=seed) for seed in range(1, 100))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert raised.value.exit_code == 1
    assert store.rows() == [ROW]
    assert store.add(replace(ROW, seed=1))


ADD_MANY = """
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.runs.test_store import ROW
from kryograph.runs.store import Store
for seed in range(int(sys.argv[3]), int(sys.argv[3]) + 60):
    Store(Path(sys.argv[1])).add(replace(ROW, seed=seed))
"""


@pytest.mark.slow
def test_several_processes_write_at_once(store: Store) -> None:
    root = str(Path(__file__).parents[2])
    writers = [
        subprocess.Popen([sys.executable, "-c", ADD_MANY, str(store.path), root, str(first)])
        for first in (0, 30, 60)
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert sorted(row.seed for row in store.rows()) == list(range(120))


class Slow(sqlite3.Connection):
    """A connection before whose second statement somebody else creates the store."""

    path: ClassVar[Path]
    statements = 0

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        self.statements += 1
        if self.statements == 2:
            Store(self.path).add(ROW)
        return super().execute(sql, *parameters)


def test_two_processes_create_a_store_at_the_same_moment(store: Store) -> None:
    store.path.parent.mkdir()
    Slow.path = store.path
    with closing(sqlite3.connect(store.path, factory=Slow)) as database:
        store._prepare(database)
        assert database.execute("select count(*) from runs").fetchone() == (1,)
    assert store.rows() == [ROW]


# Other metrics


SCORED = replace(ROW, seed=1, metrics={"macro-f1": 0.75})


def test_a_row_has_scores_by_metrics() -> None:
    assert (SCORED.score(), SCORED.score("macro-f1"), ROW.score("macro-f1")) == (0.8, 0.75, None)
    with pytest.raises(
        UsageError, match=r"gcn, cora 1%, seed 1: the metric 'macro-f1' must be a number; it is nan"
    ):
        replace(SCORED, metrics={"macro-f1": float("nan")})


def test_a_row_without_metrics_is_stored_as_before(store: Store) -> None:
    assert "metrics" not in ROW.as_dict()
    store.add(ROW)
    with closing(sqlite3.connect(store.path)) as database:
        assert database.execute("pragma user_version").fetchone() == (1,)


def test_metrics_survive_store_and_export(store: Store, tmp_path: Path) -> None:
    store.add(ROW)
    store.add(SCORED)
    assert store.rows() == [ROW, SCORED]
    with closing(sqlite3.connect(store.path)) as database:
        assert database.execute("pragma user_version").fetchone() == (2,)
    path = tmp_path / "runs.csv"
    path.write_text(write_csv([ROW, SCORED]))
    assert sorted(read_csv(path), key=lambda row: row.seed) == [ROW, SCORED]


# Exported rows.


def test_rows_survive_export_and_import(tmp_path: Path) -> None:
    rows = [replace(ROW, seed=1), ROW, FAILED]
    path = tmp_path / "runs.csv"
    path.write_text(write_csv(rows))
    assert sorted(read_csv(path), key=lambda r: r.storage_key) == sorted(
        rows, key=lambda r: r.storage_key
    )


def test_the_export_does_not_depend_on_the_order_of_the_runs() -> None:
    rows = [replace(ROW, seed=seed) for seed in range(9)]
    assert write_csv(rows) == write_csv(reversed(rows))


def test_an_edited_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    text = write_csv([ROW, replace(ROW, system="z")])
    path.write_text(text.replace(",0.8,", ",0.9,"))
    with pytest.raises(UsageError, match=r"runs.csv, line 2: the digest does not fit"):
        read_csv(path)
    path.write_text(text.replace("z,cora", "z,cora,cora"))
    with pytest.raises(UsageError, match=r"runs.csv, line 3: the line is cut off or edited"):
        read_csv(path)


@given(cut=st.integers(1, 600))
def test_a_file_that_ends_too_early_is_a_sentence(
    cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("cut") / "runs.csv"
    text = write_csv([ROW])
    path.write_text(text[: max(len(text) - cut, 0)])
    ends_with_a_line = cut == 1 or cut >= len(text) - text.index("\n") - 1
    if ends_with_a_line and cut < len(text) - text.index("\n") + 1:
        assert read_csv(path) in ([], [ROW])
    else:
        with pytest.raises(UsageError, match=r"runs.csv, line"):
            read_csv(path)


def test_headings_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(UsageError, match=r"x.csv, line 1: the headings are not those"):
        read_csv(path)
    with pytest.raises(UsageError, match=r"There is no file .*y.csv"):
        read_csv(tmp_path / "y.csv")


def test_a_row_is_json(store: Store) -> None:
    assert Row.from_dict(json.loads(json.dumps(ROW.as_dict())), "here") == ROW
    with pytest.raises(UsageError, match=r"here: unexpected or missing fields \(more\)"):
        Row.from_dict({**ROW.as_dict(), "more": 1}, "here")
    with pytest.raises(UsageError, match=r"here: a value has the wrong type"):
        Row.from_dict({**ROW.as_dict(), "test_accuracy": "high"}, "here")


def test_without_a_store_the_exported_rows_of_its_folder_are_read(tmp_path: Path) -> None:
    second = replace(ROW, seed=1)
    (tmp_path / "a.csv").write_text(write_csv([ROW]), "utf-8")
    (tmp_path / "b.csv").write_text(write_csv([second]), "utf-8")
    (tmp_path / "other.csv").write_text("name,value\nx,1\n", "utf-8")
    assert exported_rows(tmp_path) == stored_rows(tmp_path / "runs.sqlite") == [ROW, second]
    Store(tmp_path / "runs.sqlite").add(second)
    assert stored_rows(tmp_path / "runs.sqlite") == [second]


def test_an_edited_exported_row_is_an_error(tmp_path: Path) -> None:
    text = write_csv([ROW])
    assert ",0.8," in text
    (tmp_path / "a.csv").write_text(text.replace(",0.8,", ",0.9,"), "utf-8")
    with pytest.raises(UsageError, match=r"a.csv, line 2: the digest does not fit"):
        stored_rows(tmp_path / "runs.sqlite")
