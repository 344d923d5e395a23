from __future__ import annotations

import sqlite3
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import optuna
import pytest
from sqlalchemy.exc import IntegrityError, OperationalError, SQLAlchemyError

from kryograph.errors import KryographError, UsageError
from kryograph.tuning import database as storage
from kryograph.tuning.database import (
    connect,
    fail_killed_trials,
    ignore_experimental_warnings,
    open_database,
    sqlite_address,
    without_password,
)
from tests.tuning.toy_problems import exit_code, forked

pytestmark = pytest.mark.slow


def failure(address: str) -> KryographError:
    with pytest.raises(KryographError) as caught, open_database(address):
        pass
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")
    return caught.value


def test_a_database_is_made_where_there_is_none_with_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "new" / "tuning.sqlite"
    with open_database(sqlite_address(file)) as made:
        optuna.create_study(study_name="a", storage=made)
    with open_database(sqlite_address(file)) as again:
        assert [study.study_name for study in optuna.get_all_study_summaries(again)] == ["a"]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("tuning.sqlite", r"--storage takes the address of a database.*that is not known"),
        ("secret:word", r"--storage takes the address of a database.*that is not known"),
        ("postgres-ql://me:secret@host/db", r"--storage takes the address.*'postgres-ql' is not"),
        ("mssql+nonsense://me:secret@host/db", r"--storage takes the address.*'mssql\+nonsense' i"),
        ("mysql://me:secret@host/db", r"no driver for 'mysql' databases: install one"),
    ],
)
def test_an_address_that_is_no_database_is_refused(address: str, said: str) -> None:
    error = failure(address)
    assert isinstance(error, UsageError)
    assert "secret" not in str(error)
    with pytest.raises(UsageError, match=said):
        raise error


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:secret@127.0.0.1:1/db",
        "postgresql://127.0.0.1:1/db?user=me&password=secret",
    ],
)
def test_a_server_that_cannot_be_reached_is_named_without_the_password(address: str) -> None:
    pytest.importorskip("psycopg")
    error = failure(address)
    assert error.exit_code == 1
    assert "127.0.0.1:1/db cannot be used" in str(error)
    assert "refused" in str(error)
    assert "secret" not in str(error)


def test_a_password_in_what_the_server_says_is_hidden() -> None:
    error = storage._database_error("mysql://me:secret@host/db", ValueError("no secret, no entry."))
    assert "(no ***, no entry)" in str(error)


def test_a_damaged_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "tuning.sqlite"
    file.write_bytes(b"not a database" * 100)
    error = failure(sqlite_address(file))
    assert isinstance(error, UsageError)
    assert f"{file} is damaged or not a database" in str(error)
    assert file.read_bytes() == b"not a database" * 100


def test_a_file_of_another_version_of_optuna_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tuning.sqlite"
    with open_database(sqlite_address(file)):
        pass
    with sqlite3.connect(file) as database:
        database.execute("update alembic_version set version_num = 'v99.0.0.a'")
    database.close()
    error = failure(sqlite_address(file))
    assert isinstance(error, UsageError)
    assert "written by another version of Optuna" in str(error)


def test_an_error_that_is_not_the_databases_stays_what_it_is(tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError, match="mine"),
        open_database(sqlite_address(tmp_path / "a.sqlite")),
    ):
        raise RuntimeError("mine")


def test_a_table_that_is_lost_meanwhile_is_an_error_of_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "tuning.sqlite"

    def lose() -> None:
        with open_database(sqlite_address(file)) as made:
            with sqlite3.connect(file) as database:
                database.execute("drop table studies")
            database.close()
            optuna.create_study(study_name="a", storage=made)

    with pytest.raises(KryographError, match=r"cannot be used \(no such table"):
        lose()


@pytest.mark.parametrize(
    "error",
    [
        OperationalError("create", {}, Exception("relation studies already exists")),
        IntegrityError("insert", {}, Exception("UNIQUE constraint failed: alembic_version")),
    ],
)
def test_tables_that_another_process_makes_at_the_same_moment_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: SQLAlchemyError
) -> None:
    prepare, calls = optuna.storages.RDBStorage.__init__, []

    def second_to_come(*arguments: Any, **options: Any) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise error
        prepare(*arguments, **options)

    monkeypatch.setattr(optuna.storages.RDBStorage, "__init__", second_to_come)
    with open_database(sqlite_address(tmp_path / "a.sqlite")) as made:
        assert optuna.study.get_all_study_names(made) == []
    assert len(calls) == 2


def test_a_trial_that_never_got_settings_is_given_up_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = connect(sqlite_address(tmp_path / "a.sqlite"))
    study = optuna.create_study(storage=made)
    with pytest.warns(UserWarning, match="Heartbeat"):
        study.ask()
    fail_killed_trials(study)
    assert study.trials[0].state.name == "RUNNING"
    begun = study.trials[0].datetime_start
    assert begun is not None
    assert datetime.now() - begun < timedelta(minutes=5)
    monkeypatch.setattr(storage, "START_GRACE", timedelta(0))
    fail_killed_trials(study)
    assert study.trials[0].state.name == "FAIL"


def test_an_address_is_shown_without_its_password() -> None:
    assert without_password("postgresql://me:secret@host:5/db?password=secret") == (
        "postgresql://me:***@host:5/db"
    )
    assert without_password("sqlite:////here/a.sqlite") == "sqlite:////here/a.sqlite"


def test_no_two_processes_take_the_same_waiting_trial(tmp_path: Path) -> None:
    address = sqlite_address(tmp_path / "s.sqlite")
    with open_database(address) as storage:
        study = optuna.create_study(storage=storage, study_name="s")
        for k in range(30):
            study.enqueue_trial({"x": float(k)})

    def take() -> None:
        with open_database(address) as storage:
            study = optuna.load_study(storage=storage, study_name="s")
            with ignore_experimental_warnings():
                study.optimize(lambda trial: trial.suggest_float("x", 0, 100), n_trials=10)

    children = [forked(take) for _ in range(3)]
    assert [exit_code(child) for child in children] == [0, 0, 0]
    with open_database(address) as storage:
        trials = optuna.load_study(storage=storage, study_name="s").trials
    assert sorted(trial.params["x"] for trial in trials) == [float(k) for k in range(30)]
