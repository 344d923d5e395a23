from __future__ import annotations

import os
import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from kryograph.data.unpickle import read_pickle
from kryograph.errors import UsageError


class Malicious:
    """Runs a command when it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (self.command,)


def test_a_pickle_that_runs_a_command_is_refused_by_name(tmp_path: Path) -> None:
    marker, file = tmp_path / "marker", tmp_path / "ind.cora.x"
    payload = pickle.dumps(Malicious(f"touch {marker}"))
    file.write_bytes(payload)
    with pytest.raises(UsageError, match=rf"{file} asks for {os.name}\.system.*nothing was run"):
        read_pickle(file, np.ndarray)
    assert not marker.exists()
    # The file is what it claims to be: an ordinary unpickler does run the command.
    pickle.loads(payload)
    assert marker.exists()


@pytest.mark.parametrize(
    "instruction",
    [b"cbuiltins\neval\n.", b"cnumpy\nload\n.", b"ccollections\nOrderedDict\n.", b"cos\nlist\n."],
)
def test_only_listed_names_are_looked_up(tmp_path: Path, instruction: bytes) -> None:
    file = tmp_path / "x"
    file.write_bytes(instruction)
    with pytest.raises(UsageError, match="was refused"):
        read_pickle(file, object)


def test_a_dotted_name_does_not_reach_further(tmp_path: Path) -> None:
    file = tmp_path / "x"
    dotted = b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93."
    file.write_bytes(dotted)
    with pytest.raises(UsageError, match=r"numpy\.ndarray\.tofile, which no data file needs"):
        read_pickle(file, object)


def test_arrays_matrices_and_dictionaries_come_back(tmp_path: Path) -> None:
    file = tmp_path / "x"
    dense = np.arange(6, dtype=np.int32).reshape(2, 3)
    file.write_bytes(pickle.dumps(dense, protocol=3))
    np.testing.assert_array_equal(read_pickle(file, np.ndarray), dense)
    sparse = sp.csr_matrix(np.array([[0.0, 2.0], [0.0, 0.0]], dtype=np.float32))
    file.write_bytes(pickle.dumps(sparse, protocol=3))
    np.testing.assert_array_equal(read_pickle(file, sp.csr_matrix).toarray(), sparse.toarray())
    neighbours = defaultdict(list, {0: [1, 2], 2: [0]})
    file.write_bytes(pickle.dumps(neighbours, protocol=3))
    assert read_pickle(file, dict) == neighbours


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ind.cora.y"
    whole = pickle.dumps(np.arange(100), protocol=3)
    for length in (0, 1, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(UsageError, match=f"{file} is damaged or not a pickle"):
            read_pickle(file, np.ndarray)


def test_what_is_not_a_pickle_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ind.cora.y"
    file.write_text("<html>404</html>")
    with pytest.raises(UsageError, match=f"{file} is damaged or not a pickle"):
        read_pickle(file, np.ndarray)


def test_another_type_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ind.cora.y"
    file.write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(UsageError, match=f"{file} holds a list, not a ndarray"):
        read_pickle(file, np.ndarray)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"Cannot read {tmp_path / 'gone'}: No such file"):
        read_pickle(tmp_path / "gone", np.ndarray)
