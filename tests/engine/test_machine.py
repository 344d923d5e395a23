from __future__ import annotations

import platform
import signal
import sys
from pathlib import Path

import pytest
import torch

from kryograph.data import synthetic_citations
from kryograph.engine import machine
from kryograph.engine import machine as peak
from kryograph.engine.cost import Rates
from kryograph.engine.machine import (
    available_memory,
    bfloat16_fault,
    describe,
    measure_rates,
    peak_bytes,
)
from kryograph.errors import UsageError
from kryograph.graph import Split
from kryograph.systems import system
from kryograph.training.loop import Conditions
from kryograph.training.stopping import StopRule

GIB = 2**30
UNLIMITED_V1 = 9223372036854771712


def write(root: Path, files: dict[str, object]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


def meminfo(gibibytes: int) -> dict[str, object]:
    free = f"MemTotal: 99999999 kB\nMemFree: 1 kB\nMemAvailable:   {gibibytes * 2**20} kB"
    return {"proc/meminfo": free}


# Speed


def test_the_rates_are_those_of_a_computer() -> None:
    rates = measure_rates()
    assert 1e8 < rates.flops < 1e15
    assert 1e8 < rates.bytes < 1e13
    assert 1e-8 < rates.launch < 1e-2


def test_the_rates_if_everything_takes_half_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_shortest", lambda work, times: 0.5)
    # A product of 1024 × 1024 matrices, 128 MiB read and written, 500 small operations.
    expected = Rates(flops=2 * 1024**3 / 0.5, bytes=GIB / 4 / 0.5, launch=0.5 / 800)
    assert machine._measure.__wrapped__(1) == expected


def test_it_is_measured_once_for_each_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    first = measure_rates()
    assert measure_rates() is first
    monkeypatch.setattr(torch, "get_num_threads", lambda: 99)
    assert measure_rates() is not first


# Memory


def test_a_machine_without_limits(tmp_path: Path) -> None:
    assert available_memory(write(tmp_path, meminfo(8))) == 8 * GIB


def test_a_system_that_does_not_say(tmp_path: Path) -> None:
    assert available_memory(tmp_path) is None


@pytest.mark.parametrize(("limit", "left"), [(3 * GIB, 2 * GIB), (100 * GIB, 8 * GIB)])
def test_the_smaller_counts(tmp_path: Path, limit: int, left: int) -> None:
    group = {
        "proc/self/cgroup": "0::/",
        "sys/fs/cgroup/memory.max": limit,
        "sys/fs/cgroup/memory.current": GIB,
    }
    assert available_memory(write(tmp_path, meminfo(8) | group)) == left


def test_version_2_without_a_limit(tmp_path: Path) -> None:
    group = {
        "proc/self/cgroup": "0::/mine",
        "sys/fs/cgroup/mine/memory.max": "max",
        "sys/fs/cgroup/mine/memory.current": GIB,
    }
    assert available_memory(write(tmp_path, meminfo(8) | group)) == 8 * GIB


def test_the_limit_of_a_group_around_this_one(tmp_path: Path) -> None:
    group = {
        "proc/self/cgroup": "0::/all/mine",
        "sys/fs/cgroup/all/mine/memory.max": 7 * GIB,
        "sys/fs/cgroup/all/mine/memory.current": 0,
        "sys/fs/cgroup/all/memory.max": 3 * GIB,
        "sys/fs/cgroup/all/memory.current": GIB,
    }
    assert available_memory(write(tmp_path, meminfo(8) | group)) == 2 * GIB


@pytest.mark.parametrize("folder", ["memory", "memory/docker/mine"])
def test_version_1_seen_from_inside_and_from_outside(tmp_path: Path, folder: str) -> None:
    group = {
        "proc/self/cgroup": "5:cpu,cpuacct:/docker/mine\n4:memory:/docker/mine\n0::/docker/mine",
        f"sys/fs/cgroup/{folder}/memory.limit_in_bytes": 4 * GIB,
        f"sys/fs/cgroup/{folder}/memory.usage_in_bytes": 3 * GIB,
    }
    assert available_memory(write(tmp_path, meminfo(8) | group)) == GIB


def test_version_1_without_a_limit(tmp_path: Path) -> None:
    group = {
        "proc/self/cgroup": "4:memory:/",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": UNLIMITED_V1,
        "sys/fs/cgroup/memory/memory.usage_in_bytes": GIB,
    }
    assert available_memory(write(tmp_path, meminfo(8) | group)) == 8 * GIB


@pytest.mark.parametrize(
    ("version", "limit", "use", "stat"),
    [
        ("0::/", "memory.max", "memory.current", f"anon 5\ninactive_file {GIB}"),
        (
            "4:memory:/",
            "memory/memory.limit_in_bytes",
            "memory/memory.usage_in_bytes",
            f"inactive_file 5\ntotal_inactive_file {GIB}",
        ),
    ],
)
def test_files_that_are_only_cached_make_room(
    tmp_path: Path, version: str, limit: str, use: str, stat: str
) -> None:
    group = {
        "proc/self/cgroup": version,
        f"sys/fs/cgroup/{limit}": 4 * GIB,
        f"sys/fs/cgroup/{use}": 3 * GIB,
        f"sys/fs/cgroup/{Path(use).parent}/memory.stat": stat,
    }
    assert available_memory(write(tmp_path, meminfo(8) | group)) == 2 * GIB


def test_more_than_allowed_leaves_nothing(tmp_path: Path) -> None:
    group = {
        "proc/self/cgroup": "0::/",
        "sys/fs/cgroup/memory.max": GIB,
        "sys/fs/cgroup/memory.current": 2 * GIB,
    }
    assert available_memory(write(tmp_path, meminfo(8) | group)) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_this_machine_has_some_left() -> None:
    left, whole = available_memory(), describe()["memory_bytes"]
    assert left is not None
    assert 0 < left < whole


# bfloat16

DIES = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
DIES_WITH_AMX = f"import os; 'ONEDNN_MAX_CPU_ISA' in os.environ or exec({DIES!r})"
RAISES = "raise RuntimeError('could not create a primitive')"
REFUSAL = "Products in bfloat16 do not work on this processor"
ILLEGAL = signal.strsignal(signal.SIGILL)


def test_products_that_work_are_no_fault() -> None:
    assert bfloat16_fault("pass") is None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals")
def test_products_that_die_by_a_signal_are_a_fault() -> None:
    assert bfloat16_fault(DIES) == f"{REFUSAL} ({ILLEGAL}): use --precision float32."


def test_products_that_raise_are_a_fault() -> None:
    cause = "RuntimeError: could not create a primitive"
    assert bfloat16_fault(RAISES) == f"{REFUSAL} ({cause}): use --precision float32."


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals")
def test_the_variable_that_helps_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    assert bfloat16_fault(DIES_WITH_AMX) == (
        f"{REFUSAL} ({ILLEGAL}): use --precision float32, or start the program without "
        "AMX, where they work: ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 kryograph train …"
    )


def test_products_are_tried_once(tmp_path: Path) -> None:
    program = f"open({str(tmp_path / 'runs')!r}, 'a').write('.')"
    assert bfloat16_fault(program) is None
    assert bfloat16_fault(program) is None
    assert (tmp_path / "runs").read_text() == "."


def test_a_run_is_refused_before_it_crashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "BFLOAT16_PRODUCTS", RAISES)
    task = synthetic_citations(n=120, classes=3, words=30).task(
        Split("by hand", range(30), range(30, 60), range(60, 120))
    )
    method, rule = system("gcn"), StopRule(max_epochs=1)
    with pytest.raises(UsageError, match=REFUSAL):
        method.fit(task, conditions=Conditions(rule, precision="bfloat16"))
    with pytest.raises(UsageError, match=REFUSAL):
        method.estimate(task, Conditions(rule, precision="bfloat16"))
    assert method.fit(task, conditions=Conditions(rule)).epochs == 1


