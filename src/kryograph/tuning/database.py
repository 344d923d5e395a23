"""Studies of Optuna in a database: a SQLite file, or a server that many machines share.

Whatever is wrong with a database is said in a sentence, without the password that its address may
hold. Running trials have a heartbeat there: one whose process was killed stops having it, and is
then marked as failed by whichever process goes on.
"""

from __future__ import annotations

import sqlite3
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from kryograph.errors import KryographError, UsageError

if TYPE_CHECKING:
    import optuna
    import sqlalchemy

HEARTBEAT = 5
"""Seconds between two signs of life of a running trial."""

GRACE = 30
"""After how many seconds without one a trial is given up."""

UNBORN = timedelta(minutes=10)
"""After what time a trial is given up that was begun but got neither settings nor a heartbeat."""

ATTEMPTS = 5
"""How often to try to prepare a database that others prepare, too."""

DATABASE_TIMEOUT_SECONDS = 60
"""For how many seconds one process waits while another writes to a SQLite file."""


def sqlite_address(path: Path) -> str:
    """Of a file, in the form that databases are named in."""
    return f"sqlite:///{path.absolute()}"


@contextmanager
def opened(address: str) -> Iterator[optuna.storages.RDBStorage]:
    """The database of that address, prepared for studies, closed afterwards.

    Inside of the block, too, errors of the database become sentences.
    """
    with explained(address):
        storage = connect(address)
        try:
            yield storage
        finally:
            storage.remove_session()
            storage.engine.dispose()


def connect(address: str) -> optuna.storages.RDBStorage:
    """The same without an end, for a process that ends itself."""
    import optuna  # half a second, which other commands need not wait
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import IntegrityError, SQLAlchemyError

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    url = make_url(address)
    if url.drivername == "postgresql":  # which driver that means depends on SQLAlchemy's version
        url = url.set(drivername="postgresql+psycopg")
    options = {}
    if url.get_backend_name() == "sqlite":
        if url.database:
            Path(url.database).parent.mkdir(parents=True, exist_ok=True)
        options = {"connect_args": {"timeout": DATABASE_TIMEOUT_SECONDS}}
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with quiet():
                storage = optuna.storages.RDBStorage(
                    url.render_as_string(hide_password=False),
                    engine_kwargs=options,
                    heartbeat_interval=HEARTBEAT,
                    grace_period=GRACE,
                )
            if options:
                _one_at_a_time(storage.engine)
            return storage
        except SQLAlchemyError as error:
            # Another process makes the same tables, or their first rows, at the same moment.
            same = isinstance(error, IntegrityError) or "already exists" in str(error)
            if not same or attempt == ATTEMPTS:
                raise
            time.sleep(1)
    raise AssertionError


def _one_at_a_time(engine: sqlalchemy.Engine) -> None:
    """Let a transaction on a SQLite file begin with the right to write.

    Optuna locks the row of a waiting trial before it takes it. SQLite has no such lock: two
    processes would read that it is free, and both run it.
    """
    from sqlalchemy import event

    def connected(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # Python is not to begin transactions by itself

    def begun(connection: sqlalchemy.Connection) -> None:
        connection.exec_driver_sql("begin immediate")

    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", begun)
    engine.dispose()


@contextmanager
def quiet() -> Iterator[None]:
    """Without Optuna's remark that heartbeats are new."""
    import optuna

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield


def give_up_killed(study: optuna.Study) -> None:
    """Mark those running trials as failed whose processes are no more."""
    import optuna

    with quiet():
        optuna.storages.fail_stale_trials(study)
    for trial in study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING]):
        begun = trial.datetime_start
        if not trial.params and begun is not None and datetime.now() - begun > UNBORN:
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL, skip_if_finished=True)


@contextmanager
def explained(address: str) -> Iterator[None]:
    """Errors of a database as sentences."""
    import optuna
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

    try:
        yield
    except (ArgumentError, NoSuchModuleError):
        raise UsageError(
            f"--storage takes the address of a database, such as sqlite:///tuning.sqlite or "
            f"postgresql://user:password@host/name; {_kind(address)} is not known."
        ) from None
    except ImportError:
        raise UsageError(
            f"There is no driver for {_kind(address)} databases: install one, such as "
            "`pip install 'kryograph[postgres]'` for PostgreSQL or `pip install pymysql` for "
            "MySQL (mysql+pymysql://…)."
        ) from None
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        raise _said(address, error) from None
    except RuntimeError as error:
        # Optuna's own check of the layout; other errors are not the database's.
        if "optuna storage upgrade" not in str(error) and "version" not in str(error):
            raise
        raise UsageError(
            f"{without_password(address)} was made by another version of Optuna: name another "
            "database with "
            "--storage, or see `optuna storage upgrade`."
        ) from None


def _said(address: str, error: BaseException) -> KryographError:
    """What a database said, as a sentence."""
    root: BaseException = error
    while (inner := getattr(root, "orig", None) or root.__cause__) is not None:
        root = inner
    reason = (" ".join(str(root).split()) or type(root).__name__)[:300].rstrip(".")
    for secret in _passwords(address):
        reason = reason.replace(secret, "***")
    if isinstance(root, sqlite3.DatabaseError) and not isinstance(root, sqlite3.OperationalError):
        return UsageError(
            f"{without_password(address)} is damaged or not a database ({reason}): move it "
            "away, or name "
            "another with --storage."
        )
    if isinstance(root, sqlite3.OperationalError) and "full" in reason:
        return KryographError(
            f"The disk is full: make room, and go on; {without_password(address)} is whole."
        )
    return KryographError(
        f"The database {without_password(address)} cannot be used ({reason}): check --storage, "
        "and that the "
        "server runs."
    )


def without_password(address: str) -> str:
    """An address without its password, which may stand in its query, too.

    >>> without_password("postgresql://me:secret@host/db")
    'postgresql://me:***@host/db'
    """
    from sqlalchemy.engine import make_url

    return make_url(address).set(query={}).render_as_string(hide_password=True)


def _passwords(address: str) -> list[str]:
    from sqlalchemy.engine import make_url

    url = make_url(address)
    given = [url.password, *url.normalized_query.get("password", ())]
    return [str(each) for each in given if each]


def _kind(address: str) -> str:
    """What is before "://", which is all that can be shown of an address that is not understood."""
    kind, separator, _ = address.partition("://")
    return repr(kind) if separator else "that"
