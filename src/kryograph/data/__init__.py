"""Data: the citation graphs, a synthetic one, toy graphs, and the splits of their nodes."""

from kryograph.data import toy
from kryograph.data.catalogue import DATASETS, fetch, load
from kryograph.data.dataset import Dataset
from kryograph.data.splits import parse_rate, per_class_split, rate_split
from kryograph.data.synthetic import synthetic_citations

__all__ = [
    "DATASETS",
    "Dataset",
    "fetch",
    "load",
    "parse_rate",
    "per_class_split",
    "rate_split",
    "synthetic_citations",
    "toy",
]
