"""Benchmarks of speed: each module with a function marked `@benchmark` is one.

`kryograph bench` has a command for each of them. Names and summaries are read from the source
files, so that the help of the command line imports neither torch nor PyTorch Geometric.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kryograph.bench.benchmark import Benchmark


def benchmark_summaries() -> dict[str, str]:
    """Names of all benchmarks, each with the first line of its module's docstring."""
    files = [path for folder in __path__ for path in sorted(Path(folder).glob("*.py"))]
    sources = {path.stem: path.read_text("utf-8") for path in files}
    marked = {name: source for name, source in sources.items() if "\n@benchmark(" in source}
    return {name: source.split('"""')[1].splitlines()[0] for name, source in marked.items()}


def load_benchmark(name: str) -> Benchmark:
    """Import the module of a benchmark and return its record."""
    import_module(f"{__name__}.{name}")
    benchmarks: dict[str, Benchmark] = import_module(f"{__name__}.benchmark").BENCHMARKS
    return benchmarks[name]
