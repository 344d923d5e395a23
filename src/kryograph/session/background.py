"""Background: a process of low priority that places the nodes on the map and fits the full model.

The server stays quick, because nothing of this runs in its process. At most one fit runs, and the
newest labels replace those that wait. The process ends with the server, also if that is killed:
its end of the pipe is closed then.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from kryograph.basis import Basis
from kryograph.errors import KryographError
from kryograph.graph import Indices
from kryograph.labelling.label import label_nodes
from kryograph.labelling.run_folder import write
from kryograph.report.fit_page import page_of
from kryograph.report.layout import Positions, positions
from kryograph.session.subject import Subject
from kryograph.systems import System
from kryograph.systems.base import Probabilities

CLOSING_SECONDS = 2.0

ENDED = "The process of the full model has ended; start the command again."
"""Error of a fit whose process ran out of memory or was killed."""


@dataclass(frozen=True, eq=False)
class FitRequest:
    """Labels to fit.

    Args:
        labels: N class numbers, `UNKNOWN` where there is no label.
        classes: Names of the classes.
        version: Number that the result has.
        folder: Folder that the run is written to; None if it is not.
    """

    labels: Indices
    classes: tuple[str, ...]
    version: int
    folder: Path | None = None


@dataclass(frozen=True, eq=False)
class FullFit:
    """Result of a fit of the full model.

    Args:
        version: Number of its request.
        labels: Number of labels that it knows.
        probabilities: Calibrated class probabilities, N × C; None if the fit failed.
        accuracy: Held-out accuracy and the ends of its interval; None if the fit failed.
        error: Reason of a failure, "" if there was none.
        folder: Folder that the run was written to; None if it was not.
    """

    version: int
    labels: int
    probabilities: Probabilities | None = None
    accuracy: tuple[float, float, float] | None = None
    error: str = ""
    folder: Path | None = None


class Background:
    """The process and the thread that waits for its results.

    Args:
        subject: The graph; its sheet is not sent.
        system: System of the full model; None for the pool of `kryograph fit`.
        on_map: Called with the positions of the nodes, N × 2.
        on_fit: Called with the result of each fit.
    """

    def __init__(
        self,
        subject: Subject,
        system: System | None,
        on_map: Callable[[Positions], None],
        on_fit: Callable[[FullFit], None],
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        slim = replace(subject, sheet=None)
        self._process = context.Process(target=_main, args=(other, slim, system), daemon=True)
        self._on_map, self._on_fit = on_map, on_fit
        self._lock = threading.Lock()
        self._closing = self._ended = False
        self._running: FitRequest | None = None
        self._waiting: FitRequest | None = None
        self._process.start()
        other.close()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether a fit is running."""
        return self._running is not None

    def fit(self, request: FitRequest) -> None:
        """Fit labels as soon as the process is free; newer requests replace those that wait."""
        with self._lock:
            if self._ended:
                return
            if self._running is None:
                self._send(request)
                return
            if self._waiting is not None and request.folder is None:
                request = replace(request, folder=self._waiting.folder)
            self._waiting = request

    def _send(self, request: FitRequest) -> None:
        self._running = request
        with suppress(OSError):  # the process was killed: its results stay those of before
            self._pipe.send(request)

    def _listen(self) -> None:
        while True:
            try:
                result = self._pipe.recv()
            except (EOFError, OSError):
                with self._lock:
                    self._ended, self._running = True, None
                if not self._closing:
                    self._on_fit(FullFit(0, 0, error=ENDED))
                return
            if not isinstance(result, FullFit):
                self._on_map(result)
                continue
            with self._lock:
                self._running, waiting = None, self._waiting
                self._waiting = None
                if waiting is not None:
                    self._send(waiting)
            self._on_fit(result)

    def close(self) -> None:
        """End the process, whatever it does."""
        self._closing = True
        self._process.terminate()
        self._process.join(CLOSING_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._thread.join(CLOSING_SECONDS)
        self._pipe.close()


def _main(pipe: Connection, subject: Subject, system: System | None) -> None:
    """Place the nodes, then fit every request until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends this
    with suppress(OSError):
        os.nice(19)
    torch.set_num_threads(1)
    with suppress(EOFError, OSError):  # the server is gone
        pipe.send(place_nodes(subject))
        while True:
            pipe.send(fit_request(subject, system, pipe.recv()))


def place_nodes(subject: Subject) -> npt.NDArray[np.float64]:
    """Positions of the nodes in the plane, N × 2: similar nodes are near each other."""
    rows: Any = Basis(subject.features_graph).rows("sum")
    return positions(np.asarray(rows))


def fit_request(subject: Subject, system: System | None, request: FitRequest) -> FullFit:
    """Fit the full model; a failure is part of the result."""
    known = int((request.labels >= 0).sum())
    try:
        labelled = label_nodes(
            subject.graph,
            request.labels,
            request.classes,
            recipe=subject.recipe,
            systems=None if system is None else [system],
            budget=0.0 if system is None else math.inf,
        )
        if request.folder is not None:
            write(request.folder, labelled, page_of(labelled))
    except KryographError as error:
        return FullFit(request.version, known, error=str(error))
    return FullFit(
        request.version,
        known,
        labelled.probabilities,
        labelled.accuracy,
        folder=request.folder,
    )
