from __future__ import annotations

import subprocess
import sys

import pytest

STOPPED = """
import sys

class Impatient:
    def find_spec(self, name, *_):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Impatient())
sys.argv = ["kryograph", "datasets"]
from kryograph.__main__ import main
main()
"""


INTERRUPTED_EXTENSION = """
import os, signal, sys

class Extension:
    def find_spec(self, name, *_):
        if name == "torch":
            try:
                os.kill(os.getpid(), signal.SIGINT)
                while True:
                    pass
            except KeyboardInterrupt:
                raise ImportError("initialization failed")

sys.meta_path.insert(0, Extension())
sys.argv = ["kryograph", "datasets"]
from kryograph.__main__ import main
main()
"""


def python(code: str) -> tuple[int, str, str]:
    """Run code in a new interpreter: exit code, standard output, standard error."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("module", ["typer", "torch"])
def test_main_stops_without_a_traceback_at_ctrl_c_during_imports(module: str) -> None:
    assert python(STOPPED.format(module=module)) == (130, "", "")


@pytest.mark.parametrize("error", ["ImportError", "AttributeError", "RuntimeError"])
def test_main_takes_errors_of_an_interrupted_import_for_ctrl_c(error: str) -> None:
    assert python(INTERRUPTED_EXTENSION.replace("ImportError", error)) == (130, "", "")


def test_package_knows_its_version_without_importing_libraries() -> None:
    code, out, _ = python(
        "import sys, kryograph; print('torch' in sys.modules, kryograph.__version__)"
    )
    assert (code, out.split()[0]) == (0, "False")


@pytest.mark.slow
def test_package_offers_every_public_name() -> None:
    public = "import kryograph; print(all(getattr(kryograph, name) for name in kryograph.__all__))"
    _, out, err = python(f"{public}; kryograph.lod")
    assert out == "True\n"
    assert "module 'kryograph' has no attribute 'lod'" in err


WAITING = (
    "import os, kryograph.__main__;"
    "print(*(os.environ.get(name) for name in ('GOMP_SPINCOUNT', 'KMP_BLOCKTIME')))"
)


def test_main_limits_how_long_threads_spin_unless_the_user_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"):
        monkeypatch.delenv(name, raising=False)
    assert python(WAITING)[1] == "10000 1\n"
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    assert python(WAITING)[1] == "7 1\n"
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    assert python(WAITING)[1] == "7 None\n"
