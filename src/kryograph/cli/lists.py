"""`kryograph systems`, `datasets` and `data fetch`: list systems and data sets, fetch files."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from kryograph.cli import options
from kryograph.cli.console import note, print_json, print_list
from kryograph.lazy import lazy_imports

with lazy_imports():
    from kryograph import data, registry
    from kryograph import systems as all_systems
    from kryograph.report import systems_markdown

data_app = typer.Typer(rich_markup_mode=None, help="Fetch the files of data sets.")


def systems(
    as_json: options.Json = False,
    markdown: Annotated[
        bool, options.flag("--markdown", "Print Markdown: all systems with all settings.")
    ] = False,
) -> None:
    """List the systems, each with a summary."""
    if markdown:
        print(systems_markdown.systems_markdown(), end="")
        return
    _print_registry(all_systems.SYSTEMS, "paper", as_json)


def datasets(as_json: options.Json = False) -> None:
    """List the data sets, each with a summary."""
    _print_registry(data.DATASETS, "citation", as_json)


@data_app.command("fetch", epilog=options.example("data fetch cora citeseer pubmed"))
def data_fetch(
    names: Annotated[
        list[str], typer.Argument(metavar="NAMES", help="Names of `kryograph datasets`.")
    ],
    data_dir: options.DataDir = None,
) -> None:
    """Fill the cache, so that later runs need no network.

    With --data-dir the files in that folder are checked instead.
    """
    for name, files in data.fetch(names, data_dir=data_dir, notify=note).items():
        note(f"{name}: {len(files.paths)} files in {files.folder}, from {files.origin}")


def _print_registry(named: registry.Registry[Any], origin: str, as_json: bool) -> None:
    """Print names and summaries, in JSON also the attribute `origin`, and unusable plug-ins."""
    if as_json:
        keys = ("summary", origin)
        print_json([{"name": name} | {k: getattr(e, k) for k in keys} for name, e in named.items()])
    else:
        print_list((name, entry.summary) for name, entry in named.items())
    for sentence in named.failures.values():
        note(sentence)
