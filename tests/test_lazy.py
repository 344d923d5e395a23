from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import inspect, sys
from kryograph.lazy import lazy_imports

with lazy_imports():
    from kryograph import data, runs
    from kryograph.data import tables

def loaded(module):
    return type(module) is type(sys)

inspect.getmodule(lambda: 0)  # reads `__file__` of all modules, as the import of torch does
print(*map(loaded, (data, runs, tables)), "torch" in sys.modules, "pyarrow" in sys.modules)
data.load("synthetic")
print(*map(loaded, (data, runs)), hasattr(data, "nothing"), data.tables is tables)
print(runs.Store.__module__, runs.__spec__.loader is runs.__loader__, loaded(runs))
with lazy_imports():
    from kryograph.tuning.study import Study
"""


def test_lazy_imports_load_a_module_when_a_name_is_read() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == [
        "False False False False False",
        "True False False True",
        "kryograph.runs.store True True",
    ]
    *_, error = done.stderr.splitlines()
    assert error.startswith("ImportError: cannot import name 'Study' from 'kryograph.tuning.study'")
