"""The results store: one row for every finished or failed run, in a SQLite file or in CSV files.

Rows are only added, and a finished run has one row: its identity is the primary key. SQLite commits
a row as a whole, so a killed process leaves no half-written row. Each row has a digest of its
fields, by which an edited row is recognised.
"""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from kryograph.errors import KryographError, UsageError
from kryograph.files import read_text

LAYOUT = 1
"""Number of the file's layout, in SQLite's `user_version`."""

METRICS_LAYOUT = 2
"""Layout of a store with rows that have `metrics`, which older versions of kryograph cannot read.
It has the same table."""

SQLITE_TIMEOUT_SECONDS = 60.0
"""Time to wait while another process writes, which takes milliseconds."""

_TABLE = """
create table runs (key text primary key, row text not null, digest text not null) strict;
create trigger no_update before update on runs begin select raise(abort, 'append only'); end;
create trigger no_delete before delete on runs begin select raise(abort, 'append only'); end;
"""


@dataclass(frozen=True)
class Row:
    """One finished or failed run as it is stored.

    The fields down to `seed` identify the run. Scores are fractions.
    """

    system: str
    dataset: str
    split: str
    protocol: str
    stop: str
    operator: str
    precision: str
    settings: Mapping[str, Any]
    """Settings that identify the run: all except those at their neutral value."""
    seed: int
    settings_source: str
    """Where the settings come from, such as "default"."""
    split_digest: str = ""
    epochs: int | None = None
    seconds: float | None = None
    """Time of training."""
    validation_accuracy: float | None = None
    """None if the protocol hides validation labels."""
    test_accuracy: float | None = None
    """None if the run failed."""
    peak_bytes: int | None = None
    """Peak memory of the run; None if it was not measured."""
    error: str | None = None
    """Type and message of the error; None if the run did not fail."""
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Versions of Python and of packages; empty if they were not recorded."""
    revision: str = ""
    """Commit of kryograph, with "+" if files were changed since; "" if it is not known."""
    finished: str = ""
    """Time at which the run ended, in ISO 8601."""
    metrics: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Test scores by other metrics than accuracy. They are stored only if there are any, so that
    rows without them keep their digest."""

    def __post_init__(self) -> None:
        run = f"{self.system}, {self.dataset} {self.split}, seed {self.seed}"
        for name in ("validation_accuracy", "test_accuracy"):
            score = getattr(self, name)
            if score is not None and not 0 <= score <= 1:  # not in range, or NaN
                words = name.replace("_", " ")
                raise UsageError(f"Run of {run}: the {words} must be from 0 to 1; it is {score}.")
        for name, score in self.metrics.items():
            if not math.isfinite(score):
                raise UsageError(
                    f"Run of {run}: the metric {name!r} must be a number; it is {score}."
                )
        if (self.test_accuracy is None) == (self.error is None):
            raise UsageError(f"Run of {run}: it must have either a test accuracy or an error.")

    @property
    def setting_digest(self) -> str:
        """Digest that is equal for equal settings and operators, whatever the scenario."""
        return setting_digest(self.settings, self.operator)

    @property
    def key(self) -> str:
        """Digest of the identity: equal for equal runs, whatever their outcome."""
        return key_of({name: getattr(self, name) for name in _IDENTITY})

    @property
    def storage_key(self) -> str:
        """Primary key in a store: `key`, except that a failure leaves it to a later attempt."""
        return f"{self.key} failed {self.finished}" if self.error else self.key

    def score(self, metric: str = "accuracy") -> float | None:
        """Test score by a metric of `stats.METRICS`; None if the run failed or lacks the metric."""
        return self.test_accuracy if metric == "accuracy" else self.metrics.get(metric)

    def as_dict(self) -> dict[str, Any]:
        """Convert to values that JSON can hold; `metrics` only if there are any."""
        names = _FIELDS if self.metrics else _LAYOUT_1_FIELDS
        return {name: _plain(getattr(self, name)) for name in names}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], location: str) -> Self:
        """Convert from values of JSON; errors name the `location` of the row."""
        if odd := set(values).symmetric_difference(_LAYOUT_1_FIELDS) - {"metrics"}:
            raise UsageError(
                f"{location}: unexpected or missing fields ({', '.join(sorted(odd))}). "
                "The row was edited, or written by another version of kryograph."
            )
        try:
            return cls(**values)
        except UsageError as error:
            raise UsageError(f"{location}: {error}") from None
        except (TypeError, AttributeError):
            raise UsageError(
                f"{location}: a value has the wrong type. The row was edited."
            ) from None


_FIELDS = tuple(field.name for field in dataclasses.fields(Row))
_LAYOUT_1_FIELDS = _FIELDS[:-1]
_IDENTITY = _FIELDS[: _FIELDS.index("seed") + 1]


def key_of(identity: Mapping[str, Any]) -> str:
    """Key of a run, finished or not, by the fields of a row that identify it."""
    return _digest({name: _plain(identity[name]) for name in _IDENTITY})


def setting_digest(settings: Mapping[str, Any], operator: str) -> str:
    """Digest that is equal for equal settings and operators."""
    return _digest({"settings": dict(settings), "operator": operator})[:12]


