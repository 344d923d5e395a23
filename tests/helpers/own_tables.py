"""Tables such as people have: transactions, papers, users, and small ones with one oddity each.

The nodes of `tx.csv`, `cites.csv` and `follows.parquet` stand in `accounts.csv`, `papers.csv` and
`users.parquet`. All other tables are about the same `PEOPLE` nodes 0, 1, 2, … in communities.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import parquet

ACCOUNTS, PAPERS, USERS, PEOPLE = 600, 300, 300, 300
HOMOPHILY = 0.8
"""Share of edges whose other end is drawn from the class of the first; the rest is drawn from all
nodes."""
KNOWN = 0.2
"""Share of the nodes of each class whose label is known."""
DIMENSIONS = 32
"""Length of the embeddings of the users."""

TABLES = (
    *("tx.csv", "accounts.csv", "cites.csv", "papers.csv", "follows.parquet", "users.parquet"),
    *("e4.csv", "n4.csv", "labels4.csv", "e5.csv", "n6.csv", "n7.csv", "n7b.csv", "e8.csv"),
    *("e9.jsonl", "g9.npz", "n10.csv"),
)
"""Names of all files that `write_tables` writes."""

FIELDS = ("biology", "maths", "physics")
COMMUNITIES = ("chess", "music", "sport")
CURRENCIES = ("EUR", "GBP", "USD")
COUNTRIES = ("DE", "FR", "NO", "SE")
CITIES = ("Bergen", "Oslo", "Tromsø")
RELATIONS = ("colleague", "family", "friend")

Numbers = npt.NDArray[np.int64]


def write_tables(folder: Path, seed: int) -> dict[str, tuple[str, ...]]:
    """Write the files of `TABLES` into a folder; the same seed writes the same bytes.

    Returns the true class of every node: of accounts (`accounts.csv`), papers (`papers.csv`), users
    (`users.parquet`) and of all other tables (`n4.csv`).
    """
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "accounts.csv": _transactions(folder, np.random.default_rng([seed, 1])),
        "papers.csv": _papers(folder, np.random.default_rng([seed, 2])),
        "users.parquet": _users(folder, np.random.default_rng([seed, 3])),
        "n4.csv": _people(folder, np.random.default_rng([seed, 4])),
    }


def _transactions(folder: Path, rng: np.random.Generator) -> tuple[str, ...]:
    """Write tx.csv and accounts.csv: a twentieth of the accounts are frauds."""
    fraud = np.zeros(ACCOUNTS, dtype=np.int64)
    fraud[rng.permutation(ACCOUNTS)[: ACCOUNTS // 20]] = 1
    names = [f"A{number:05d}" for number in range(ACCOUNTS)]
    ends = _edges(rng, fraud, 5)
    ends = np.concatenate([ends, ends[:, rng.integers(ends.shape[1], size=ends.shape[1] // 20)]], 1)
    amounts = rng.lognormal(3.5 + 1.0 * fraud[ends[0]], 1.0)
    start = datetime(2024, 1, 1)
    seconds = rng.integers(365 * 86400, size=ends.shape[1])
    _write_csv(
        folder / "tx.csv",
        ("tx_id", "from_account", "to_account", "timestamp", "amount", "currency"),
        (
            (
                f"T{at:07d}",
                names[source],
                names[target],
                (start + timedelta(seconds=int(seconds[at]))).isoformat(),
                f"{amounts[at]:.2f}",
                rng.choice(CURRENCIES),
            )
            for at, (source, target) in enumerate(ends.T.tolist())
        ),
    )
    classes = np.array(["no", "yes"])[fraud]
    ages = [str(age) for age in rng.integers(18, 80, ACCOUNTS)]
    for row in rng.permutation(ACCOUNTS)[: ACCOUNTS // 10]:
        ages[row] = ""
    days = rng.integers(2000, size=ACCOUNTS) // (1 + 3 * fraud)  # frauds were opened of late
    _write_csv(
        folder / "accounts.csv",
        ("account_id", "opened", "country", "age", "kyc_level", "is_fraud"),
        zip(
            names,
            (date(2024, 1, 1) - timedelta(days=int(day)) for day in days),
            rng.choice(COUNTRIES, ACCOUNTS),
            ages,
            rng.integers(1, 4, ACCOUNTS),
            _known(rng, classes),
            strict=True,
        ),
    )
    return tuple(classes.tolist())


def _papers(folder: Path, rng: np.random.Generator) -> tuple[str, ...]:
    """Write cites.csv and papers.csv: a third of the words belong to the field of a paper."""
    field = rng.permutation(np.arange(PAPERS) % len(FIELDS))
    names = [f"arXiv:{1900 + number}" for number in range(PAPERS)]
    ends = _edges(rng, field, 4)
    _write_csv(folder / "cites.csv", ("citing", "cited"), ((names[a], names[b]) for a, b in ends.T))

    def words(number: int, count: int) -> str:
        own = rng.random(count) < 1 / 3
        choice = rng.integers(40, size=count)
        prefixes = np.where(own, FIELDS[number][:4], "word")
        return " ".join(
            f"{prefix}{_letters(at)}" for prefix, at in zip(prefixes, choice, strict=True)
        )

    classes = np.array(FIELDS)[field]
    _write_csv(
        folder / "papers.csv",
        ("paper_id", "title", "abstract", "year", "url", "field"),
        zip(
            names,
            [words(number, 7).capitalize() for number in field],
            [words(number, 60).capitalize() + "." for number in field],
            rng.integers(1995, 2021, PAPERS),
            [f"https://example.org/abs/{name[6:]}" for name in names],
            _known(rng, classes),
            strict=True,
        ),
    )
    return tuple(classes.tolist())


def _users(folder: Path, rng: np.random.Generator) -> tuple[str, ...]:
    """Write follows.parquet and users.parquet: embeddings lie around the centre of a community."""
    community = rng.permutation(np.arange(USERS) % len(COMMUNITIES))
    names = np.array([f"u{number}" for number in range(USERS)])
    ends = _edges(rng, community, 5)
    parquet.write_table(
        pa.table({"src": names[ends[0]], "dst": names[ends[1]]}), folder / "follows.parquet"
    )
    centres = rng.normal(0, 0.5, (len(COMMUNITIES), DIMENSIONS))
    embedding = (centres[community] + rng.normal(size=(USERS, DIMENSIONS))).astype(np.float32)
    classes = np.array(COMMUNITIES)[community]
    joined = np.datetime64("2015-01-01") + rng.integers(3000, size=USERS)
    columns = {
        "user_id": names,
        "embedding": pa.FixedSizeListArray.from_arrays(embedding.ravel(), DIMENSIONS),
        "followers": rng.geometric(0.01, USERS),
        "joined": joined,
        "community": [label or None for label in _known(rng, classes)],
    }
    parquet.write_table(pa.table(columns), folder / "users.parquet")
    return tuple(classes.tolist())


def _people(folder: Path, rng: np.random.Generator) -> tuple[str, ...]:
    """Write the tables whose names have a number; their nodes and communities are the same."""
    community = rng.permutation(np.arange(PEOPLE) % len(COMMUNITIES))
    classes = np.array(COMMUNITIES)[community]
    labels = _known(rng, classes)
    ends = _edges(rng, community, 4)
    followers = rng.geometric(0.02, PEOPLE) + 20 * community
    numbers = range(PEOPLE)

    _write_csv(folder / "e4.csv", ("source", "target"), ends.T)
    _write_csv(
        folder / "n4.csv",
        ("id", "followers", "bio_len"),
        zip(numbers, followers, rng.integers(160, size=PEOPLE), strict=True),
    )
    _write_csv(
        folder / "labels4.csv",
        ("id", "community", "annotator", "when"),
        (
            (number, label, rng.choice(("ann", "bob")), f"2024-05-{1 + number % 28:02d}T09:30:00")
            for number, label in enumerate(labels)
            if label
        ),
    )
    weights = np.round(rng.random(ends.shape[1]) * 3 + 0.1, 2)
    weights[rng.permutation(weights.size)[: weights.size // 50]] = 0
    _write_csv(
        folder / "e5.csv",
        ("source", "target", "relation", "weight"),
        zip(*ends, rng.choice(RELATIONS, weights.size), weights, strict=True),
    )
    _write_csv(
        folder / "n6.csv",
        ("id", "followers", "community"),
        zip((f"{number:05d}" for number in numbers), followers, labels, strict=True),
    )
    _odd_cells(folder, rng, labels)
    _write_csv(
        folder / "n7b.csv",
        ("id", "followers", "community"),
        zip(numbers, followers, (label or "unknown" for label in labels), strict=True),
    )
    strangers = [(int(rng.integers(PEOPLE)), PEOPLE + 100 + at) for at in range(10)]
    places = set(rng.permutation(ends.shape[1])[:10].tolist())
    with_strangers = [
        strangers.pop(0) if at in places else tuple(pair) for at, pair in enumerate(ends.T.tolist())
    ]
    _write_csv(folder / "e8.csv", ("source", "target"), with_strangers)
    lines = (json.dumps({"source": a, "target": b}) + "\n" for a, b in ends.T.tolist())
    (folder / "e9.jsonl").write_text("".join(lines), "utf-8")
    np.savez(
        folder / "g9.npz",
        edge_index=ends,
        x=rng.normal(size=(PEOPLE, 8)) + community[:, None],
        y=community,
        train_mask=np.array([label != "" for label in labels]),
    )
    _write_csv(
        folder / "n10.csv",
        ("id", "followers", "community"),
        (
            (number, followers[number], 1 + community[number] if labels[number] else "")
            for number in numbers
        ),
    )
    return tuple(classes.tolist())


def _odd_cells(folder: Path, rng: np.random.Generator, labels: Sequence[str]) -> None:
    """Write n7.csv: spellings of an empty cell, and one number with a thousands separator."""
    ages = [str(age) for age in rng.integers(18, 80, PEOPLE)]
    incomes = [f"{income:.1f}" for income in rng.lognormal(7, 0.5, PEOPLE)]
    cities = rng.choice(CITIES, PEOPLE).tolist()
    for cells, words in ((ages, ("NA",)), (incomes, ("NaN",)), (cities, ("N/A", ""))):
        for row in rng.permutation(PEOPLE)[: PEOPLE // 10]:
            cells[row] = words[row % len(words)]
    incomes[41] = "1,200.5"
    _write_csv(
        folder / "n7.csv",
        ("id", "age", "income", "city", "community"),
        zip(range(PEOPLE), ages, incomes, cities, labels, strict=True),
    )


def _edges(rng: np.random.Generator, classes: Numbers, per_node: int) -> Numbers:
    """Draw `per_node` edges that start at each node, 2 × E in random order, none to itself."""
    sources = np.repeat(np.arange(classes.size), per_node)
    targets = sources.copy()
    inside = rng.random(sources.size) < HOMOPHILY
    while (again := np.flatnonzero(targets == sources)).size:
        for number in np.unique(classes):
            members = np.flatnonzero(classes == number)
            own = again[inside[again] & (classes[sources[again]] == number)]
            targets[own] = rng.choice(members, own.size)
        other = again[~inside[again]]
        targets[other] = rng.integers(classes.size, size=other.size)
    return np.stack([sources, targets])[:, rng.permutation(sources.size)]


def _known(rng: np.random.Generator, classes: npt.NDArray[np.str_]) -> list[str]:
    """Keep the labels of the share `KNOWN` of each class; the others are empty."""
    labels = [""] * classes.size
    for name in np.unique(classes):
        members = np.flatnonzero(classes == name)
        for row in rng.permutation(members)[: round(KNOWN * members.size)]:
            labels[row] = str(name)
    return labels


def _letters(number: int) -> str:
    """Two letters for a number below 676, so that a word holds no digit."""
    return chr(97 + number // 26) + chr(97 + number % 26)


def _write_csv(path: Path, header: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
