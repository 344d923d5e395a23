"""The cost of an epoch, counted on tensors without storage."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from kryograph.data import load
from kryograph.engine.cost import gemm_cost, spmm_cost
from kryograph.engine.tracing import _Counter, trace_epoch
from kryograph.graph import Task
from kryograph.nn.functional import Masks
from kryograph.systems import SYSTEMS, system
from kryograph.systems.network import NetworkSystem
from kryograph.training.loop import Conditions


@pytest.fixture(scope="module")
def task() -> Task:
    return load("synthetic").task("public")


def test_the_products_of_a_gcn_are_those_of_its_equation(task: Task) -> None:
    method = system("gcn", {"hidden": 16, "dropout": 0})
    assert isinstance(method, NetworkSystem)
    forward = method.prepare(task, Conditions(), Masks())
    counted = sorted(kernel.flops for kernel in trace_epoch(forward).kernels if kernel.flops)
    n, classes = task.graph.n, len(task.classes)
    words, entries = task.graph.features.nnz, forward.L.matrix.nnz
    features = spmm_cost(words, n, 16).kernels[0].flops
    diffused = [spmm_cost(entries, n, width).kernels[0].flops for width in (16, classes)]
    output = gemm_cost(n, 16, classes).kernels[0].flops
    # X W and L (X W) in the step, its gradient and the scoring; the output layer has two gradients.
    expected = sorted([*(3 * [features]), *(3 * diffused), *(4 * [output])])
    assert counted == expected


def test_a_trace_leaves_the_run_as_it_was(task: Task) -> None:
    method = system("lnet", {"hidden": 8})
    assert isinstance(method, NetworkSystem)
    forward = method.prepare(task, Conditions(), Masks())
    before = dict(vars(forward))
    trace_epoch(forward)
    assert vars(forward) == before
    assert all(parameter.grad is None for parameter in forward.network.parameters())


@pytest.mark.parametrize("name", ["gcn", "snowball"])
def test_a_run_does_not_import_a_compiler_or_symbolic_algebra(name: str) -> None:
    program = f"""
import sys
from kryograph.data import load
from kryograph.systems import system
from kryograph.training.loop import Conditions
from kryograph.training.stopping import exactly
system({name!r}).fit(load("synthetic").task("public"), conditions=Conditions(exactly(2)))
print([module for module in ("torch._dynamo", "sympy") if module in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stdout == "[]\n", result.stderr


@pytest.mark.parametrize(
    ("dim", "keep", "shape"),
    [([1], False, (4,)), ([-1], True, (4, 1)), ([0], False, (3,)), (None, False, ())],
)
def test_shapes_without_storage_are_those_of_torch(
    dim: list[int] | None, keep: bool, shape: tuple[int, ...]
) -> None:
    x = torch.empty(4, 3, device="meta")
    with _Counter():
        assert x.sum(dim, keepdim=keep).shape == shape
        assert torch.linalg.vector_norm(x, dim=dim, keepdim=keep).shape == shape
        assert torch.cat([x, x], dim=-1).shape == (4, 6)
        assert (x @ x.T).shape == (4, 4)
        assert (x + x[0]).shape == (4, 3)
        assert x.add_(1.0) is x


@pytest.mark.parametrize("name", [name for name in SYSTEMS if name != "lp"])
def test_every_system_predicts_its_cost(name: str, task: Task) -> None:
    estimate = system(name).estimate(task)
    assert estimate is not None
    # 9 ms for a whole run of a network were a sign that nothing but the optimiser was counted.
    assert estimate.seconds() > (0.1 if estimate.epochs > 1 else 0.001)
    assert estimate.memory > task.graph.features.nnz * 4


def test_several_fits_cost_as_many_runs(task: Task) -> None:
    inner, grown = system("gcn").estimate(task), system("self-training").estimate(task)
    assert inner is not None
    assert grown is not None
    assert grown.seconds() > inner.seconds()
    assert torch.get_default_dtype() == torch.float32
