"""LabellingSession: one person labels one graph; journal, predictions and questions together.

All methods may be called from several threads. An answer is on the disk before anything changes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from kryograph.errors import UsageError
from kryograph.files import read_text, replaced
from kryograph.graph import UNKNOWN, Indices
from kryograph.report.layout import Positions
from kryograph.session.asking import CHECK, PICKED, Question, next_question, question_again
from kryograph.session.background import Background, FitRequest, FullFit
from kryograph.session.decisions import Decisions
from kryograph.session.fast_model import FastModel, FastPrediction
from kryograph.session.journal import Entry, Journal, sync_folder
from kryograph.session.labels_table import LABELS_FILE, labels_text
from kryograph.session.subject import Subject
from kryograph.systems import System

SESSION, SESSION_FORMAT = "session.json", 1
FIT_FOLDER = "fit"


@dataclass(frozen=True)
class PageAnswer:
    """A decision of a person, as the page sends it.

    Args:
        id: Identifier drawn by the page.
        op: "label", "skip", "undo" or "class".
        node: Name of the node; "" for an undo or a class.
        label: Name of the class; "" for a skip or an undo.
        seconds: Seconds that the node was displayed.
    """

    id: str
    op: str
    node: str = ""
    label: str = ""
    seconds: float = 0.0


class LabellingSession:
    """A session and its folder.

    Args:
        folder: Folder of the session; a session in it is continued.
        subject: The graph.
        by: Name of the person, which every entry has.
        checks: Share of check nodes, from 0 to 1.
        seed: Seed of the draws of check nodes.
    """

    def __init__(
        self, folder: Path, subject: Subject, *, by: str = "", checks: float = 0.2, seed: int = 0
    ) -> None:
        self.folder, self.subject, self.by, self.checks = folder, subject, by, checks
        self.journal = Journal.open(folder)
        try:
            classes, self.seed = _agree(folder / SESSION, subject, seed)
            initial = _renumbered(subject, classes)
            self.decisions = Decisions(subject.names, initial, classes)
            self.decisions.replay(self.journal.entries, str(self.journal.path))
            self.continued = len(self.decisions.labelled)
            # Labels of the session count from the start, so that a session that is continued
            # compares the heads by all of them.
            graph, count = subject.features_graph, len(self.decisions.classes)
            self.model = FastModel(graph, self.decisions.labels, count)
        except BaseException:
            self.journal.close()
            raise
        self.lock = threading.RLock()
        self.version = 0
        self.full: FullFit | None = None
        self.positions: Positions | None = None
        self.background: Background | None = None
        self.automatic = False
        self.closing = False
        """Whether the server is about to stop: nothing waits any longer."""
        self.prediction = self._predict()
        self.question = self._next()

    def start_background(self, system: System | None, *, automatic: bool) -> None:
        """Start the process that draws the map and fits the full model.

        Args:
            system: System of the full model; None for the pool of `kryograph fit`.
            automatic: Whether it is fitted again whenever there are new labels.
        """
        self.automatic = automatic
        self.background = Background(self.subject, system, self._take_map, self._take_fit)
        with self.lock:
            self._refit()

    def answer(self, answer: PageAnswer) -> None:
        """Write a decision to the journal, then predict again and choose the next node.

        A decision with an id that the journal has is not written again.

        Raises:
            UsageError: If the decision makes no sense now.
            NotSavedError: If it could not be written.
        """
        with self.lock:
            before = self.journal.by_id.get(answer.id)
            if before is not None:
                same = (before.op, before.label) == (answer.op, answer.label)
                if not same or (answer.node and before.node != answer.node):
                    raise UsageError("This id belongs to another decision in the journal.")
                return
            self.decisions.check(answer.op, answer.node, answer.label)
            entry = self._entry(answer)
            self.journal.append(entry)
            self._learn_from(entry)
            self.decisions.apply(entry)
            if answer.op in ("label", "undo"):
                self.prediction = self._predict()
            elif answer.op == "class":
                self.prediction = self._predict()
                return  # the same node stays on the page
            self.question = self._next()
            self._refit()

    def pick(self, node: str) -> None:
        """Display a node that the person chose.

        Raises:
            UsageError: If there is no such node.
        """
        with self.lock:
            self.decisions.check("skip", node, "")
            number = self.decisions.numbers[node]
            if number != self.question.node:
                self.question = Question(number, PICKED)

    def resume(self) -> None:
        """Display the next node instead of one that the person chose."""
        with self.lock:
            self.question = self._next()

    def request_fit(self) -> None:
        """Fit the full model with all labels and write the folder of the run.

        Raises:
            UsageError: If fewer than two classes have a label.
        """
        with self.lock:
            if self.background is None:
                raise UsageError("This session has no process for fits.")
            if self.prediction.pool is None:
                raise UsageError("Label nodes of at least two classes first.")
            self.background.fit(self._fit_request(self.folder / FIT_FOLDER))

    @property
    def behind(self) -> int | None:
        """Number of labels that the full model does not know yet; None if there is no model."""
        if self.full is None or self.full.probabilities is None:
            return None
        return abs(int((self.decisions.labels != UNKNOWN).sum()) - self.full.labels)

    def labels_text(self) -> str:
        """Return all labels as a CSV table."""
        with self.lock:
            return labels_text(self.decisions)

    def write_labels(self) -> Path:
        """Write `labels.csv` as a whole, and return its path."""
        path = self.folder / LABELS_FILE
        with replaced(path) as new:
            new.write_text(self.labels_text(), encoding="utf-8")
        return path

    def close(self) -> None:
        """Stop the process, write `labels.csv` and release the folder."""
        self.closing = True
        if self.background is not None:
            self.background.close()
        try:
            self.write_labels()
        finally:
            self.journal.close()

    def _entry(self, answer: PageAnswer) -> Entry:
        """Build the entry of a decision, with the prediction before it."""
        entry = Entry(
            seq=len(self.journal.entries) + 1,
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            id=answer.id,
            op=answer.op,
            node=answer.node,
            label=answer.label,
            by=self.by,
            seconds=round(answer.seconds, 3),
        )
        values = vars(entry)
        if answer.op == "undo":
            last = self.decisions.last
            assert last is not None
            return Entry(**(values | {"node": last.node, "of": last.seq}))
        if answer.op == "class":
            return entry
        number = self.decisions.numbers[answer.node]
        reason = self.question.reason if number == self.question.node else PICKED
        if self.prediction.pool is None:
            return Entry(**(values | {"reason": reason}))
        row = self.prediction.probabilities[number]
        best = int(row.argmax())
        predicted = {"predicted": self.decisions.classes[best], "p": round(float(row[best]), 6)}
        return Entry(**(values | predicted | {"reason": reason}))

    def _learn_from(self, entry: Entry) -> None:
        if entry.op != "label" or not entry.predicted:
            return
        node = self.decisions.numbers[entry.node]
        if self.decisions.labels[node] == UNKNOWN:
            label = self.decisions.classes.index(entry.label)
            is_random = entry.reason == CHECK
            self.model.observe(self.prediction, node, label, random=is_random)

    def _predict(self) -> FastPrediction:
        return self.model.predict(self.decisions.labels, len(self.decisions.classes))

    def _next(self) -> Question:
        """Choose the next node; the same one after the server was started again."""
        steps = [entry for entry in self.journal.entries if entry.op != "class"]
        if steps and steps[-1].op == "undo":
            taken = next(entry for entry in steps if entry.seq == steps[-1].of)
            return question_again(taken, self.decisions.numbers[taken.node])
        return next_question(
            self.model.basis,
            self.decisions,
            self.prediction,
            checks=self.checks,
            seed=self.seed,
            step=len(steps),
        )

    def _fit_request(self, folder: Path | None = None) -> FitRequest:
        version = len(self.journal.entries)
        classes = tuple(self.decisions.classes)
        return FitRequest(self.decisions.labels.copy(), classes, version, folder)

    def _refit(self) -> None:
        """Fit the full model again, if that is to be done by itself.

        It holds labels out, so that it needs two labels of a class.
        """
        labels = self.decisions.labels
        enough = np.bincount(labels[labels != UNKNOWN], minlength=1).max() > 1
        if self.automatic and self.background is not None and self.prediction.pool and enough:
            self.background.fit(self._fit_request())

    def _take_map(self, positions: Positions) -> None:
        with self.lock:
            self.positions = positions
            self.version += 1

    def _take_fit(self, fit: FullFit) -> None:
        with self.lock:
            self.full = fit
            self.version += 1


def _agree(path: Path, subject: Subject, seed: int) -> tuple[list[str], int]:
    """Write `session.json`, or check that the one there belongs to the graph.

    Returns:
        The classes before the session and its seed.
    """
    graph = {"graph": subject.graph.fingerprint, "names": _digest_of_names(subject)}
    if not path.exists():
        values = {"format": SESSION_FORMAT, **graph, "classes": list(subject.classes), "seed": seed}
        with replaced(path) as new:
            new.write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n", "utf-8")
        sync_folder(path.parent)
        return list(subject.classes), seed
    try:
        stored: Any = json.loads(read_text(path))
        if stored["format"] != SESSION_FORMAT:
            raise UsageError(f"{path} has format {stored['format']!r}, which is not known.")
        known = {name: stored[name] for name in graph}
        classes, seed = [str(name) for name in stored["classes"]], int(stored["seed"])
    except (ValueError, TypeError, KeyError):
        raise UsageError(f"{path} does not describe a session of kryograph.") from None
    if known != graph:
        raise UsageError(
            f"{path.parent} is the session of another graph: its nodes, edges or features are "
            "others. Choose another folder with --session."
        )
    return list(dict.fromkeys((*classes, *subject.classes))), seed


def _renumbered(subject: Subject, classes: Sequence[str]) -> Indices:
    """Labels of the subject as numbers of these classes, which a session may have in its order."""
    numbers = np.array([classes.index(name) for name in subject.classes], dtype=np.int64)
    known = subject.labels != UNKNOWN
    labels = np.full(subject.labels.size, UNKNOWN, dtype=np.int64)
    labels[known] = numbers[subject.labels[known]]
    return labels


def _digest_of_names(subject: Subject) -> str:
    return sha256("\n".join(subject.names).encode()).hexdigest()
