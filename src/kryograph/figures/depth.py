"""Accuracy against depth: what over-smoothing does to a trained network.

All systems have the width, the dropout and the number of Krylov blocks below, so that depth is all
that changes within a line, and the architecture between lines; everything else is as each system's
defaults have it (optimiser, learning rate, weight decay). GCN is the general network of
`deep-krylov` with g(L) = L in every layer, which has f as a setting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kryograph.errors import UsageError, unknown
from kryograph.systems import System, system

DEPTHS = (1, 2, 4, 8, 16, 32, 64)

COMMON: Mapping[str, object] = {"hidden": 16, "dropout": 0.5}
"""GCN's own."""

_GCN: Mapping[str, object] = {
    "filter": "diffusion",
    "output_filter": "diffusion",
    "weight_decay": 5e-4,
}

VARIANTS: dict[str, tuple[str, Mapping[str, object]]] = {
    "GCN, ReLU": ("deep-krylov", {**_GCN, "activation": "relu"}),
    "GCN, tanh": ("deep-krylov", {**_GCN, "activation": "tanh"}),
    "Snowball": ("snowball", {}),
    "linear Snowball": ("linear-snowball", {}),
    "truncated Krylov": ("truncated-krylov", {"order": 3}),
}
"""What is drawn, with its system and settings; three blocks are those of appendix II."""


def at_depth(variant: str, depth: int) -> System:
    """The system of a line at a depth.

    >>> at_depth("truncated Krylov", 8).settings.layers
    8
    """
    if variant not in VARIANTS:
        raise unknown("variant", variant, VARIANTS)
    name, changes = VARIANTS[variant]
    return system(name, {**COMMON, **changes, "layers": depth})


def checked_depths(depths: Sequence[int]) -> tuple[int, ...]:
    """Depths in increasing order, each once and at least 1."""
    if not depths or min(depths) < 1:
        raise UsageError(f"Depths must be at least 1; got {', '.join(map(str, depths)) or 'none'}.")
    return tuple(sorted(set(depths)))
