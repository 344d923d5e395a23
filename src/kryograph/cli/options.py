"""Options of the commands: name, help text and check, each declared once, and their conversion.

typer converts every value, even that of `--help`, with pydantic. Its import takes 0.2 s: longer
than everything else in the answer to a usage error. `PlainValue` does without it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
import typer.core

from kryograph.errors import UsageError, unknown
from kryograph.experiments import TABLES
from kryograph.text import parse_duration, parse_rate
from kryograph.training.stopping import RULES

STORE = Path("results") / "runs.sqlite"
"""Default results store, relative to the current folder."""

FIGURE_FOLDER = Path("figures")
"""Default folder of figures, relative to the current folder."""

CITATION_GRAPHS = "cora,citeseer,pubmed"
"""Default data sets of the commands that take several."""


TESTED_TYPER = "0.29."
"""First part of the version of typer whose internals are known."""

EXPECTED = {bool: "a flag", int: "a whole number", float: "a number", str: "text", Path: "a path"}
"""Types of options, and the words for their values in messages."""


class PlainValue:
    """Conversion of the value of an option by its type alone; typer calls `coerce`."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def coerce(self, value: Any, param: Any, ctx: object) -> Any:
        """Convert a value, or each of several; None, an option that was not given, stays None."""
        if param.multiple or param.nargs == -1:
            return [self._convert(item, param) for item in value or ()]
        return None if value is None else self._convert(value, param)

    def _convert(self, value: Any, param: Any) -> Any:
        try:
            return self.kind(value)
        except ValueError:
            message = f"{param.opts[0]} takes {EXPECTED[self.kind]}, not {value!r}."
            raise UsageError(message) from None


def use_plain_values() -> None:
    """Make typer convert values by `PlainValue` wherever the type is one of `EXPECTED`.

    Other versions of typer than the tested one are left alone: they work, and start later.
    """
    if not typer.__version__.startswith(TESTED_TYPER):
        return
    core: Any = typer.core
    with_pydantic = core.build_runtime_param

    def build(descriptor: Any) -> Any:
        annotation = descriptor.annotation
        kind = (get_args(annotation) or (annotation,))[0]
        return PlainValue(kind) if kind in EXPECTED else with_pydantic(descriptor)

    core.build_runtime_param = build


def between_0_and_1(option: typer.CallbackParam, value: float) -> float:
    """Check that an option holds a fraction, without 0 and 1."""
    if not 0 < value < 1:
        raise UsageError(f"{option.opts[0]} must lie between 0 and 1; it is {value:g}.")
    return value


def option(name: str, metavar: str, help: str, check: Callable[..., Any] | None = None) -> Any:
    """Declare an option with a value; `metavar` stands for the value in the help."""
    return typer.Option(name, metavar=metavar, help=help, callback=check)


def argument(metavar: str, help: str, check: Callable[..., Any] | None = None) -> Any:
    """Declare an argument; `metavar` is its name in the help."""
    return typer.Argument(metavar=metavar, help=help, callback=check)


def flag(name: str, help: str) -> Any:
    """Declare an option without a value."""
    return typer.Option(name, help=help)


def count(name: str, help: str, least: int = 1) -> Any:
    """Declare an option whose value is a whole number from `least`."""

    def check(value: int | None) -> int | None:
        if value is not None and value < least:
            raise UsageError(f"{name} must be at least {least}; it is {value}.")
        return value

    return option(name, "N", help, check)


