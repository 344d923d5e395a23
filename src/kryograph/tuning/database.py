"""Databases for Optuna studies: a SQLite file, or a server that several machines share.

Errors of a database become sentences without the password that its address may contain. A running
trial writes a heartbeat to the database. If its process is killed, the heartbeat stops, and the
next process that uses the study marks the trial as failed.
"""

from __future__ import annotations

import sqlite3
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import optuna
import sqlalchemy
from optuna.exceptions import StorageInternalError
from optuna.trial import TrialState
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, NoSuchModuleError, SQLAlchemyError

from kryograph.errors import KryographError, UsageError

HEARTBEAT_SECONDS = 5
"""Time between two heartbeats of a running trial."""

HEARTBEAT_GRACE_SECONDS = 30
"""Time without a heartbeat after which a trial is marked as failed."""

START_GRACE = timedelta(minutes=10)
"""Time after which a trial is marked as failed that has neither settings nor a heartbeat."""

PREPARE_ATTEMPTS = 5
"""Number of attempts to create tables that another process may be creating too."""

DATABASE_TIMEOUT_SECONDS = 60
"""Time for which a process waits while another one writes to a SQLite file."""


def sqlite_address(path: Path) -> str:
    """The address of a SQLite file as SQLAlchemy writes it."""
    return f"sqlite:///{path.absolute()}"


@contextmanager
def open_database(address: str) -> Iterator[optuna.storages.RDBStorage]:
    """Open a database, create the tables of Optuna if needed, and close it after the block.

    Errors of the database become sentences, inside the block too.
    """
    with explain_errors(address):
        storage = connect(address)
        try:
            yield storage
        finally:
            storage.remove_session()
            storage.engine.dispose()


def connect(address: str) -> optuna.storages.RDBStorage:
    """Open a database without closing it, for a worker process; errors are not explained."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    url = make_url(address)
    if url.drivername == "postgresql":  # the default driver depends on the version of SQLAlchemy
        url = url.set(drivername="postgresql+psycopg")
    options = {}
    if url.get_backend_name() == "sqlite":
        if url.database:
            Path(url.database).parent.mkdir(parents=True, exist_ok=True)
        options = {"connect_args": {"timeout": DATABASE_TIMEOUT_SECONDS}}
    for attempt in range(1, PREPARE_ATTEMPTS + 1):
        try:
            with ignore_experimental_warnings():
                storage = optuna.storages.RDBStorage(
                    url.render_as_string(hide_password=False),
                    engine_kwargs=options,
                    heartbeat_interval=HEARTBEAT_SECONDS,
                    grace_period=HEARTBEAT_GRACE_SECONDS,
                )
            if options:
                _begin_with_write_lock(storage.engine)
            return storage
        except SQLAlchemyError as error:
            # Another process may create the same tables, or their first rows, at this moment.
            concurrent = isinstance(error, IntegrityError) or "already exists" in str(error)
            if not concurrent or attempt == PREPARE_ATTEMPTS:
                raise
            time.sleep(1)
    raise AssertionError


def _begin_with_write_lock(engine: sqlalchemy.Engine) -> None:
    """Make every transaction on a SQLite file take the write lock when it begins.

    Optuna locks the row of a waiting trial before it takes the trial. SQLite has no row locks, so
    that two processes could both read that a trial is free, and both run it.
    """

    def on_connect(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # keeps Python from beginning transactions itself

    def on_begin(connection: sqlalchemy.Connection) -> None:
        connection.exec_driver_sql("begin immediate")

    sqlalchemy.event.listen(engine, "connect", on_connect)
    sqlalchemy.event.listen(engine, "begin", on_begin)
    engine.dispose()


@contextmanager
def ignore_experimental_warnings() -> Iterator[None]:
    """Ignore Optuna's warnings that heartbeats and Gaussian processes are experimental."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield


def fail_killed_trials(study: optuna.Study) -> None:
    """Mark running trials as failed whose process no longer exists."""
    with ignore_experimental_warnings():
        optuna.storages.fail_stale_trials(study)
    for trial in study.get_trials(deepcopy=False, states=[TrialState.RUNNING]):
        start = trial.datetime_start
        if not trial.params and start is not None and datetime.now() - start > START_GRACE:
            study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)


@contextmanager
def explain_errors(address: str) -> Iterator[None]:
    """Turn errors of a database into sentences that do not contain its password."""
    try:
        yield
    except (ArgumentError, NoSuchModuleError):
        raise UsageError(
            f"--storage takes the address of a database, such as sqlite:///tuning.sqlite or "
            f"postgresql://user:password@host/name; {_scheme(address)} is not known."
        ) from None
    except ImportError:
        raise UsageError(
            f"There is no driver for {_scheme(address)} databases: install one, such as "
            "`pip install 'kryograph[postgres]'` for PostgreSQL or `pip install pymysql` for "
            "MySQL (mysql+pymysql://…)."
        ) from None
    except (SQLAlchemyError, StorageInternalError) as error:
        raise _database_error(address, error) from None
    except RuntimeError as error:
        # Optuna reports a layout of another version in this way; other errors are not its own.
        if "optuna storage upgrade" not in str(error) and "version" not in str(error):
            raise
        raise UsageError(
            f"{without_password(address)} was written by another version of Optuna: name another "
            "database with --storage, or see `optuna storage upgrade`."
        ) from None


def _database_error(address: str, error: BaseException) -> KryographError:
    """Build the error for what a database reported, without the password of its address."""
    root: BaseException = error
    while (inner := getattr(root, "orig", None) or root.__cause__) is not None:
        root = inner
    reason = (" ".join(str(root).split()) or type(root).__name__)[:300].rstrip(".")
    for password in _passwords(address):
        reason = reason.replace(password, "***")
    name = without_password(address)
    if isinstance(root, sqlite3.DatabaseError) and not isinstance(root, sqlite3.OperationalError):
        return UsageError(
            f"{name} is damaged or not a database ({reason}): move it away, or name another "
            "database with --storage."
        )
    if isinstance(root, sqlite3.OperationalError) and "full" in reason:
        return KryographError(
            f"The disk is full: make room and repeat the command; {name} is undamaged."
        )
    return KryographError(
        f"The database {name} cannot be used ({reason}): check --storage, and that the server runs."
    )


def without_password(address: str) -> str:
    """An address for messages: without its password and its query, which may contain one too.

    >>> without_password("postgresql://me:secret@host/db?password=secret")
    'postgresql://me:***@host/db'
    """
    return make_url(address).set(query={}).render_as_string(hide_password=True)


def _passwords(address: str) -> list[str]:
    url = make_url(address)
    candidates = [url.password, *url.normalized_query.get("password", ())]
    return [str(password) for password in candidates if password]


def _scheme(address: str) -> str:
    """The part before "://": the only part of an invalid address that is safe to show."""
    scheme, separator, _ = address.partition("://")
    return repr(scheme) if separator else "that"
