"""A page of a labelled graph in a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kryograph.labelling.labelled_graph import LabelledGraph
from tests.report.labelled_graphs import page_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Opens = Callable[..., Any]
"""Opens the page of a labelled graph; other arguments are those of a browser context."""


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Opens:
    """Open a page; while it is open it may log nothing and load nothing but itself."""

    @contextmanager
    def open_page(labelled: LabelledGraph, width: int = 1200, **how: Any) -> Iterator[Page]:
        path = tmp_path / "report.html"
        path.write_text(page_of(labelled), encoding="utf-8")
        with browser.new_context(viewport={"width": width, "height": 900}, **how) as context:
            page = context.new_page()
            events: list[str] = []
            page.on("console", lambda message: events.append(message.text))
            page.on("pageerror", lambda error: events.append(str(error)))
            page.on("dialog", lambda dialog: events.append(f"dialog {dialog.message}"))
            page.on("request", lambda request: events.append(f"request {request.url}"))
            page.goto(path.as_uri())
            page.wait_for_function("() => 'ms' in document.getElementById('canvas').dataset")
            yield page
            own = [one for one in events if not one.startswith("request blob:")]  # a download
            assert own == [f"request {path.as_uri()}"]

    return open_page
