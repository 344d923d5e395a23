"""Data sets by name or path, toy graphs, and splits of nodes."""

from kryograph.data import toy
from kryograph.data.catalogue import DATASETS, dataset_title, fetch, find_source, load
from kryograph.data.dataset import Dataset, PublishedGraph
from kryograph.data.sources import Form, LoadOptions, RemoteFile, Source
from kryograph.data.splits import one_split, per_class_split, rate_split, rest_split
from kryograph.data.synthetic import synthetic_citations
from kryograph.text import parse_rate

__all__ = [
    "DATASETS",
    "Dataset",
    "Form",
    "LoadOptions",
    "PublishedGraph",
    "RemoteFile",
    "Source",
    "dataset_title",
    "fetch",
    "find_source",
    "load",
    "one_split",
    "parse_rate",
    "per_class_split",
    "rate_split",
    "rest_split",
    "synthetic_citations",
    "toy",
]
