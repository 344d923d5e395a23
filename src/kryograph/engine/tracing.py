"""Cost of any network: one epoch is run on tensors without storage, and its kernels are counted.

The weights of a planned network lie on torch's "meta" device, where an operation computes the shape
of its result and nothing else. A dispatch mode sees every operation of the training step, of the
gradient and of the scoring. Sparse products have no kernel for such tensors; the mode answers for
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from kryograph.engine.cost import Cost, Kernel, gemm_cost, memory_pass_cost, spmm_cost, temporary
from kryograph.nn.functional import Masks

if TYPE_CHECKING:
    from kryograph.engine.forward import Forward

aten = torch.ops.aten

DENSE_PRODUCTS = (aten.mm, aten.addmm, aten.bmm, aten.baddbmm)
SPARSE_PRODUCTS = (aten.mm, aten._sparse_mm_reduce_impl)

RANDOM_BITS_COST = 8
"""Drawing a number of a dropout mask takes as long as moving this many numbers."""

TRANSPOSITION_MEMORY = 12
"""Transposing sparse features needs memory for this many numbers per entry while it lasts."""

TRANSCENDENTAL_COST = 4
"""An exponential or its like takes as long as moving this many numbers."""

TRANSCENDENTALS = (
    *(aten.exp, aten.log, aten.tanh, aten.sigmoid, aten._softmax, aten._log_softmax, aten.elu),
    *(aten.pow, aten.log1p, aten.expm1),
)

GATHER_COST = 4
"""Reading or adding one number at an index takes as long as moving this many in a row."""

GATHERS = (aten.index, aten.index_select, aten.index_add, aten.index_put, aten.scatter_add)

SAME_SHAPE = (
    *(aten.ones_like, aten.zeros_like, aten.index_put, aten.index_add, aten.scatter_reduce),
    *(aten.leaky_relu_backward, aten.elu_backward),
)
"""Operations whose result has the shape of their first argument, beside those tagged pointwise."""

REDUCTIONS = {aten.sum: 1, aten.mean: 1, aten.linalg_vector_norm: 2}
"""Operations that reduce dimensions, with the index of the argument `dim`."""


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

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # skipping imports torch's compiler, which takes longer than a short run

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
        result = None
        if any(tensor.is_meta for tensor in _tensors(args)):
            # Tensors in memory, such as edges, are replaced by tensors without storage.
            args = tree_map_only(Tensor, _without_storage, args)
            result = _result(func, args)
        if result is None:
            result = func(*args, **(kwargs or {}))
        if sparse or func.is_view or operation in (aten.detach, aten.empty, aten._to_copy):
            return result
        inputs, outputs = _tensors((args, kwargs)), _tensors(result)
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


def _result(func: Any, args: tuple[Any, ...]) -> Tensor | None:
    """Result of the most frequent operations, without storage; None for any other operation.

    torch computes the same shapes, but it imports its compiler first, which takes longer than a
    short run.
    """
    tensors = _tensors(args)
    if func.overloadpacket in DENSE_PRODUCTS:
        left, right = tensors[-2:]
        shape = (*left.shape[:-1], right.shape[-1])
    elif func.overloadpacket is aten.index and len(args[1]) == 1:
        shape = (*args[1][0].shape, *tensors[0].shape[1:])
    elif func.overloadpacket is aten.cat:
        dim = args[1] % tensors[0].ndim if len(args) > 1 else 0
        sizes = list(tensors[0].shape)
        sizes[dim] = sum(tensor.shape[dim] for tensor in tensors)
        shape = tuple(sizes)
    elif func.overloadpacket in SAME_SHAPE:
        shape = tensors[0].shape
    elif torch.Tag.pointwise in func.tags:
        if func._schema.is_mutable:
            return tensors[0]
        shape = np.broadcast_shapes(*(tensor.shape for tensor in tensors))
    elif func.overloadpacket in REDUCTIONS:
        dims, keep = (*args[REDUCTIONS[func.overloadpacket] :], None, False)[:2]
        sizes = list(tensors[0].shape)
        reduced = {dim % len(sizes) for dim in dims or range(len(sizes))}
        shape = tuple(
            1 if i in reduced else n for i, n in enumerate(sizes) if keep or i not in reduced
        )
    else:
        return None
    return torch.empty(shape, dtype=tensors[0].dtype, device="meta")


def _is_sparse(value: object) -> bool:
    return isinstance(value, Tensor) and value.layout == torch.sparse_csr


def _tensors(values: Any) -> list[Tensor]:
    return [value for value in tree_leaves(values) if isinstance(value, Tensor)]


def _without_storage(tensor: Tensor) -> Tensor:
    return tensor if tensor.is_meta else torch.empty_like(tensor, device="meta")


def trace_epoch(forward: Forward, *, penalty: bool = True) -> Cost:
    """Count the cost of one epoch: a training step with its gradient, and a scoring.

    The form is not changed. The penalty of the training step is counted if `penalty` is true.
    """
    counter = _Counter()
    # A copy, because a form may store what it computes once, and tensors here have no values.
    twin = copy(forward)
    twin.network = network = deepcopy(forward.network).to("meta")
    twin.masks = _AllKept(counter)
    with counter, torch.enable_grad():
        network.train()
        loss = twin.training().sum()
        added = twin.penalty() if penalty else None
        if added is not None:
            loss = loss + added
        held = counter.result_bytes
        loss.backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            network.eval()
            twin.scored()
    # What the step computed is kept for the gradient; beside it lie the gradients of one layer.
    entries = 0 if isinstance(forward.x, Tensor) else forward.x.nnz
    held = max(held / 4, TRANSPOSITION_MEMORY * entries)
    return Cost(tuple(counter.kernels)) + temporary(held)
