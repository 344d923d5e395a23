"""Decisions: what the entries of a journal amount to: labels, skipped nodes and check answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Indices
from kryograph.session.journal import Entry
from kryograph.text import quoted


class Decisions:
    """Labels and skips that hold after some entries.

    Args:
        names: Names of all nodes.
        initial: Labels that were known before the session, N class numbers or `UNKNOWN`.
        classes: Names of the classes known before the session.
    """

    def __init__(self, names: Sequence[str], initial: Indices, classes: Sequence[str]) -> None:
        self.names = names
        self.numbers = {name: number for number, name in enumerate(names)}
        self.initial = np.array(initial, dtype=np.int64)
        self.classes = list(classes)
        self.active: list[Entry] = []
        """Entries "label" and "skip" that were not taken back, in their order."""
        self.labels = self.initial.copy()
        """N class numbers, `UNKNOWN` where there is no label."""

    def check(self, op: str, node: str, label: str) -> None:
        """Check an entry that is about to be written.

        Raises:
            UsageError: If there is no such node or class, the class exists, or nothing is left to
                take back.
        """
        if op in ("label", "skip") and node not in self.numbers:
            raise UsageError(f"There is no node {quoted(node)}.")
        if op == "label" and label not in self.classes:
            raise UsageError(f"There is no class {quoted(label)}: add it first.")
        if op == "class" and not label.strip():
            raise UsageError("A class needs a name.")
        if op == "class" and label in self.classes:
            raise UsageError(f"There is a class {quoted(label)} already.")
        if op == "undo" and not self.active:
            raise UsageError("There is nothing to undo.")

    def apply(self, entry: Entry) -> None:
        """Take an entry of the journal into account; it must have been checked."""
        if entry.op == "class":
            if entry.label not in self.classes:  # the tables may have it by now
                self.classes.append(entry.label)
        elif entry.op == "undo":
            undone = next((one for one in self.active if one.seq == entry.of), None)
            if undone is None:
                raise UsageError(f"It takes back line {entry.of}, which does not hold.")
            self.active.remove(undone)
            self._relabel(undone.node)
        else:
            self.active.append(entry)
            self._relabel(entry.node)

    def replay(self, entries: Sequence[Entry], place: str) -> None:
        """Apply the entries of a journal; `place` is its name in messages."""
        for entry in entries:
            try:
                if entry.op in ("label", "skip"):
                    self.check(entry.op, entry.node, entry.label)
                self.apply(entry)
            except UsageError as error:
                raise UsageError(f"{place}, line {entry.seq}: {error}") from None

    def _relabel(self, node: str) -> None:
        number = self.numbers[node]
        self.labels[number] = self.initial[number]
        for entry in reversed(self.active):
            if entry.op == "label" and entry.node == node:
                self.labels[number] = self.classes.index(entry.label)
                break

    @property
    def last(self) -> Entry | None:
        """The entry that an undo would take back; None if there is none."""
        return self.active[-1] if self.active else None

    @property
    def labelled(self) -> list[Entry]:
        """The entry of each node that has a label from this session: its last one."""
        return list({entry.node: entry for entry in self.active if entry.op == "label"}.values())

    @property
    def skipped(self) -> list[int]:
        """Numbers of the nodes that were skipped and have no label, the earliest skip first."""
        nodes = dict.fromkeys(entry.node for entry in self.active if entry.op == "skip")
        numbers = [self.numbers[node] for node in nodes]
        return [number for number in numbers if self.labels[number] == UNKNOWN]

    def outcomes(self, reason: str) -> list[bool]:
        """Whether the first prediction of each node displayed for a reason was right.

        It was made before the node had a label, and is compared with the label that holds: a slip
        that was corrected does not count against the model.

        Args:
            reason: "check" for random nodes, "suggested" for those that were suggested.
        """
        first: dict[str, str] = {}
        for entry in self.active:
            if entry.op == "label" and entry.reason == reason and entry.predicted:
                first.setdefault(entry.node, entry.predicted)
        return [
            predicted == self.classes[self.labels[self.numbers[node]]]
            for node, predicted in first.items()
        ]
