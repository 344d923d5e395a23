"""Faults: what is wrong with a person's tables, collected so that it is said once.

Reading goes on after a fault as far as that makes sense, and raises one error in the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kryograph.data.tables.plan import Plan
from kryograph.errors import UsageError
from kryograph.text import plural

MOST_FAULTS = 20
"""Number of faults that are listed; the others are counted."""


class TableFaults(UsageError):
    """Everything that is wrong with the tables of one run; `plan` has what was recognised."""

    def __init__(self, message: str, plan: Plan) -> None:
        super().__init__(message)
        self.plan = plan


class Faults:
    """Faults of the tables of one run, in the order in which they were met."""

    def __init__(self) -> None:
        self._groups: dict[str, list[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._groups)

    def add(self, group: str, fault: UsageError) -> None:
        """Add a fault; those of a group, such as a file, are listed together."""
        sentences = self._groups.setdefault(group, [])
        if str(fault) not in sentences:
            sentences.append(str(fault))

    @contextmanager
    def collected(self, group: str) -> Iterator[None]:
        """Add the `UsageError` that ends the block, if there is one, instead of raising it."""
        try:
            yield
        except UsageError as fault:
            self.add(group, fault)

    def raise_if_any(self, plan: Plan) -> None:
        """Raise one error that holds all faults: its sentence alone, or a list of them."""
        sentences = [sentence for group in self._groups.values() for sentence in group]
        if not sentences:
            return
        if len(sentences) == 1:
            raise TableFaults(sentences[0], plan)
        lines = [f"{plural(len(sentences), 'fault')}:"]
        lines += [f"- {sentence}" for sentence in sentences[:MOST_FAULTS]]
        if len(sentences) > MOST_FAULTS:
            lines.append(f"- … and {plural(len(sentences) - MOST_FAULTS, 'more fault')}.")
        raise TableFaults("\n".join(lines), plan)
