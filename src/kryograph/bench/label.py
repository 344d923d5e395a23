"""Labelling in the browser: time to the next node, and memory.

A real server answers over HTTP; an answer is on the disk before the next node comes, and the page's
map is coloured anew after it. Nodes have ten classes and 500 features, a tenth of which are not
zero, as in texts. The memory is the largest of the server's process, without that of the background
process, which only draws the map here.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

from kryograph.bench.benchmark import ColumnFormat, OnCase, benchmark
from kryograph.errors import KryographError
from kryograph.text import gigabytes

SIZES, QUICK_SIZES = (3_000, 20_000), (300,)
FEATURES, NODE_CLASSES = 500, 10
DEGREE, WITHIN, OWN_WORDS = 6, 0.6, 0.1
"""Mean degree, share of edges within a class, and share of words that are typical of a class."""

ANSWERS = 20
"""Number of answers that are timed, after one for each class."""


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms"


@benchmark(
    {
        "sizes": (
            ColumnFormat("nodes", "nodes", "{:,}".format),
            ColumnFormat("start", "start_seconds", "{:.1f} s".format),
            ColumnFormat("next node", "answer_seconds", _milliseconds),
            ColumnFormat("slowest", "slowest_seconds", _milliseconds),
            ColumnFormat("map", "map_seconds", _milliseconds),
            ColumnFormat("memory", "memory_bytes", gigabytes),
        )
    }
)
def measure_label(*, quick: bool, on_case: OnCase) -> dict[str, Any]:
    """Median seconds of an answer for each size of graph, and memory of the server."""
    rows = []
    for n in QUICK_SIZES if quick else SIZES:
        on_case(f"{n:,} nodes, {FEATURES} features, {NODE_CLASSES} classes")
        with tempfile.TemporaryDirectory() as folder:
            rows.append({"nodes": n, **time_answers(n, Path(folder))})
    return {"answers": ANSWERS, "sizes": rows}


def write_graph(n: int, path: Path) -> list[int]:
    """Write a graph whose edges and features depend on the classes; return the classes."""
    rng = np.random.default_rng(0)
    truth = np.arange(n) % NODE_CLASSES
    ends = rng.integers(n, size=(2, DEGREE * n // 2))
    inside = rng.random(ends.shape[1]) < WITHIN
    # Nodes of a class are those with its remainder.
    ends[1, inside] += (ends[0, inside] - ends[1, inside]) % NODE_CLASSES - NODE_CLASSES
    ends = ends[:, (ends[1] >= 0) & (ends[0] != ends[1])]
    # Words: a tenth of the cells are not zero, those of the words of a class somewhat more often.
    own = rng.random((NODE_CLASSES, FEATURES)) < OWN_WORDS
    words = rng.random((n, FEATURES), dtype=np.float32) < np.where(own[truth], 0.15, 0.1)
    edges = np.concatenate([ends, ends[::-1]], axis=1)
    np.savez(path, edge_index=edges, x=words.astype(np.float32))
    return truth.tolist()


def time_answers(n: int, folder: Path) -> dict[str, Any]:
    """Start the command on a graph of n nodes, answer truthfully, and time the answers."""
    truth = write_graph(n, folder / "graph.npz")
    names = [f"class {c}" for c in range(NODE_CLASSES)]
    command = [sys.executable, "-m", "kryograph", "label", "--edges", str(folder / "graph.npz")]
    command += ["--classes", ",".join(names), "--session", str(folder / "session")]
    start = time.perf_counter()
    with subprocess.Popen(
        [*command, "--no-browser", "--system", "fast"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            origin, _, token = process.stdout.readline().strip().partition("/#")
            if not token:
                raise KryographError("The server of the benchmark could not be started.")
            started = time.perf_counter() - start
            page = _Page(origin, token)
            first = [truth.index(c) for c in range(NODE_CLASSES)]
            for node in first:
                page.answer(str(node), names[truth[node]])
            answers, maps = [], []
            for _ in range(ANSWERS):
                node = page.item["node"]
                begin = time.perf_counter()
                page.answer(node, names[truth[int(node)]])
                answers.append(time.perf_counter() - begin)
                begin = time.perf_counter()
                page.ask("/api/colours")
                maps.append(time.perf_counter() - begin)
            memory = peak_memory(process.pid)
        finally:
            process.terminate()
    return {
        "start_seconds": started,
        "answer_seconds": statistics.median(answers),
        "slowest_seconds": max(answers),
        "map_seconds": statistics.median(maps),
        "memory_bytes": memory,
    }


class _Page:
    """Requests as the page sends them."""

    def __init__(self, origin: str, token: str) -> None:
        self.origin, self.token, self._number = origin, token, 0
        self.item: dict[str, Any] = {}

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.origin + path, content, headers)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def answer(self, node: str, label: str) -> None:
        self._number += 1
        decision = {"id": str(self._number), "op": "label", "node": node, "label": label}
        self.item = self.ask("/api/labels", decision)["item"]


def peak_memory(process: int) -> int | None:
    """Largest memory of a process until now; None where the system does not say."""
    path = Path(f"/proc/{process}/status")
    if os.name != "posix" or not path.exists():
        return None
    lines = path.read_text("utf-8").splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
    return 1024 * int(kilobytes)
