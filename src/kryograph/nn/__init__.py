"""Layers and networks as torch modules, in the manner of PyTorch Geometric."""

from kryograph.krylov.bases import krylov_blocks
from kryograph.nn.functional import Layer, Masks, NodeFeatures
from kryograph.nn.multi_scale import KrylovConv, Snowball, SnowballConv, TruncatedKrylov
from kryograph.nn.network import GCN, Network, Stack

__all__ = [
    "GCN",
    "KrylovConv",
    "Layer",
    "Masks",
    "Network",
    "NodeFeatures",
    "Snowball",
    "SnowballConv",
    "Stack",
    "TruncatedKrylov",
    "krylov_blocks",
]
