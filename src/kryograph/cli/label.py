"""`kryograph label`: label nodes in the browser, and predict all others after every answer."""

from __future__ import annotations

import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from kryograph.cli import table_options
from kryograph.cli.console import note, stages
from kryograph.cli.options import argument, count, existing_folder, flag, option, split_commas
from kryograph.cli.table_options import TableFlags, takes_tables
from kryograph.errors import UsageError
from kryograph.lazy import lazy_imports
from kryograph.text import plural

with lazy_imports():
    from kryograph import systems
    from kryograph.labelling import run_folder
    from kryograph.session import labels_table, server, session, subject

FAST = "fast"
"""Name that stands for no full model beside the fast one."""


def _share(value: float) -> float:
    """Check that a share lies between 0 and 1, which are allowed."""
    if not 0 <= value <= 1:
        raise UsageError(f"--checks must be from 0 to 1; it is {value:g}.")
    return value


def _label(
    flags: TableFlags,
    run: Annotated[
        Path | None, argument("FOLDER", "Folder of a fit, instead of tables.", existing_folder)
    ] = None,
    folder: Annotated[
        Path | None,
        option("--session", "FOLDER", "Folder of the session; one that is there is continued."),
    ] = None,
    port: Annotated[int, count("--port", "Port on this machine; 0 for a free one.", least=0)] = 0,
    no_browser: Annotated[bool, flag("--no-browser", "Only print the address.")] = False,
    by: Annotated[str, option("--by", "NAME", "Your name, for every label.")] = "",
    classes: Annotated[
        list[str] | None, option("--classes", "NAMES", "Classes, if no node has a label: a,b,c.")
    ] = None,
    checks: Annotated[
        float,
        option("--checks", "SHARE", "Share of nodes drawn at random to measure accuracy.", _share),
    ] = 0.2,
    system_name: Annotated[
        str | None,
        option(
            "--system",
            "NAME",
            "System of the full model, fitted in the background, or 'fast' for none. Default: that "
            "of the fit, or else the pool.",
        ),
    ] = None,
) -> None:
    """Label nodes in the browser, and watch the others change.

    All nodes are predicted again after every answer, which is on the disk before the next node
    comes. labels.csv goes into `fit --labels`. Accuracy is that on nodes drawn at random, predicted
    before their label was known; the last 50 count, because earlier ones were predicted by weaker
    models.
    """
    _check_installed()
    if (run is None) == (not flags.edges and flags.nodes is None):
        raise UsageError(
            "What is to be labelled? Name the folder of a fit, or tables with --edges and --nodes."
        )
    chosen = None
    if system_name not in (None, FAST):
        chosen = systems.system(system_name)
    with stages() as stage:
        if run is not None:
            topic = subject.Subject.of_run(run_folder.load_run(run))
        else:
            tables = table_options.read(flags, stage, keep_sheet=True)
            for sentence in tables.notes:
                note(sentence)
            topic = subject.Subject.of_tables(tables, flags.label)
        topic = topic.with_classes(split_commas(classes))
        if flags.check:
            return
        if folder is None:
            raise UsageError("Where are the labels to be kept? Say --session FOLDER.")
        stage("preparing predictions", 0.0)
        current = session.LabellingSession(folder, topic, by=by, checks=checks)
    try:
        serving = server.SessionServer(current, port)
        current.start_background(
            chosen if chosen is not None else topic.system, automatic=system_name != FAST
        )
        if current.journal.torn:
            note(
                f"The last line of {current.journal.path} was not complete, so it was never "
                f"acknowledged: {plural(current.journal.torn, 'byte')} set aside."
            )
        if current.continued:
            note(f"Continued: {plural(current.continued, 'label')} of this session.")
        print(serving.address, flush=True)
        note("Ctrl-C stops and writes labels.csv.")
        if not no_browser:
            webbrowser.open(serving.write_link().absolute().as_uri())
        serving.run()
    finally:
        number = len(current.decisions.labelled)
        current.close()
    print(f"{plural(number, 'label')}: {folder / labels_table.LABELS_FILE}")


def _check_installed() -> None:
    """Check that the server can be imported."""
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"Labelling in the browser needs {' and '.join(missing)}: install kryograph[label]."
        )


label = takes_tables(_label, edges_needed=False)
