"""Options that say how tables are read: declared once, for every command that reads tables.

A command with the parameter `flags: TableFlags` is marked by `takes_tables`, and then has all these
options.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from kryograph.cli.console import note
from kryograph.cli.options import choice, existing_file, flag, option, split_commas
from kryograph.errors import UsageError
from kryograph.lazy import lazy_imports

with lazy_imports():
    from kryograph.data import tables
    from kryograph.data.tables import recipe


def _files(values: list[Path] | None) -> list[Path]:
    """Check that all input files exist."""
    return [existing_file(value) or value for value in values or ()]


def _columns(name: str, help: str) -> Any:
    return option(name, "COLUMNS", help)


@dataclass(frozen=True)
class TableFlags:
    """Values of the options that say which tables are read, and how; None was not given."""

    edges: Annotated[
        list[Path],
        option(
            "--edges",
            "FILE",
            "Table of edges (CSV, TSV, JSON lines, Parquet, Arrow), or a whole graph (.npz, "
            "GraphML, GEXF). May be repeated: a table for each type of edges.",
            _files,
        ),
    ]
    nodes: Annotated[
        Path | None,
        option("--nodes", "FILE", "Table of nodes: ids, features, labels.", existing_file),
    ] = None
    labels: Annotated[
        Path | None,
        option(
            "--labels", "FILE", "Table of labels: id, label; the last of a node.", existing_file
        ),
    ] = None
    source: Annotated[str | None, option("--source", "COLUMN", "Column of sources of edges.")] = (
        None
    )
    target: Annotated[str | None, option("--target", "COLUMN", "Column of targets of edges.")] = (
        None
    )
    id: Annotated[str | None, option("--id", "COLUMN", "Column of the node ids.")] = None
    label: Annotated[
        str | None, option("--label", "COLUMN", "Column of labels; an empty cell is to predict.")
    ] = None
    weight: Annotated[
        str | None, option("--weight", "COLUMN", "Column of weights of edges, or 'none'.")
    ] = None
    edge_type: Annotated[
        str | None, option("--edge-type", "COLUMN", "Column of types of edges; they are counted.")
    ] = None
    edge_features: Annotated[
        str | None,
        choice(
            "--edge-features",
            "choice",
            ("on", "off"),
            "Whether amounts and types of edges become features of nodes: 'on' (default), 'off'.",
        ),
    ] = None
    number: Annotated[str | None, _columns("--number", "Columns of numbers, by commas.")] = None
    category: Annotated[str | None, _columns("--category", "Columns of categories.")] = None
    text: Annotated[str | None, _columns("--text", "Columns of text: --text title,abstract.")] = (
        None
    )
    date: Annotated[
        str | None, _columns("--date", "Columns of dates; joined=day-first reads 31/12/2024.")
    ] = None
    vector: Annotated[str | None, _columns("--vector", "Columns of lists of numbers.")] = None
    ignore: Annotated[str | None, _columns("--ignore", "Columns that are not used.")] = None
    missing: Annotated[
        str | None,
        option("--missing", "WORDS", "Words for an empty cell. Default: NA,N/A,NaN,null,None."),
    ] = None
    unknown_label: Annotated[
        str | None,
        option("--unknown-label", "WORDS", "Labels that mean that the label is not known."),
    ] = None
    repeat: Annotated[
        str | None,
        choice(
            "--repeat",
            "rule for repeated edges",
            ("sum", "max", "mean", "count", "first"),
            "Weight of edges listed repeatedly: 'sum' (default with weights), 'max', 'mean', "
            "'first', 'count' (default without).",
        ),
    ] = None
    zero_weight: Annotated[
        str | None,
        choice(
            "--zero-weight",
            "rule",
            ("drop", "error"),
            "Edges of weight 0 are left out ('drop', default) or refused ('error').",
        ),
    ] = None
    absent_nodes: Annotated[
        str | None,
        choice(
            "--absent-nodes",
            "rule",
            ("error", "add", "drop"),
            "Edges and labels of nodes without a row: refused ('error', default), the nodes added "
            "('add'), or the rows left out ('drop').",
        ),
    ] = None
    id_pad: Annotated[
        str | None,
        choice(
            "--id-pad",
            "rule",
            ("exact", "strip"),
            "Whether 007 and 7 are two ids ('exact', default) or one ('strip').",
        ),
    ] = None
    directed: Annotated[bool, flag("--directed", "Not offered yet.")] = False
    check: Annotated[bool, flag("--check", "Read the tables, print the plan, and stop.")] = False

    def options(self) -> tables.TableOptions:
        """Return how the tables are to be read."""
        if self.directed:
            raise UsageError(
                "--directed is not offered yet: every edge counts in both directions. Leave the "
                "option out; amounts and types of edges are counted by direction all the same."
            )
        names: dict[str, Any] = {
            name: tuple(split_commas(getattr(self, name)))
            for name in ("number", "category", "text", "date", "vector", "ignore", "unknown_label")
        }
        roles = ("source", "target", "id", "label", "weight", "edge_type")
        rules = ("repeat", "zero_weight", "absent_nodes", "id_pad")
        return tables.TableOptions(
            **names,
            **{name: getattr(self, name) for name in (*roles, *rules)},
            missing=None if self.missing is None else tuple(split_commas(self.missing)),
            edge_features=None if self.edge_features is None else self.edge_features == "on",
        )

    @property
    def files(self) -> list[Path]:
        """Input files, in the order of the plan."""
        return [*self.edges, *(p for p in (self.nodes, self.labels) if p is not None)]


def read(
    flags: TableFlags,
    stage: Callable[[str, float], None],
    columns: recipe.Recipe | None = None,
    *,
    keep_sheet: bool = False,
) -> tables.Tables:
    """Read the tables and print the plan, also if there are faults; the faults are raised.

    With `keep_sheet` the cells of the table of nodes are kept.
    """
    faults_of_tables = tables.TableFaults  # imported here: in the clause below it may be too late
    try:
        result = tables.read_tables(
            flags.edges,
            flags.nodes,
            flags.labels,
            options=flags.options(),
            columns=columns,
            keep_sheet=keep_sheet,
            progress=lambda name, share: stage(f"reading {name}", share),
        )
    except faults_of_tables as faults:
        if faults.plan.lines:
            note(faults.plan)
        raise
    note(result.plan)
    return result


def takes_tables(command: Callable[..., None], *, edges_needed: bool = True) -> Callable[..., None]:
    """Give a command with the parameter `flags: TableFlags` the options of `TableFlags`.

    Without `edges_needed` the command can do without tables; then `flags.edges` may be empty.
    """
    names = [part.name for part in fields(TableFlags)]
    hints = get_type_hints(TableFlags, include_extras=True)

    @functools.wraps(command)
    def call(**values: Any) -> None:
        flags = TableFlags(**{name: values.pop(name) for name in names})
        command(**values, flags=flags)

    own = inspect.signature(command, eval_str=True).parameters.values()
    keyword = inspect.Parameter.KEYWORD_ONLY
    absent = inspect.Parameter.empty if edges_needed else None
    parameters = [
        inspect.Parameter(
            part.name,
            keyword,
            default=part.default if part.default is not MISSING else absent,
            annotation=hints[part.name],
        )
        for part in fields(TableFlags)
    ]
    first = [part.replace(kind=keyword) for part in own if part.name != "flags"]
    call.__signature__ = inspect.Signature([*parameters, *first])  # type: ignore[attr-defined]
    return call
