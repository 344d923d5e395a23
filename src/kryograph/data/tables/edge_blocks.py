"""Blocks of the table of edges: amounts at a node, and its edges of each type."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from kryograph.data.tables.edge_features import (
    EdgeAttributes,
    amount_names,
    type_names,
)
from kryograph.data.tables.feature_blocks import (
    FeatureBlock,
    no_features,
    parse_categories,
    parse_floats,
    parse_names,
    stack_sparse,
)
from kryograph.data.tables.node_table import NodeTable, column_statistics
from kryograph.errors import UsageError
from kryograph.graph import Features
from kryograph.text import plural, quoted, quoted_list

MOST_TYPES = 50
"""Largest number of types of edges in one column; the most frequent ones are counted."""


@dataclass(frozen=True)
class EdgeAmounts(FeatureBlock):
    """Columns of numbers of the edges: logarithms of sum, mean and count at each node."""

    names: tuple[str, ...] = field(metadata={"parse": parse_names})
    means: tuple[float, ...] = field(metadata={"parse": parse_floats})
    deviations: tuple[float, ...] = field(metadata={"parse": parse_floats})
    """Mean and standard deviation of each feature; deviation 0 if the feature is constant."""
    key = "edge amounts"
    columns = ()

    def __post_init__(self) -> None:
        if not len(self.means) == len(self.deviations) == len(self.features):
            raise ValueError("its lists do not match")

    @classmethod
    def learn(cls, table: NodeTable) -> EdgeAmounts:
        names = () if table.edges is None else table.edges.of_kind("number")
        amounts = _amounts(table, names)
        means, deviations = column_statistics(sp.csc_array(amounts))
        return cls(names, parse_floats(means), parse_floats(deviations))

    @property
    def edge_columns(self) -> tuple[str, ...]:
        return self.names

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(feature for name in self.names for feature in amount_names(name))

    def apply(self, table: NodeTable) -> Features:
        deviations = np.array(self.deviations)
        scale = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations != 0)
        return (_amounts(table, self.names) - np.array(self.means)) * scale


@dataclass(frozen=True)
class EdgeTypes(FeatureBlock):
    """Columns of types of edges: the logarithm of the number of edges of each type at each node."""

    types: dict[str, tuple[str, ...]] = field(metadata={"parse": parse_categories})
    """Types in each column, sorted. An edge of another type is not counted."""
    key = "edge types"
    columns = ()

    @classmethod
    def learn(cls, table: NodeTable) -> EdgeTypes:
        types = {}
        for name in () if table.edges is None else table.edges.of_kind("category", "boolean"):
            assert table.edges is not None
            counts = table.edges.types(name)
            frequent = sorted(counts, key=lambda value: (-counts[value], value))[:MOST_TYPES]
            types[name] = tuple(sorted(frequent))
        return cls(types)

    @property
    def edge_columns(self) -> tuple[str, ...]:
        return tuple(self.types)

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(f for name, types in self.types.items() for f in type_names(name, types))

    def apply(self, table: NodeTable) -> Features:
        nodes = len(table.ids)
        parts = [no_features(nodes)]
        for name, types in self.types.items():
            if table.edges is None:
                parts.append(sp.csr_array((nodes, 2 * len(types))))
                continue
            parts.append(table.edges.type_counts(name, types, nodes))
            counts = table.edges.types(name)
            others = counts.keys() - set(types)
            if others:
                edges = sum(counts[value] for value in others)
                table.notes.append(
                    f"{plural(edges, 'edge')} whose type in column {quoted(name)} is not among the "
                    f"{len(types):,} that are counted."
                )
        return stack_sparse(parts)


def require_edge_columns(edges: EdgeAttributes, names: tuple[str, ...]) -> None:
    """Raise an error if the table of edges lacks columns of the recipe."""
    missing = [name for name in names if name not in edges.sheet.columns]
    if missing:
        raise UsageError(
            f"{edges.sheet.path} lacks the column{'s' * (len(missing) > 1)} "
            f"{quoted_list(missing)}, which the model was trained on."
        )


def _amounts(table: NodeTable, names: tuple[str, ...]) -> np.typing.NDArray[np.float64]:
    nodes = len(table.ids)
    if table.edges is None:
        return np.zeros((nodes, sum(len(amount_names(name)) for name in names)))
    parts = [table.edges.amounts(name, nodes) for name in names]
    return np.concatenate([np.zeros((nodes, 0)), *parts], axis=1)