class Store:
    """Rows in a SQLite file, which is created when the first row is added.

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
        """Write a row, unless the run has one; return whether it was written."""
        return self.add_all([row]) == 1

    def add_all(self, rows: Iterable[Row]) -> int:
        """Write the rows of runs that have none, all or none of them; return their number."""
        rows = list(rows)
        lines = [(row.storage_key, _json(row.as_dict()), _digest(row.as_dict())) for row in rows]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as database, database:
            before = database.total_changes
            database.executemany("insert or ignore into runs values (?, ?, ?)", lines)
            if any(row.metrics for row in rows):
                database.execute(f"pragma user_version = {METRICS_LAYOUT}")
            return database.total_changes - before

    def has(self, key: str) -> bool:
        """Whether the run with this key is stored and did not fail."""
        if not self.path.exists():
            return False
        with self._open() as database:
            line = database.execute("select 1 from runs where key = ?", (key,)).fetchone()
        return line is not None

    def rows(self) -> list[Row]:
        """All rows in the order in which they were added."""
        if not self.path.exists():
            return []
        with self._open() as database:
            lines = database.execute("select key, row, digest from runs order by rowid").fetchall()
        return [self._row(number, *line) for number, line in enumerate(lines, start=1)]

    def _row(self, number: int, key: str, text: str, digest: str) -> Row:
        location = f"{self.path}, row {number}"
        try:
            values = json.loads(text)
        except ValueError:
            values = None
        if not isinstance(values, dict) or _digest(values) != digest:
            raise UsageError(f"{location}: the digest does not fit. The row was edited.")
        row = Row.from_dict(values, location)
        if row.storage_key != key:
            raise UsageError(f"{location}: the key is that of another run. The row was edited.")
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
        """Check the layout of the file; create the table if the file is new."""
        layout = _layout(database)
        if layout == 0:
            # The lock comes first: another process may be creating the same store.
            with database:
                database.execute("begin immediate")
                layout = _layout(database)
                if layout == 0:
                    self._create(database)
                    return
        if layout > METRICS_LAYOUT:
            raise UsageError(
                f"{self.path} was written by a newer kryograph (layout {layout}, this one knows "
                f"{METRICS_LAYOUT}): update kryograph, or name another file with --store."
            )

    def _create(self, database: sqlite3.Connection) -> None:
        if database.execute("select 1 from sqlite_schema").fetchone():
            raise UsageError(
                f"{self.path} is a database, but not a results store: name another with --store."
            )
        for statement in _TABLE.strip().splitlines():
            database.execute(statement)
        database.execute(f"pragma user_version = {LAYOUT}")


def _layout(database: sqlite3.Connection) -> int:
    """Number of the layout; 0 if the file is new, or another database."""
    return int(database.execute("pragma user_version").fetchone()[0])


def _explained(path: Path, error: sqlite3.Error) -> KryographError:
    message = str(error)
    if "full" in message or "disk I/O" in message:
        return KryographError(
            f"The disk is full or cannot be written: {path} has all runs but the last. "
            "Make room and start again; no run is repeated."
        )
    if "unable to open" in message or "readonly" in message:
        return UsageError(f"{path} cannot be opened for writing: name another file with --store.")
    if "locked" in message:
        return KryographError(
            f"{path} has been locked by another program for {SQLITE_TIMEOUT_SECONDS:.0f} s."
        )
    return UsageError(
        f"{path} is damaged or not a results store ({message}): restore a copy, or import exported "
        "rows into a new store (`kryograph results --import FILE.csv --store NEW`)."
    )


def write_csv(rows: Iterable[Row]) -> str:
    """Write rows as CSV with the digest of each row; the order of `rows` does not matter."""
    rows = sorted(rows, key=lambda r: (r.system, r.dataset, r.split, r.protocol, r.storage_key))
    names = _FIELDS if any(row.metrics for row in rows) else _LAYOUT_1_FIELDS
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*names, "digest"])
    for row in rows:
        values = row.as_dict()
        writer.writerow([*(_cell(values.get(name)) for name in names), _digest(values)[:16]])
    return text.getvalue()


def read_csv(path: Path) -> list[Row]:
    """Read rows that `write_csv` wrote; an edited row is an error that names its line."""
    reader = csv.DictReader(io.StringIO(read_text(path)))
    if not _has_rows(reader.fieldnames):
        raise UsageError(f"{path}, line 1: the headings are not those of exported runs.")
    rows = []
    for cells in reader:
        location = f"{path}, line {reader.line_num}"
        digest = cells.pop("digest")
        try:
            values = {name: _value(name, cell) for name, cell in cells.items()}
        except (TypeError, ValueError):
            raise UsageError(f"{location}: the line is cut off or edited.") from None
        if not values.get("metrics"):
            values.pop("metrics", None)
        if _digest(values)[:16] != digest:
            raise UsageError(f"{location}: the digest does not fit. The line was edited.")
        rows.append(Row.from_dict(values, location))
    return rows


def exported_rows(folder: Path) -> list[Row]:
    """Rows of all CSV files in a folder that `write_csv` wrote; other files are ignored."""
    rows = []
    for path in sorted(folder.glob("*.csv")):
        if _has_rows(read_text(path).partition("\n")[0].split(",")):
            rows += read_csv(path)
    return rows


def stored_rows(store: Path) -> list[Row]:
    """Rows of a store, or the exported rows in its folder if the store does not exist.

    A clone of the project has exported rows in `results/`, and no store.
    """
    return Store(store).rows() if store.exists() else exported_rows(store.parent)


def _has_rows(headings: Iterable[str] | None) -> bool:
    return tuple(headings or ()) in ((*_LAYOUT_1_FIELDS, "digest"), (*_FIELDS, "digest"))


_TEXTS = {field.name for field in dataclasses.fields(Row) if field.type == "str"}


def _cell(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else _json(value)


def _value(name: str, cell: str) -> Any:
    if name in _TEXTS:
        return cell
    return None if cell == "" else cell if name == "error" else json.loads(cell)


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)


def _digest(values: object) -> str:
    return hashlib.sha256(_json(values).encode()).hexdigest()
