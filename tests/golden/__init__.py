"""Golden values: numbers, names and files that must not change unless somebody means it."""
