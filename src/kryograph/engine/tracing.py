"""Cost of any network: one epoch is run on tensors without storage, and its kernels are counted.

The weights of a planned network lie on torch's "meta" device, where an operation computes the shape
of its result and nothing else. A dispatch mode sees every operation of the training step, of the
gradient and of the scoring. Sparse products have no kernel for such tensors; the mode answers for
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from kryograph.engine.cost import Cost, Kernel, gemm_cost, memory_pass_cost, spmm_cost, temporary
from kryograph.nn.functional import Masks

if TYPE_CHECKING:
    from kryograph.engine.forward import Forward

aten = torch.ops.aten

DENSE_PRODUCTS = (aten.mm, aten.addmm, aten.bmm, aten.baddbmm)
SPARSE_PRODUCTS = (aten.mm, aten._sparse_mm_reduce_impl)

RANDOM_BITS_COST = 8
"""Drawing a number of a dropout mask takes as long as moving this many numbers."""

TRANSCENDENTAL_COST = 4
"""An exponential or its like takes as long as moving this many numbers."""

TRANSCENDENTALS = (
    *(aten.exp, aten.log, aten.tanh, aten.sigmoid, aten._softmax, aten._log_softmax, aten.elu),
    *(aten.pow, aten.log1p, aten.expm1),
)

GATHER_COST = 4
"""Reading or adding one number at an index takes as long as moving this many in order."""

GATHERS = (aten.index, aten.index_select, aten.index_add, aten.index_put, aten.scatter_add)


class _AllKept(Masks):
    """Dropout masks of a trace: every entry is kept, and drawing them is counted."""

    def __init__(self, counter: _Counter) -> None:
        super().__init__()
        self._counter = counter

    def keep(self, h: Tensor, rate: float, layer: int, nodes: Tensor | None) -> Tensor:
        self._counter.add(memory_pass_cost(RANDOM_BITS_COST * h.numel()))
        return torch.ones(h.shape, dtype=torch.bool, device=h.device)


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the kernels of what runs inside it, and the numbers that their results hold."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kernels: list[Kernel] = []
        self.result_bytes = 0.0

    def add(self, cost: Cost) -> None:
        self.kernels += cost.kernels

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        operation = func.overloadpacket
        sparse = [arg for arg in args if _is_sparse(arg)]
        if sparse and operation in SPARSE_PRODUCTS:
            return self._sparse_product(operation, sparse[0], args)
        if operation is aten.sparse_sampled_addmm:
            # Entries of a dense product at the places of a sparse matrix. Their values do not
            # matter here, so the matrix itself stands for the result.
            self.add(spmm_cost(int(sparse[0]._nnz()), sparse[0].shape[0], args[1].shape[1]))
            return sparse[0]
        if any(tensor.is_meta for tensor in _tensors(args)):
            args = tuple(_without_storage(args))
        result = func(*args, **(kwargs or {}))
        if sparse or func.is_view or operation in (aten.detach, aten.empty, aten._to_copy):
            return result
        inputs = [*_tensors(args), *_tensors((kwargs or {}).values())]
        outputs = list(_tensors(result if isinstance(result, tuple | list) else [result]))
        if any(_is_sparse(output) for output in outputs):  # arrays become a matrix as they are
            return result
        if operation in DENSE_PRODUCTS:
            left, right = inputs[-2:]
            batch = left.shape[0] if left.ndim == 3 else 1
            product = gemm_cost(left.shape[-2], left.shape[-1], right.shape[-1])
            self.add(product * batch)
        else:
            moved = sum(tensor.numel() for tensor in (*inputs, *outputs))
            weight = 1
            if operation in TRANSCENDENTALS:
                weight = TRANSCENDENTAL_COST
            elif operation in GATHERS:
                weight = GATHER_COST
            self.add(memory_pass_cost(weight * moved))
        if not any(output is argument for output in outputs for argument in inputs):
            self.result_bytes += sum(output.numel() * output.itemsize for output in outputs)
        return result

    def _sparse_product(self, operation: Any, matrix: Tensor, args: tuple[Any, ...]) -> Any:
        (dense,) = [arg for arg in _tensors(args) if not _is_sparse(arg)]
        # `values()` would come back to this mode
        nnz = int(matrix._nnz())
        rows, columns = matrix.shape[0], dense.shape[1]
        self.add(spmm_cost(nnz, rows, columns))
        product = torch.empty((rows, columns), dtype=dense.dtype, device="meta")
        self.result_bytes += product.numel() * product.itemsize
        return (product, None) if operation is aten._sparse_mm_reduce_impl else product


def _is_sparse(value: object) -> bool:
    return isinstance(value, Tensor) and value.layout == torch.sparse_csr


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _without_storage(values: Iterable[Any]) -> list[Any]:
    """The same values; tensors in memory, such as edges, are replaced by ones without storage."""
    return [
        torch.empty_like(value, device="meta")
        if isinstance(value, Tensor) and not value.is_meta
        else _without_storage(value)
        if isinstance(value, list | tuple)
        else value
        for value in values
    ]


def trace_epoch(forward: Forward, *, penalty: bool = True) -> Cost:
    """Count the cost of one epoch: a training step with its gradient, and a scoring.

    Args:
        forward: It is not changed, and its network may be without storage.
        penalty: Whether the penalty of the training step is counted.
    """
    counter = _Counter()
    # A copy: a form may keep what it computes once, and here that has no values.
    twin = copy(forward)
    twin.network = network = deepcopy(forward.network).to("meta")
    twin.masks = _AllKept(counter)
    with counter, torch.enable_grad():
        network.train()
        loss = twin.training().logsumexp(dim=1).sum()
        added = twin.penalty() if penalty else None
        if added is not None:
            loss = loss + added
        held = counter.result_bytes
        loss.backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            network.eval()
            twin.scored()
    # What the step computed is kept for the gradient; beside it lie the gradients of one layer.
    return Cost(tuple(counter.kernels)) + temporary(held / 4)
