"""Layers and networks as torch modules, in the manner of PyTorch Geometric."""

from kryograph.krylov.powers import krylov_blocks
from kryograph.nn.gcn import GCN
from kryograph.nn.krylov import KrylovConv, TruncatedKrylov
from kryograph.nn.snowball import Snowball, SnowballConv

__all__ = ["GCN", "KrylovConv", "Snowball", "SnowballConv", "TruncatedKrylov", "krylov_blocks"]
