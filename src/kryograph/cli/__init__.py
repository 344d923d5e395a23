"""The command line.

Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 failed,
2 misused, 130 interrupted.

The modules that a command computes with are imported lazily, so that help, usage errors and shell
completion load nothing but typer.
"""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Annotated

import typer
from typer._completion_classes import completion_init
from typer.completion import install_callback, show_callback
from typer.core import TyperGroup

import kryograph
from kryograph.cli import (
    bench,
    explain,
    figures,
    fit,
    label,
    lists,
    options,
    reproduce,
    results,
    train,
    tune,
)
from kryograph.cli.console import note
from kryograph.errors import KryographError

Command = Callable[..., None]

COMMANDS: dict[str, tuple[Command | typer.Typer, str]] = {
    "fit": (fit.fit_command, "--edges edges.csv --nodes nodes.csv --label topic --out run"),
    "explain": (explain.explain, "run ann"),
    "predict": (fit.predict, "run/model --edges e.csv --nodes n.csv --out new.csv"),
    "suggest": (fit.suggest, "run --count 5"),
    "label": (
        label.label,
        "--edges edges.csv --nodes nodes.csv --label topic --session s",
    ),
    "demo": (train.demo, ""),
    "train": (train.train_system, "--dataset citeseer --label-rate 1% --seeds 10"),
    "tune": (tune.tune, "truncated-krylov --label-rate 1% --timeout 30m"),
    "reproduce": (reproduce.reproduce_app, "table2 --columns 'Cora 1%' --runs 3"),
    "results": (results.results, "table2 --columns 'Cora 1%' --html table2.html"),
    "compare": (results.compare, "truncated-krylov gcn --column 'Cora 1%'"),
    "theory": (figures.theory_figure, "--datasets cora --seeds 5"),
    "depth": (figures.depth_figure, "--depths 1,4,16 --seeds 5"),
    "systems": (lists.systems, "--json"),
    "datasets": (lists.datasets, "--json"),
    "data": (lists.data_app, "fetch cora citeseer pubmed"),
    "bench": (bench.bench_app, "epoch --quick"),
}
"""Commands in the order of use, each with the arguments of its example."""


class OrderedGroup(TyperGroup):
    """Group that lists its commands in the order of `COMMANDS`; typer lists groups last."""

    def list_commands(self, ctx: object) -> list[str]:
        return [name for name in COMMANDS if name in self.commands]


def build_app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Build the command line with some of its commands."""
    built = typer.Typer(
        name="kryograph",
        cls=OrderedGroup,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
        add_completion=False,  # `start` declares its options in a way that needs no pydantic
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    built.callback(
        invoke_without_command=True,
        epilog="Options and an example of a command: kryograph COMMAND -h",
    )(start)
    for name in names:
        command, arguments = COMMANDS[name]
        example = options.example(f"{name} {arguments}")
        if isinstance(command, typer.Typer):
            built.add_typer(command, name=name, epilog=example)
        else:
            built.command(name, epilog=example)(command)
    return built


def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    install_completion: Annotated[
        bool,
        typer.Option(
            "--install-completion",
            help="Install completion for the current shell.",
            callback=install_callback,
        ),
    ] = False,
    show_completion: Annotated[
        bool,
        typer.Option(
            "--show-completion",
            help="Print the completion script for the current shell.",
            callback=show_callback,
        ),
    ] = False,
) -> None:
    """Label the nodes of a graph when only a handful of labels are known."""
    if version:
        print(kryograph.__version__)
    elif context.invoked_subcommand is None:
        print(context.get_help())


app = build_app()


def main() -> None:
    """Run the command line; an error is one sentence on standard error and an exit code."""
    interrupts = _note_interrupts()
    try:
        _run()
    except Exception:
        # An import that is interrupted may leave half a module, and other errors because of it.
        if not interrupts:
            raise
        sys.exit(130)


def _run() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without "×" gets a "?"
            stream.reconfigure(errors="replace")
    # typer takes 0.1 s to build all commands, so that only those are built that may be called.
    first = sys.argv[1] if len(sys.argv) > 1 else ""
    names = [first] if first in COMMANDS else [] if first == "--version" else COMMANDS
    options.use_plain_values()
    completion_init()
    try:
        code = build_app(names)(prog_name="kryograph", standalone_mode=False)
    except KryographError as error:
        _fail(str(error), error.exit_code)
    except typer.TyperException as error:
        _fail(error.format_message(), error.exit_code)
    except OSError as error:  # a folder that may not be read, a pipe that was closed
        _fail(f"{error.strerror or error}: {error.filename or 'standard output'}.", 1)
    except (MemoryError, RuntimeError) as error:
        # By its name: torch, whose error it is, may not be imported.
        out_of_memory = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
        if not out_of_memory and "allocate memory" not in str(error):
            raise
        _fail("Out of memory: try smaller settings, such as --set hidden=32.", 1)
    sys.exit(code if isinstance(code, int) else 0)


def _note_interrupts() -> list[int]:
    """Return a list to which every Ctrl-C is added before it is raised as usual."""
    interrupts: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else a parent ignores it
        signal.signal(signal.SIGINT, interrupt)
    return interrupts


def _fail(message: str, code: int) -> None:
    note(f"kryograph: {message}")
    sys.exit(code)
