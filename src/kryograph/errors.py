"""Errors whose message is a sentence for people, with the exit code of the command line."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable


class KryographError(Exception):
    """A failure that the input did not cause: no network, a full disk, a diverging run."""

    exit_code = 1


class UsageError(KryographError):
    """A fault of the input: an unknown name, a value out of range, a damaged file."""

    exit_code = 2


def near_misses(name: str, known: Iterable[str]) -> list[str]:
    """At most three of the known names that resemble `name`, the most similar one first.

    Upper and lower case count as equal.

    >>> near_misses("Coar", ["cora", "citeseer"])
    ['cora']
    """
    by_lower_case = {candidate.lower(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.lower(), by_lower_case, n=3, cutoff=0.5)
    return [by_lower_case[match] for match in matches]


def unknown(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """Build the error for a name that does not exist; it suggests similar names and lists all.

    >>> unknown("data set", "coar", ["cora", "citeseer"]).args[0]
    "Unknown data set 'coar': did you mean 'cora'? There are: cora, citeseer."
    """
    names = list(known)
    near = " or ".join(repr(candidate) for candidate in near_misses(name, names))
    hint = f": did you mean {near}?" if near else "."
    return UsageError(f"Unknown {kind} {name!r}{hint} There are: {', '.join(names)}.")


def check_known(kind: str, name: str, known: Collection[str]) -> None:
    """Raise the error `unknown` for a name that does not exist."""
    if name not in known:
        raise unknown(kind, name, known)
