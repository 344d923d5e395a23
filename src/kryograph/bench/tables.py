"""Reading of large tables of edges and nodes, against pyarrow.

The nodes have 20 columns of every kind that CSV can hold: numbers, categories, dates, truth values,
a second id, short texts. Seconds of the processor and memory are those of a process of their own,
from the files to the graph with its features; memory is the growth of its peak.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

from kryograph.bench.benchmark import ColumnFormat, OnCase, benchmark
from kryograph.data.tables import read_tables

TABLE_EDGES, TABLE_NODES = 1_000_000, 200_000
QUICK_TABLE_EDGES, QUICK_TABLE_NODES = 20_000, 4_000
PARSE, READ = "pyarrow", "read_tables"


@benchmark(
    {
        "ways": (
            ColumnFormat("way", "way"),
            ColumnFormat("seconds", "seconds", "{:.2f}".format),
            ColumnFormat("memory / size", "memory", "{:.1f}×".format),
        )
    }
)
def measure_tables(*, quick: bool, on_case: OnCase) -> dict[str, Any]:
    """Seconds and memory, relative to the size of the files, of parsing and of reading."""
    edges, nodes = (QUICK_TABLE_EDGES, QUICK_TABLE_NODES) if quick else (TABLE_EDGES, TABLE_NODES)
    on_case(f"writing {edges:,} edges and {nodes:,} nodes")
    with TemporaryDirectory() as folder:
        paths = Path(folder, "edges.csv"), Path(folder, "nodes.csv")
        write_large_tables(*paths, edges, nodes)
        size = sum(path.stat().st_size for path in paths)
        ways = []
        for name, work in ((PARSE, parse_by_arrow), (READ, read_graph)):
            on_case(name)
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                seconds, memory = pool.apply(timed, (work, *paths))
            ways.append({"way": name, "seconds": seconds, "memory": memory / size})
    return {"edges": edges, "nodes": nodes, "bytes": size, "ways": ways}


def timed(work: Callable[[Path, Path], object], edges: Path, nodes: Path) -> tuple[float, int]:
    """Seconds of all processors, and bytes by which the peak of the memory of the process grew."""
    before = _peak_kilobytes()
    start = time.process_time()
    result = work(edges, nodes)
    seconds = time.process_time() - start
    del result
    return seconds, 1024 * (_peak_kilobytes() - before)


def _peak_kilobytes() -> int:
    """Peak of the memory of this process, in kilobytes.

    On Linux the peak that `resource` knows is at least that of the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def parse_by_arrow(edges: Path, nodes: Path) -> object:
    """Parse both files by pyarrow, with its types."""
    return csv.read_csv(edges), csv.read_csv(nodes)


def read_graph(edges: Path, nodes: Path) -> object:
    """Read both files as a graph with features and labels."""
    return read_tables(edges, nodes, label="topic")


def write_large_tables(edges: Path, nodes: Path, edge_count: int, node_count: int) -> None:
    """Write two tables; the edges have an amount, and a tenth of the labels is known."""
    rng = np.random.default_rng(0)
    ids = _names("n", np.arange(node_count))
    ends = rng.integers(node_count, size=(2, edge_count))
    amounts = np.round(rng.lognormal(3, 1, edge_count), 2)
    columns = {"source": ids.take(ends[0]), "target": ids.take(ends[1]), "amount": amounts}
    csv.write_csv(pa.table(columns), edges)
    table: dict[str, Any] = {"id": ids, "account": _names("user-", np.arange(node_count) + 7)}
    for at in range(7):
        values = np.round(rng.normal(size=node_count), 4)
        table[f"number{at}"] = pa.array(values, mask=rng.random(node_count) < 0.05 * (at % 3))
    for at in range(3):
        table[f"count{at}"] = rng.geometric(0.1, node_count)
    for at, kinds in enumerate((5, 20, 50)):
        table[f"category{at}"] = _names("kind ", rng.integers(kinds, size=node_count))
    for at in range(2):
        days = rng.integers(3000, size=node_count)
        table[f"date{at}"] = np.datetime64("2015-01-01") + days
    table["flag"] = rng.random(node_count) < 0.3
    table["bio"] = _texts(rng, node_count)
    classes = np.where(rng.random(node_count) < 0.1, rng.integers(1, 5, node_count), 0)
    table["topic"] = pa.array(["", "art", "maths", "music", "sport"]).take(pa.array(classes))
    csv.write_csv(pa.table(table), nodes)


def _names(prefix: str, numbers: npt.NDArray[np.int64]) -> Any:
    return pa.array([f"{prefix}{number}" for number in numbers.tolist()])


def _texts(rng: np.random.Generator, count: int) -> Any:
    """Texts of six words of a thousand."""
    words = rng.integers(1000, size=(count, 6)).tolist()
    return pa.array([" ".join(f"word{number}" for number in row) for row in words])
