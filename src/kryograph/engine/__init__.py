"""Faster computation of networks, with the same numbers as the literal form in `nn`."""

import os

# torch reads this when it first allocates a large tensor: huge pages spare a step most of its page
# faults, which take longer than the arithmetic of some kernels.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
