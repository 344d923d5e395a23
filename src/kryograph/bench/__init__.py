"""Benchmarks: kryograph against the literal form, PyTorch Geometric's way, and the machine."""
