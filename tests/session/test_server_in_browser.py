"""The page of a session in Chromium, with a real server; skipped where there is none."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from kryograph.session import server as serving
from kryograph.session.server import SessionServer
from kryograph.session.session import LabellingSession
from kryograph.session.subject import Subject
from tests.conftest import CHROMIUM
from tests.session.sessions import HOSTILE, K, cliques, lines, truth

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Opens = Callable[..., Any]

MANY = tuple(f"class {c:02}" for c in range(14))
NEXT = "(before) => document.getElementById('status').textContent !== before"


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Opens:
    """Open the page of a session; while it is open it may ask nobody but its server."""

    @contextmanager
    def open_page(
        subject: Subject, *, width: int = 1200, checks: float = 0.0, refused: int = 0
    ) -> Iterator[tuple[Page, LabellingSession]]:
        session = LabellingSession(tmp_path / "session", subject, checks=checks)
        with (
            SessionServer(session).running() as server,
            browser.new_context(viewport={"width": width, "height": 900}) as context,
        ):
            page = context.new_page()
            events: list[str] = []
            page.on("console", lambda message: events.append(message.text))
            page.on("pageerror", lambda error: events.append(str(error)))
            page.on("dialog", lambda dialog: events.append(f"dialog {dialog.message}"))
            page.on(
                "request",
                lambda request: (
                    request.url.startswith((f"{server.origin}/", "data:,", "blob:"))
                    or events.append(request.url)
                ),
            )
            page.goto(server.address)
            page.wait_for_selector("#main:visible")
            yield page, session
            assert len(events) == refused, events
        session.close()

    return open_page


def press(page: Page, key: str) -> None:
    """Press a key and wait until its answer is acknowledged."""
    before = page.locator("#status").inner_text()
    page.keyboard.press(key)
    page.wait_for_function(NEXT, arg=before)


def label(page: Page, count: int = 1) -> list[str]:
    """Label the displayed nodes by keys; returns their names."""
    names = []
    for _ in range(count):
        names.append(page.locator("#name").inner_text())
        press(page, "1" if truth(names[-1]) == "cat" else "2")
    return names


def test_keys_label_skip_and_undo(opened: Opens) -> None:
    with opened(cliques(known=True)) as (page, session):
        names = label(page, 3)
        assert "is cat" in (words := page.locator("#status").inner_text()) or "is dog" in words
        assert f"Saved: {names[-1]}" in words
        press(page, " ")
        assert page.locator("#progress").inner_text() == (
            "3 labels from you, 11 of 16 nodes without one, 1 skipped"
        )
        for key, expected in (("u", None), ("Backspace", names[2]), ("U", names[1])):
            press(page, key)
            if expected is not None:
                assert page.locator("#name").inner_text() == expected
        assert page.locator("#progress").inner_text().startswith("1 label from you, 13 of 16")
        press(page, "u")
        page.keyboard.press("u")
        page.wait_for_function(
            "() => document.getElementById('status').textContent === 'There is nothing to undo.'"
        )
        page.keyboard.press("7")
        assert page.locator("#status").inner_text() == "There is no class 7."
        ops = [line["op"] for line in lines(session.folder)]
        assert ops == ["label"] * 3 + ["skip"] + ["undo"] * 4
        assert "#" not in page.url  # the token is out of the address, and reloading works
        page.reload()
        page.wait_for_selector("#main:visible")


def test_keys_do_nothing_in_fields_with_modifiers_or_while_held(opened: Opens) -> None:
    with opened(cliques(known=True)) as (page, session):
        for keys in ("Control+1", "Alt+1", "Meta+2"):
            page.keyboard.press(keys)
        page.keyboard.press("/")
        page.wait_for_selector("#find[open]")
        page.keyboard.type("1u n2")
        assert page.locator("#query").input_value() == "1u n2"
        page.keyboard.press("Escape")
        page.wait_for_selector("#find", state="hidden")
        assert session.journal.entries == []
        page.keyboard.down("1")
        page.wait_for_function(NEXT, arg="")
        for _ in range(5):
            page.keyboard.down("1")  # Chromium marks it as a repetition
        page.keyboard.up("1")
        press(page, " ")
        assert [line["op"] for line in lines(session.folder)] == ["label", "skip"]


def test_a_new_class_gets_the_next_digit(opened: Opens) -> None:
    with opened(cliques(known=True)) as (page, session):
        node = page.locator("#name").inner_text()
        page.keyboard.press("n")
        page.wait_for_selector("#new[open]")
        page.keyboard.type("owl & <b>co</b>")
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.querySelectorAll('#classes button').length === 3")
        assert page.locator("#name").inner_text() == node
        press(page, "3")
        assert lines(session.folder)[-1]["label"] == "owl & <b>co</b>"
        assert page.locator("#classes button").nth(2).inner_text().split("\n")[0] == "3"
        assert page.locator("#classes b").count() == 0


def test_names_are_text_never_markup(opened: Opens) -> None:
    names = [f"{HOSTILE} {i}" for i in range(2 * K)]
    subject = cliques(names=names)
    hostile = Subject(subject.graph, subject.labels, (HOSTILE, "</script><script>alert(2)"))
    with opened(hostile) as (page, _):
        assert page.locator("#name").inner_text().startswith(HOSTILE)
        press(page, "1")
        press(page, "2")
        assert HOSTILE in page.locator("#neighbours").inner_text()
        page.keyboard.press("/")
        page.keyboard.type("onerror")
        page.wait_for_selector("#hits button")
        assert page.locator("main img, main script, dialog img").count() == 0


def test_a_node_is_found_and_labelled_by_keyboard_alone(opened: Opens) -> None:
    with opened(cliques(known=True)) as (page, session):
        first = page.locator("#name").inner_text()
        page.keyboard.press("/")
        page.keyboard.type("d6")
        page.wait_for_selector("#hits button")
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.getElementById('name').textContent === 'd6'")
        page.keyboard.press("Escape")
        page.wait_for_function(
            "(name) => document.getElementById('name').textContent === name", arg=first
        )
        # Tab reaches every class and command, and Enter and Space act on what has the focus.
        reached = []
        for _ in range(8):
            page.keyboard.press("Tab")
            reached.append(page.evaluate("() => document.activeElement.innerText.split('\\n')[0]"))
        assert any("Find" in text for text in reached)
        assert any("Skip" in text for text in reached)
        page.locator("#classes button").first.focus()
        press(page, "Enter")
        press(page, " ")
        assert [line["label"] for line in lines(session.folder)] == ["cat", "cat"]
        focus = page.evaluate("() => document.activeElement.dataset.name")
        assert focus == "cat"  # it stays where it was


def test_more_than_ten_classes_are_filtered_by_typing(opened: Opens) -> None:
    subject = cliques()
    with opened(Subject(subject.graph, subject.labels, MANY)) as (page, session):
        assert page.locator("#classes button").count() == 14
        assert page.locator("#classes kbd").count() == 10
        press(page, "0")
        page.keyboard.press("f")
        page.keyboard.type("s 12")
        assert page.locator("#classes button").count() == 1
        press(page, "Enter")
        assert page.locator("#classes button").count() == 14
        assert [line["label"] for line in lines(session.folder)] == ["class 09", "class 12"]


def test_the_page_has_roles_and_names_for_a_screen_reader(opened: Opens) -> None:
    with opened(cliques(known=True)) as (page, _):
        node = page.locator("#name").inner_text()
        page.get_by_role("heading", name=node, exact=True).wait_for()
        page.get_by_role("group", name="Classes").wait_for()
        assert page.get_by_role("group").get_by_role("button").count() == 2
        assert page.get_by_role("status").count() == 1
        label(page)
        assert page.get_by_role("status").inner_text().startswith(f"Saved: {node}")
        for name in ("Skip", "Undo", "New class", "Find", "Help"):
            page.get_by_role("button", name=name).first.wait_for()
        page.get_by_role("complementary", name="State of the session").wait_for()
        page.get_by_role("button", name="Help").click()
        page.get_by_role("dialog", name="Help").wait_for()


@pytest.mark.parametrize("width", [375, 1200])
def test_nothing_is_wider_than_the_screen(opened: Opens, width: int) -> None:
    names = [f"{'x' * 90} {i}" for i in range(2 * K)]
    subject = cliques(names=names)
    wide = Subject(subject.graph, subject.labels, ("y" * 60, "z " * 40))
    with opened(wide, width=width) as (page, session):
        session.positions = np.random.default_rng(0).random((2 * K, 2))
        session.version += 1
        page.wait_for_function("() => document.getElementById('map').dataset.drawn")
        page.locator("#classes button").first.click()
        page.wait_for_function(NEXT, arg="")
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        smallest = page.evaluate(
            "() => Math.min(...[...document.querySelectorAll('button')].map("
            "b => b.offsetHeight || 99))"
        )
        assert smallest >= 40  # a finger hits it
        page.keyboard.press("?")
        assert page.locator("#help").bounding_box()["width"] <= width  # type: ignore[index]


def test_a_hidden_guess_is_told_after_the_answer(opened: Opens) -> None:
    with opened(cliques(known=True), checks=1.0) as (page, _):
        assert page.locator("#guess").is_hidden()
        assert "perhaps" not in page.locator("#neighbours").inner_text()
        label(page)
        assert "The model had guessed" in page.locator("#status").inner_text()


def test_a_displayed_guess_has_reasons_and_can_be_hidden(opened: Opens) -> None:
    with opened(cliques(known=True)) as (page, _):
        label(page)
        assert page.locator("#guess-line").inner_text().count("%") == 2
        page.locator("#reasons summary").click()
        page.wait_for_selector("#reason-tables table")
        page.locator("#hide").check()
        assert page.locator("#guess").is_hidden()
        assert "perhaps" not in page.locator("#neighbours").inner_text()


def test_the_map_fills_with_colour_and_picks_a_node(opened: Opens) -> None:
    with opened(cliques(known=True)) as (page, session):
        at = np.array([[k % 4, k // 4] for k in range(2 * K)], dtype=float)
        session.positions = at
        session.version += 1
        page.wait_for_function("() => document.getElementById('map').dataset.drawn === '0'")
        canvas = page.locator("#map")
        assert canvas.get_attribute("aria-label") == "Map of the graph: 2 nodes of 16 with a label"
        before = canvas.screenshot()
        label(page)
        page.wait_for_function("() => document.getElementById('map').dataset.drawn === '1'")
        assert canvas.get_attribute("aria-label") == "Map of the graph: 3 nodes of 16 with a label"
        assert canvas.screenshot() != before
        canvas.click(position={"x": 13, "y": 13})
        page.wait_for_function("() => document.getElementById('name').textContent === 'c0'")


def test_an_answer_waits_for_the_server_and_arrives_once(
    opened: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(cliques(known=True), refused=2) as (page, session):
        original = session.journal.append
        failures = [1, 1]

        def append(entry: Any) -> None:
            if failures:
                failures.pop()
                raise serving.NotSavedError("not saved: no room on the disk (journal).")
            original(entry)

        monkeypatch.setattr(session.journal, "append", append)
        name = page.locator("#name").inner_text()
        page.keyboard.press("1")
        page.wait_for_function("() => document.getElementById('unsaved').textContent !== ''")
        assert (
            page.locator("#unsaved").inner_text().startswith("1 not saved yet: not saved: no room")
        )
        assert page.locator("#name").inner_text() == name
        page.keyboard.press("2")  # ignored while the last one is not acknowledged
        page.wait_for_function("() => document.getElementById('unsaved').textContent === ''")
        page.wait_for_function(
            "(name) => document.getElementById('name').textContent !== name", arg=name
        )
        assert [line["label"] for line in lines(session.folder)] == ["cat"]


def test_without_the_token_the_page_says_what_to_do(browser: Browser, tmp_path: Path) -> None:
    session = LabellingSession(tmp_path, cliques())
    with SessionServer(session).running() as server, browser.new_context() as context:
        page = context.new_page()
        page.goto(server.origin)
        page.wait_for_selector("#stopped:visible")
        assert "everything after the #" in page.locator("#stopped").inner_text()
        page.goto(f"{server.origin}/#wrong")
        page.reload()
        page.wait_for_function(
            "() => document.getElementById('stopped').textContent.startsWith('The token')"
        )
    session.close()


REBOUND = """async () => {
  const answers = [];
  for (const path of ["/", "/api/item"]) {
    const response = await fetch(path).catch(() => null); // the policy of the answer forbids it
    const text = response && (await response.text());
    answers.push(response && [response.status, text.includes('"neighbours":')]);
  }
  return answers;
}"""


def open_rebound(port: int) -> tuple[int, list[Any]]:
    """Open http://evil.test, a name that leads to this machine; status, and what its page reads."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        rules = "--host-resolver-rules=MAP evil.test 127.0.0.1"
        chromium = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", rules]
        )
        try:
            page = chromium.new_page()
            response = page.goto(f"http://evil.test:{port}/")
            assert response is not None
            return response.status, page.evaluate(REBOUND)
        finally:
            chromium.close()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium to open the page with")