def choice(name: str, kind: str, values: Collection[str], help: str) -> Any:
    """Declare an option whose value is one of a few words; `kind` says what they are."""

    def check(value: str | None) -> str | None:
        if value is not None and value not in values:
            raise unknown(kind, value, values)
        return value

    def complete(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    return typer.Option(name, help=help, metavar="NAME", callback=check, autocompletion=complete)


def settings_choice(help: str) -> Any:
    """Declare the option that says where the settings of runs come from."""
    return choice("--settings", "kind of settings", ("default", "paper", "tuned", "best"), help)


def existing(exists: Callable[[Path], bool], message: str) -> Callable[[Path | None], Path | None]:
    """Build the check of an input path, which is done before anything is imported to read it."""

    def check(value: Path | None) -> Path | None:
        if value is not None and not exists(value):
            raise UsageError(message.format(value))
        return value

    return check


existing_file = existing(os.path.exists, "There is no file {}.")
existing_folder = existing(os.path.isdir, "There is no folder {}.")
data_folder = existing(os.path.isdir, "The data folder {} does not exist.")


def known_table(value: str) -> str:
    """Check that a result table exists: a name, or a TOML file."""
    if value.endswith(".toml"):
        existing_file(Path(value))
    elif value not in TABLES:
        raise unknown("table", value, TABLES)
    return value


def known_tables(values: list[str] | None) -> list[str] | None:
    """Check that result tables exist; CSV files may stand among them, after `--import`."""
    for value in values or ():
        if not value.endswith(".csv"):
            known_table(value)
    return values


def readable(read: Callable[[str], object]) -> Callable[[str | None], str | None]:
    """Build the check of a text that the command reads later by the same function."""

    def check(value: str | None) -> str | None:
        if value is not None:
            read(value)
        return value

    return check


def read_numbers(name: str, text: str) -> list[int]:
    """Read whole numbers that are separated by commas, without repeated ones.

    >>> read_numbers("--depths", "1, 4,4")
    [1, 4]
    """
    try:
        return list(dict.fromkeys(int(part) for part in split_commas(text)))
    except ValueError:
        message = f"{name} takes whole numbers with commas, such as 3,10,20; it is {text!r}."
        raise UsageError(message) from None


def numbers(name: str, help: str) -> Any:
    """Declare an option whose value is read by `read_numbers`."""
    return option(name, "NUMBERS", help, readable(partial(read_numbers, name)))


def time_limit(name: str, help: str) -> Any:
    """Declare an option whose value is a duration, such as 10m."""
    return option(name, "TIME", help, readable(parse_duration))


def check_store(store: Path) -> None:
    """Check that there is a results store to read, or a file of exported runs in its folder."""
    if not store.exists() and not any(store.parent.glob("*.csv")):
        raise UsageError(
            f"There is no results store {store} yet: fill it with `kryograph reproduce table2`, "
            "add exported runs with `kryograph results --import FILE.csv`, or name another with "
            "--store."
        )


def split_commas(texts: str | Sequence[str] | None) -> list[str]:
    """Split the values of an option that takes several, given at once with commas or one by one.

    None, an option that was not given, is an empty list.

    >>> split_commas(["gcn, gat", "lp"])
    ['gcn', 'gat', 'lp']
    """
    values = [texts] if isinstance(texts, str) else texts or ()
    parts = (part.strip() for value in values for part in value.split(","))
    return [part for part in parts if part]


def example(arguments: str) -> str:
    """Build the last lines of the help of a command; the example is not wrapped."""
    return f"\b\nExample:\n  kryograph {arguments}".rstrip()


# Output

Json = Annotated[bool, flag("--json", "Print JSON for programs.")]
Markdown = Annotated[bool, flag("--markdown", "Print Markdown for documents.")]
Overwrite = Annotated[bool, flag("--overwrite", "Replace the output of an earlier command.")]
FigureFolder = Annotated[Path, option("--out", "FOLDER", "Folder to write the files into.")]

# Data sets and splits

DatasetName = Annotated[
    str, option("--dataset", "NAME", "A name of `kryograph datasets`, or a path.")
]
DatasetNames = Annotated[
    str, option("--datasets", "NAMES", "Names or paths of data sets, separated by commas.")
]
DataDir = Annotated[
    Path | None,
    option(
        "--data-dir", "FOLDER", "Folder with the ind.* files (or set KRYOGRAPH_DATA).", data_folder
    ),
]
SplitName = Annotated[str | None, option("--split", "NAME", "'public', the default.")]
LabelRate = Annotated[
    str | None,
    option(
        "--label-rate",
        "RATE",
        "Random splits with this share of each class, rounded up: '1%'.",
        readable(parse_rate),
    ),
]
PerClass = Annotated[int | None, count("--per-class", "Random splits with N labels of each class.")]

# Systems and their settings

SystemName = Annotated[str, option("--system", "NAME", "A name of `kryograph systems`.")]
SystemArgument = Annotated[str, argument("SYSTEM", "A name of `kryograph systems`.")]
Changes = Annotated[
    list[str] | None, option("--set", "NAME=VALUE", "Change a setting; may be repeated.")
]
OperatorName = Annotated[
    str | None,
    option(
        "--operator",
        "NAME",
        "Diffusion operator: 'sym' (default), or 'rw' (with --settings paper).",
    ),
]
RunSettings = Annotated[
    str,
    settings_choice(
        "'default'; 'paper': published for this scenario; 'tuned': the result of a search for "
        "this scenario; 'best': tuned if there are any, else default.",
    ),
]
SystemNames = Annotated[
    list[str] | None, option("--systems", "NAMES", "Only these systems: 'gcn,gat'.")
]
ColumnNames = Annotated[
    list[str] | None, option("--columns", "NAMES", "Only these columns: 'Cora 1%,PubMed 0.1%'.")
]
TableSettings = Annotated[
    str,
    settings_choice(
        "'default'; 'paper': published for the column; 'tuned': the result of a search for the "
        "column; 'best': tuned, else default; in columns with validation labels these choose "
        "among default, paper and all tuned settings.",
    ),
]

# Runs

Seed = Annotated[int, count("--seed", "Seed of every random draw.", least=0)]
Seeds = Annotated[int, count("--seeds", "Number of runs; their seeds are 0, 1, …")]
PointSeeds = Annotated[int, count("--seeds", "Number of runs for each point; seeds 0, 1, …")]
Runs = Annotated[int, count("--runs", "Number of runs of each cell; their seeds are 0, 1, …")]
Jobs = Annotated[int | None, count("--jobs", "Number of runs at a time. Default: one per core.")]
AutomaticJobs = Annotated[
    int | None, count("--jobs", "Number of runs at a time. Default: chosen by their cost.")
]
Device = Annotated[str, option("--device", "NAME", "Torch device to train on, such as 'cuda'.")]
Precision = Annotated[
    str,
    choice("--precision", "precision", ("float32", "bfloat16"), "'float32' or 'bfloat16' (mixed)."),
]
ProtocolName = Annotated[
    str,
    choice(
        "--protocol",
        "protocol",
        ("validation", "no-validation"),
        "Whether training may see validation labels: 'validation' or 'no-validation'.",
    ),
]
StopRuleName = Annotated[
    str,
    choice(
        "--stop",
        "stop rule",
        RULES,
        "Rule that ends a run: "
        + "; ".join(f"'{name}', {rule.summary}" for name, rule in RULES.items())
        + ".",
    ),
]
Retry = Annotated[bool, flag("--retry", "Repeat the runs that failed.")]
TimePerRun = Annotated[
    str, time_limit("--budget", "Leave out published settings with a longer predicted run.")
]
StoreFile = Annotated[
    Path,
    typer.Option(
        "--store",
        metavar="FILE",
        envvar="KRYOGRAPH_STORE",
        help="Results store: the file of all finished runs.",
    ),
]
Quick = Annotated[bool, flag("--quick", "A small size, for a first look.")]

# Result tables

TABLE_HELP = "table1, table2, leak, or a TOML file."
TableNames = Annotated[list[str] | None, argument("TABLE", TABLE_HELP, known_tables)]
TableName = Annotated[str, option("--table", "TABLE", TABLE_HELP, known_table)]
TableFile = Annotated[
    Path, argument("FILE", "TOML file with title, source, protocol, columns, …", existing_file)
]
ImportedFiles = Annotated[
    list[Path] | None,
    option(
        "--import",
        "FILE",
        "Add the runs of exported CSV files to the store, then stop.",
        lambda values: [existing_file(value) for value in values or ()],
    ),
]

# A person's own graph

ModelFolder = Annotated[Path, argument("MODEL", "Model folder of a fit.", existing_folder)]
FittedFolder = Annotated[Path, argument("FOLDER", "Folder of a fit.", existing_folder)]
Coverage = Annotated[
    float,
    option(
        "--coverage",
        "P",
        "Probability that a prediction set holds the true class.",
        between_0_and_1,
    ),
]

# Figures

Layers = Annotated[int | None, count("--layers", "Number of layers. Default: 100.")]
Repetitions = Annotated[int | None, count("--repetitions", "Number of draws. Default: 20.")]
Activations = Annotated[
    str | None, option("--activations", "NAMES", "Activations, separated by commas.")
]
