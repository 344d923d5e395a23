"""The results store: a row for every run that was ever finished, in one SQLite file.

Rows are only added. The file has one row per run at most, whoever writes: what identifies a run is
its primary key. A row is whole or absent, as SQLite commits it with a journal: after a kill or a
power cut the next reader rolls back what was half written. Each row carries a digest of itself, so
that one edited by hand is found.
"""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from kryograph.errors import KryographError, UsageError
from kryograph.files import read_text

VERSION = 1
"""Of the file's layout, in SQLite's `user_version`."""

SQLITE_TIMEOUT_SECONDS = 60.0
"""For how many seconds one process waits while another writes a row, which takes milliseconds."""

_LAYOUT = """
create table runs (key text primary key, row text not null, digest text not null) strict;
create trigger no_update before update on runs begin select raise(abort, 'append only'); end;
create trigger no_delete before delete on runs begin select raise(abort, 'append only'); end;
"""


@dataclass(frozen=True)
class Row:
    """One run: what was run, what came of it, and by what it was done.

    The fields down to `seed` identify a run. Scores are fractions; a run that failed has `error`
    instead.
    """

    system: str
    dataset: str
    split: str
    protocol: str
    stop: str
    operator: str
    precision: str
    settings: Mapping[str, Any]
    seed: int
    settings_source: str
    split_digest: str = ""
    epochs: int | None = None
    seconds: float | None = None
    validation_accuracy: float | None = None
    test_accuracy: float | None = None
    peak_bytes: int | None = None
    error: str | None = None
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    revision: str = ""
    finished: str = ""

    def __post_init__(self) -> None:
        for name in ("validation_accuracy", "test_accuracy"):
            score = getattr(self, name)
            if score is not None and not 0 <= score <= 1:  # written so that NaN fails, too
                raise UsageError(
                    f"The {name.replace('_', ' ')} of {self.system}, {self.dataset} {self.split}, "
                    f"seed {self.seed}, is {score}, not a number from 0 to 1."
                )
        if (self.test_accuracy is None) == (self.error is None):
            raise UsageError(
                f"The run of {self.system}, {self.dataset} {self.split}, seed {self.seed}, has "
                "neither a test accuracy nor an error, or both."
            )

    @property
    def setting_digest(self) -> str:
        """Equal for equal settings and operators."""
        return setting_digest(self.settings, self.operator)

    @property
    def key(self) -> str:
        """Equal for equal runs, whatever came of them."""
        return key_of({name: getattr(self, name) for name in _IDENTITY})

    @property
    def place(self) -> str:
        """Where it stands in a store: under its key, but a failure leaves that to a later try."""
        return f"{self.key} failed {self.finished}" if self.error else self.key

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {name: _plain(getattr(self, name)) for name in _FIELDS}

    @classmethod
    def of(cls, values: Mapping[str, Any], where: str) -> Self:
        """From JSON; `where` it stands is said if it is wrong."""
        if set(values) != set(_FIELDS):
            odd = ", ".join(sorted(set(values) ^ set(_FIELDS)))
            raise UsageError(f"{where} has other fields than a run ({odd}): it was edited.")
        try:
            return cls(**values)
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from None
        except TypeError:
            raise UsageError(f"{where} holds a value of the wrong kind: it was edited.") from None


_FIELDS = tuple(field.name for field in dataclasses.fields(Row))
_IDENTITY = _FIELDS[: _FIELDS.index("seed") + 1]


def key_of(identity: Mapping[str, Any]) -> str:
    """The key of a run, done or not, by the fields of a row that identify it."""
    return _digest({name: _plain(identity[name]) for name in _IDENTITY})


def setting_digest(settings: Mapping[str, Any], operator: str) -> str:
    """Equal for equal settings and operators."""
    return _digest({"settings": dict(settings), "operator": operator})[:12]


