"""Layers and networks as torch modules, in the manner of PyTorch Geometric."""

from kryograph.krylov.power_blocks import krylov_blocks
from kryograph.nn.krylov import KrylovConv, TruncatedKrylov
from kryograph.nn.snowball import Snowball, SnowballConv
from kryograph.nn.stack import GCN

__all__ = ["GCN", "KrylovConv", "Snowball", "SnowballConv", "TruncatedKrylov", "krylov_blocks"]
