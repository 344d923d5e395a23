"""Numerics of Krylov spaces: from a symmetric matrix and a start vector to a basis."""
