"""Operators of edge lists that were seen before: normalised once, as long as nothing changes.

A layer is called many times with the same `edge_index`, and the layers of a network share it. An
operator is kept while the tensors that it was computed from exist, and is returned only for these
same objects with the values that they had. The values are compared with a copy in every call, not
torch's count of changes: writing to `tensor.data`, or to an array that shares its memory, is not
counted. For a million edges the comparison takes a millisecond, the normalisation 350.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from kryograph.operators import Operator, from_edge_index

MOST_OPERATORS = 8
"""Number of operators that are kept; the one that was not used for longest is dropped first."""

Key: TypeAlias = tuple[int, int, int, str]
"""Addresses of `edge_index` and `edge_weight`, number of nodes and name of an operator."""


@dataclass(frozen=True, eq=False)
class _Source:
    """A tensor, which this object does not keep alive, and a copy of its values."""

    reference: weakref.ref[Tensor]
    copy: Tensor

    def is_still(self, tensor: Tensor) -> bool:
        """Whether this is the same object with the same values."""
        same_object = self.reference() is tensor
        return (
            same_object
            and (self.copy.dtype, self.copy.device) == (tensor.dtype, tensor.device)
            and torch.equal(self.copy, tensor.detach())
        )


@dataclass(frozen=True, eq=False)
class _Entry:
    """An operator and the tensors that it was computed from."""

    sources: tuple[_Source, ...]
    operator: Operator


_KEPT: dict[Key, _Entry] = {}
"""Operators that may be needed again; the one that was used last stands last."""


def kept_operator(
    edge_index: Tensor, edge_weight: Tensor | None, n: int, name: str = "sym"
) -> Operator:
    """Return the operator of `from_edge_index`; the same object as long as nothing changes."""
    tensors = (edge_index,) if edge_weight is None else (edge_index, edge_weight)
    key: Key = (id(edge_index), id(edge_weight), n, name)
    entry = _KEPT.pop(key, None)
    if entry is None or not all(
        source.is_still(tensor) for source, tensor in zip(entry.sources, tensors, strict=True)
    ):
        constant = None if edge_weight is None else edge_weight.detach()
        operator = from_edge_index(edge_index, constant, n, name)
        entry = _Entry(tuple(_source(tensor, key) for tensor in tensors), operator)
    _KEPT[key] = entry
    for oldest in list(_KEPT)[:-MOST_OPERATORS]:
        _KEPT.pop(oldest, None)
    return entry.operator


def _source(tensor: Tensor, key: Key) -> _Source:
    def forget(reference: weakref.ref[Tensor]) -> None:
        # The address may belong to a new tensor by now, whose operator has the same key.
        entry = _KEPT.get(key)
        if entry is not None and any(source.reference is reference for source in entry.sources):
            _KEPT.pop(key, None)

    return _Source(weakref.ref(tensor, forget), tensor.detach().clone())
