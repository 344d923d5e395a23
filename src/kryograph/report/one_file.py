"""One file: a page that holds its style and script, and may load or run nothing else."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from kryograph.report.markup import Safe, safe


def asset(name: str) -> str:
    """The text of a file that comes with the pages."""
    return files("kryograph.report").joinpath("assets", name).read_text("utf-8")


def policy(style: str, script: str) -> Safe:
    """A Content-Security-Policy that names the digests of the two, and forbids all else."""

    def digest(content: str) -> str:
        return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()

    return safe(
        f"default-src 'none'; style-src 'sha256-{digest(style)}'; "
        f"script-src 'sha256-{digest(script)}'; base-uri 'none'; form-action 'none'"
    )
