r"""A user's own graph: a table of edges and one of nodes, or one file that holds both.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder:
...     edges, nodes = Path(folder, "edges.csv"), Path(folder, "nodes.csv")
...     _ = edges.write_text("source,target\nann,bob\nbob,cem\n")
...     _ = nodes.write_text("id,age,topic\nann,31,maths\nbob,45,\ncem,28,art\n")
...     tables = read_tables(edges, nodes, label="topic")
>>> tables.graph.names, tables.classes, tables.labels.tolist()
(('ann', 'bob', 'cem'), ('art', 'maths'), [1, -1, 0])
"""

from __future__ import annotations

from kryograph.data.tables.arrow_files import sheet_of_arrow
from kryograph.data.tables.delimited import CsvTable
from kryograph.data.tables.faults import TableFaults
from kryograph.data.tables.formats import FILE_FORMATS, FileFormat, contents
from kryograph.data.tables.json_lines import read_json_lines
from kryograph.data.tables.networkx_files import from_networkx_graph
from kryograph.data.tables.npz import ArrayGraph, read_arrays
from kryograph.data.tables.options import TableOptions
from kryograph.data.tables.plan import Plan, PlanLine
from kryograph.data.tables.reading import Tables, check_for_fit, read_tables
from kryograph.data.tables.sheet import RawGraph, Sheet, text_column

__all__ = [
    "FILE_FORMATS",
    "ArrayGraph",
    "CsvTable",
    "FileFormat",
    "Plan",
    "PlanLine",
    "RawGraph",
    "Sheet",
    "TableFaults",
    "TableOptions",
    "Tables",
    "check_for_fit",
    "contents",
    "from_networkx_graph",
    "read_arrays",
    "read_json_lines",
    "read_tables",
    "sheet_of_arrow",
    "text_column",
]