@pytest.mark.parametrize("checked", [True, False], ids=["checked", "control"])
def test_a_rebound_name_reads_nothing(
    tmp_path: Path, checked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not checked:  # the attack is real: without the checks it reads the names of nodes
        monkeypatch.setattr(serving, "protected", lambda app, **_: app)
    session = LabellingSession(tmp_path, cliques(known=True))
    with SessionServer(session).running() as server:
        in_thread: list[tuple[int, list[Any]]] = []
        # A second playwright cannot run in the thread of the fixture's.
        thread = threading.Thread(target=lambda: in_thread.append(open_rebound(server.port)))
        thread.start()
        thread.join()
        [(status, answers)] = in_thread
    session.close()
    if checked:
        assert status == 400
        assert answers == [None, None]
    else:
        assert status == 200
        assert answers == [[200, False], [200, True]]


@pytest.mark.slow
@pytest.mark.parametrize("checked", [True, False], ids=["checked", "control"])
def test_another_site_writes_nothing(
    browser: Browser, tmp_path: Path, checked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not checked:
        monkeypatch.setattr(serving, "protected", lambda app, **_: app)
        monkeypatch.setattr(serving, "read_body", read_anything)

    class Evil(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!DOCTYPE html><title>evil</title>")

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    session = LabellingSession(tmp_path, cliques(known=True))
    evil = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    thread = threading.Thread(target=evil.serve_forever, daemon=True)
    thread.start()
    with SessionServer(session).running() as server, browser.new_context() as context:
        page = context.new_page()
        page.goto(f"http://localhost:{evil.server_address[1]}/")
        page.evaluate(
            """async (url) => {
              const body = JSON.stringify({ id: "evil", op: "label", node: "c1", label: "dog" });
              await fetch(url, { method: "POST", mode: "no-cors", body }).catch(() => null);
            }""",
            f"{server.origin}/api/labels",
        )
    evil.shutdown()
    evil.server_close()
    thread.join()
    written = [line["id"] for line in lines(tmp_path)]
    session.close()
    assert written == ([] if checked else ["evil"])


async def read_anything(request: Any) -> Any:
    return await request.json()
