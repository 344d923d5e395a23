from __future__ import annotations

import subprocess
import sys

import pytest

STOPPED_AT_TORCH = """
import sys
from kryograph.__main__ import main

class Impatient:
    def find_spec(self, name, *_):
        if name == "torch":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Impatient())
main()
"""


def test_ctrl_c_while_libraries_are_loaded_is_no_traceback() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", STOPPED_AT_TORCH], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_the_package_itself_loads_no_library() -> None:
    asked = "import sys, kryograph; print('torch' in sys.modules, kryograph.__version__)"
    ended = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True
    )
    assert ended.stdout.startswith("False ")


@pytest.mark.slow
def test_what_the_package_offers_is_there() -> None:
    asked = "import kryograph; print(all(getattr(kryograph, name) for name in kryograph.__all__))"
    ended = subprocess.run(
        [sys.executable, "-c", f"{asked}; kryograph.lod"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout == "True\n"
    assert "module 'kryograph' has no attribute 'lod'" in ended.stderr
