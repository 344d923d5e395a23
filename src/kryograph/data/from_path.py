"""Data sets in a user's own files: a file that holds a graph with labels, or a folder of tables.

A folder holds `edges.*` and `nodes.*`, each in any format of tables, or one file that holds the
whole graph. The labels are in a column of the nodes called 'label' or 'class' (or in the array that
the format uses for them). A node whose cell is empty has no label.
"""

from __future__ import annotations

import hashlib
import os
import re
from functools import partial
from pathlib import Path

import numpy as np

from kryograph.data.dataset import Dataset
from kryograph.data.sources import LoadOptions, Source, digest_of
from kryograph.data.splits import mask_splits
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN
from kryograph.lazy import lazy_imports

with lazy_imports():
    from kryograph.data import tables  # imports Arrow, which data sets by name do not need

DIGEST_LENGTH = 8
_WITH_DIGEST = re.compile(rf"(.+)#([0-9a-f]{{{DIGEST_LENGTH}}})")


def is_path(name: str) -> bool:
    """Whether a name that is not in the catalogue looks like a path, or is one."""
    return bool(Path(name).suffix) or "/" in name or os.sep in name or Path(name).exists()


def path_source(text: str) -> Source:
    """Build the source of a path, which may end with the digest that an earlier source added."""
    earlier = None
    match = _WITH_DIGEST.fullmatch(text)
    if match and not Path(text).exists():
        text, earlier = match.groups()
    path = Path(os.path.normpath(Path(text).expanduser()))
    edges, nodes = _files(path)
    digests = [digest_of(file) for file in (edges, nodes) if file is not None]
    digest = hashlib.sha256(" ".join(digests).encode()).hexdigest()[:DIGEST_LENGTH]
    if earlier not in (None, digest):
        raise UsageError(f"{path} was changed: its digest is {digest}, not {earlier}.")
    # A plain word would be looked up in the catalogue.
    prefix = "" if path.suffix or "/" in path.as_posix() else "./"
    name = f"{prefix}{path.as_posix()}#{digest}"
    return Source(
        name=name,
        title=path.resolve().name,
        summary=f"{path}: a graph of your own",
        citation="none",
        compute=partial(_load, name, path, edges, nodes),
    )


def _files(path: Path) -> tuple[Path, Path | None]:
    """Files of edges and nodes; the second is None if the first holds everything."""
    if path.is_file():
        return path, None
    if not path.is_dir():
        raise UsageError(f"There is no file or folder {path}.")
    files = sorted(file for file in path.iterdir() if file.is_file() and file.name[0] != ".")
    by_stem: dict[str, Path] = {}
    for file in files:
        stem = file.name.partition(".")[0].lower()
        other = by_stem.setdefault(stem, file)
        if other != file and stem in ("edges", "nodes", "graph"):
            raise UsageError(f"{path} has {other.name} and {file.name}: remove one of them.")
    if "edges" in by_stem:
        return by_stem["edges"], by_stem.get("nodes")
    if "graph" in by_stem or len(files) == 1:
        return by_stem.get("graph", files[0]), None
    names = ", ".join(file.name for file in files[:5]) or "nothing"
    raise UsageError(
        f"The folder {path} must hold edges.csv and nodes.csv (or other formats of tables), or one "
        f"file with a whole graph, such as graph.npz; it holds {names}{', …' * (len(files) > 5)}."
    )


def _load(name: str, path: Path, edges: Path, nodes: Path | None, options: LoadOptions) -> Dataset:
    if not options.normalise:
        raise UsageError(f"The features of {path} are made by a recipe: normalise must be True.")
    read = tables.read_tables(edges, nodes, label=None, as_dataset=True)
    for note in read.notes:
        options.notify(note)
    if not np.any(read.labels != UNKNOWN):
        raise UsageError(
            f"{path} has no labels: a data set needs a column 'label' in its table of nodes, or an "
            "array of labels. If the column has another name, rename it; to label a graph with few "
            "known labels, use `kryograph fit`."
        )
    if len(read.classes) == 1:
        raise UsageError(f"All labels of {path} are {read.classes[0]!r}: two classes are needed.")
    splits = () if read.masks is None else mask_splits(read.masks, read.labels)
    if len(splits) > 1:
        options.notify(f"{path} has {len(splits)} splits: seed k takes the k-th, counted from 0.")
    public = next(iter(splits), None)
    return Dataset(name, read.graph, read.labels, read.classes, str(path), public, splits[1:])
