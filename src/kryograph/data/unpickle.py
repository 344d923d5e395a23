"""Read a pickle that holds arrays, and nothing that could run.

Loading a pickle calls whatever functions it names, so a foreign file could do anything. This
reader knows the few names that Planetoid's files need, in their old spelling and in today's, and
refuses every other one before it is looked up.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy._core import multiarray

from kryograph.errors import UsageError

Unpickled = TypeVar("Unpickled")


class Refused(UsageError):
    """A pickle asks for something that no data file needs."""


def read_pickle(path: Path, kind: type[Unpickled]) -> Unpickled:
    """Return the object in the file `path`, which must be of type `kind`."""
    try:
        with path.open("rb") as stream:
            value = _Unpickler(stream, path).load()
    except UsageError:
        raise
    except OSError as error:
        raise UsageError(f"Cannot read {path}: {error.strerror or error}.") from error
    except Exception as error:  # a broken pickle can raise nearly anything
        raise UsageError(f"{path} is damaged or not a pickle ({error}).") from error
    if not isinstance(value, kind):
        raise UsageError(f"{path} holds a {type(value).__name__}, not a {kind.__name__}.")
    return value


def refusal(path: Path) -> Refused | None:
    """Return the error of a pickle that asks for what is not allowed; None for any other file."""
    try:
        read_pickle(path, object)
    except Refused as refused:
        return refused
    except UsageError:
        return None
    return None


def _dtype(code: str, align: int, copy: int) -> np.dtype[Any]:
    # Old pickles give the flags as 0 and 1, which NumPy warns about.
    return np.dtype(code, align=bool(align), copy=bool(copy))


_ALLOWED: dict[str, Any] = {
    "numpy.ndarray": np.ndarray,
    "numpy.dtype": _dtype,
    "numpy.core.multiarray._reconstruct": multiarray._reconstruct,
    "numpy._core.multiarray._reconstruct": multiarray._reconstruct,
    "scipy.sparse.csr.csr_matrix": sp.csr_matrix,
    "scipy.sparse._csr.csr_matrix": sp.csr_matrix,
    "collections.defaultdict": defaultdict,
    "__builtin__.list": list,
    "builtins.list": list,
}


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream: Any, path: Path) -> None:
        super().__init__(stream, encoding="latin1")
        self._path = path

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[f"{module}.{name}"]
        except KeyError:
            raise Refused(
                f"{self._path} asks for {module}.{name}, which no data file needs: it was refused, "
                "and nothing was run. Get the file from a source you trust."
            ) from None