# Description


def test_the_description_of_this_machine() -> None:
    found = describe()
    assert found["threads"] == torch.get_num_threads()
    assert found["torch"] == torch.__version__
    assert found["python"] == platform.python_version()
    assert found["cores"] >= 1
    assert found["cpu"]
    assert (found["blas"] == "mkl") == torch.backends.mkl.is_available()


def test_a_processor_without_a_model_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_read", lambda path: "processor\t: 0\nBogoMIPS\t: 50.00\n")
    assert describe()["cpu"] in (platform.processor(), platform.machine())


MB = 10**6

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak")


def use(megabytes: int) -> float:
    """Touch that much memory, and give it back."""
    return torch.ones(megabytes * MB // 4)[-1].item()


@linux
@pytest.mark.slow
def test_what_was_freed_within_counts_every_time() -> None:
    for _ in range(2):
        result, held = peak_bytes(lambda: use(200))
        assert result == 1.0
        assert held is not None
        assert 190 * MB < held < 260 * MB


@linux
@pytest.mark.slow
def test_a_larger_peak_before_does_not_count() -> None:
    use(300)
    _, held = peak_bytes(lambda: use(100))
    assert held is not None
    assert 90 * MB < held < 160 * MB


@linux
@pytest.mark.slow
def test_what_was_held_before_does_not_count() -> None:
    mine = torch.ones(100 * MB // 4)
    _, held = peak_bytes(lambda: mine.sum().item())
    assert held is not None
    assert held < 50 * MB


@pytest.mark.slow
def test_where_the_system_does_not_tell_the_work_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peak, "PROCESS", tmp_path / "nowhere")
    assert peak_bytes(lambda: 42) == (42, None)


@pytest.mark.slow
def test_work_that_fails_says_so() -> None:
    with pytest.raises(ZeroDivisionError):
        peak_bytes(lambda: 1 / 0)


@pytest.mark.slow
def test_another_malloc_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peak.ctypes, "CDLL", lambda name: object())
    assert peak_bytes(lambda: 42)[0] == 42
