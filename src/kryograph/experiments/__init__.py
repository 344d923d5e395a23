"""Result tables as data, and what their rows say."""

from __future__ import annotations

from pathlib import Path

TABLES = ("table1", "table2", "leak")
"""Names of the result tables that come with kryograph."""


def table_titles() -> dict[str, str]:
    """Title of each result table that comes with kryograph.

    Only the line `title = "…"` of each TOML file is read: the command line has these titles in its
    help, which answers before systems can be imported.
    """
    titles = {}
    for name in TABLES:
        text = Path(__file__).with_name(f"{name}.toml").read_text("utf-8")
        titles[name] = text.split('title = "', 1)[1].split('"', 1)[0]
    return titles
