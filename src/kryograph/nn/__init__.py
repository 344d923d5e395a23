"""Layers and networks as torch modules, in the manner of PyTorch Geometric."""

from kryograph.nn.krylov import KrylovConv, TruncatedKrylov, krylov_blocks
from kryograph.nn.snowball import Snowball, SnowballConv

__all__ = ["KrylovConv", "Snowball", "SnowballConv", "TruncatedKrylov", "krylov_blocks"]
