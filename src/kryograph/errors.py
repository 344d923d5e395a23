"""Errors that a person reads: one sentence each, and the exit code of the command line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class KryographError(Exception):
    """Something failed that is not the input's fault: no network, a full disk, a diverging run."""

    exit_code = 1


class UsageError(KryographError):
    """Something in the input is wrong: an unknown name, a value out of range, a damaged file."""

    exit_code = 2


def unknown(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """An error for a name that does not exist, with the near misses.

    >>> unknown("data set", "coar", ["cora", "citeseer"]).args[0]
    "Unknown data set 'coar': did you mean 'cora'? There are: cora, citeseer."
    """
    names = list(known)
    lower = {known_name.lower(): known_name for known_name in names}
    near = difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.5)
    nearest = [lower[match] for match in near]
    hint = f": did you mean {' or '.join(repr(n) for n in nearest)}?" if nearest else "."
    return UsageError(f"Unknown {kind} {name!r}{hint} There are: {', '.join(names)}.")