class Store:
    """The runs in a file, which is made when the first is added.

    >>> import tempfile
    >>> row = Row("gcn", "cora", "1%", "validation", "paper", "sym", "float32", {}, seed=0,
    ...           settings_source="default", test_accuracy=0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(Path(folder) / "runs.sqlite")
    ...     store.add(row), store.add(row), len(store.rows())
    (True, False, 1)
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def add(self, row: Row) -> bool:
        """Put a row on the disk, unless the run has one. Whether it was put."""
        return self.add_all([row]) == 1

    def add_all(self, rows: Iterable[Row]) -> int:
        """Put rows on the disk, all or none; how many were new."""
        lines = [(row.place, _json(row.as_dict()), _digest(row.as_dict())) for row in rows]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as database, database:
            before = database.total_changes
            database.executemany("insert or ignore into runs values (?, ?, ?)", lines)
            return database.total_changes - before

    def has(self, key: str) -> bool:
        """Whether a run is there that did not fail."""
        if not self.path.exists():
            return False
        with self._open() as database:
            found = database.execute("select 1 from runs where key = ?", (key,)).fetchone()
        return found is not None

    def rows(self) -> list[Row]:
        """All runs in the order in which they were finished."""
        if not self.path.exists():
            return []
        with self._open() as database:
            lines = database.execute("select key, row, digest from runs order by rowid").fetchall()
        return [self._row(number, *line) for number, line in enumerate(lines, start=1)]

    def _row(self, number: int, key: str, text: str, digest: str) -> Row:
        where = f"{self.path}, row {number},"
        try:
            values = json.loads(text)
        except ValueError:
            values = None
        if not isinstance(values, dict) or _digest(values) != digest:
            raise UsageError(f"{where} was edited: it is not what was written there.")
        row = Row.of(values, where.rstrip(","))
        if row.place != key:
            raise UsageError(f"{where} was edited: it stands under the key of another run.")
        return row

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=SQLITE_TIMEOUT_SECONDS)) as database:
                self._prepare(database)
                yield database
        except sqlite3.Error as error:
            raise _explained(self.path, error) from None

    def _prepare(self, database: sqlite3.Connection) -> None:
        version = database.execute("pragma user_version").fetchone()[0]
        if version == VERSION:
            return
        if version > VERSION:
            raise UsageError(
                f"{self.path} was written by a newer kryograph (layout {version}, this one knows "
                f"{VERSION}): update kryograph, or name another file with --store."
            )
        if database.execute("select 1 from sqlite_schema").fetchone():
            raise UsageError(f"{self.path} is a database, but not one of results: name another.")
        with database:
            database.execute("begin immediate")
            # Another process may have been first.
            if database.execute("pragma user_version").fetchone()[0] == 0:
                for statement in _LAYOUT.strip().splitlines():
                    database.execute(statement)
                database.execute(f"pragma user_version = {VERSION}")


def _explained(path: Path, error: sqlite3.Error) -> KryographError:
    said = str(error)
    if "full" in said or "disk I/O" in said:
        return KryographError(
            f"The disk is full or cannot be written: {path} has all runs but the last. "
            "Make room and start again; nothing is repeated."
        )
    if "unable to open" in said or "readonly" in said:
        return UsageError(f"{path} cannot be opened for writing: name another file with --store.")
    if "locked" in said:
        return KryographError(
            f"{path} is locked by another program for over {SQLITE_TIMEOUT_SECONDS:.0f} s."
        )
    return UsageError(
        f"{path} is damaged or not a results store ({said}): take a copy of it, or import the "
        "exported rows into a new one (`kryograph results --import FILE.csv --store NEW`)."
    )


def write_csv(rows: Iterable[Row]) -> str:
    """Rows as CSV text, as they are committed and compared: sorted, with the digest of each."""
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow([*_FIELDS, "digest"])
    for row in sorted(rows, key=lambda r: (r.system, r.dataset, r.split, r.protocol, r.key)):
        values = row.as_dict()
        writer.writerow([*(_cell(values[name]) for name in _FIELDS), _digest(values)[:16]])
    return made.getvalue()


def read_csv(path: Path) -> list[Row]:
    """The rows of such a file; one that was edited is an error that names its line."""
    reader = csv.DictReader(io.StringIO(read_text(path)))
    if reader.fieldnames != [*_FIELDS, "digest"]:
        raise UsageError(f"{path}, line 1: these are not the headings of exported runs.")
    rows = []
    for cells in reader:
        where = f"{path}, line {reader.line_num}"
        try:
            values = {name: _value(name, cells[name]) for name in _FIELDS}
        except (TypeError, ValueError):
            raise UsageError(f"{where} is cut off or edited.") from None
        if _digest(values)[:16] != cells["digest"]:
            raise UsageError(f"{where} was edited: it is not what was exported.")
        rows.append(Row.of(values, where))
    return rows


_NUMBERS = ("epochs", "seconds", "validation_accuracy", "test_accuracy", "peak_bytes", "seed")
_RECORDS = ("settings", "versions")


def _cell(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else _json(value)


def _value(name: str, cell: str) -> Any:
    if name in _RECORDS:
        return json.loads(cell)
    if name in _NUMBERS:
        return json.loads(cell) if cell else None
    return (cell or None) if name == "error" else cell


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)


def _digest(values: object) -> str:
    return hashlib.sha256(_json(values).encode()).hexdigest()
