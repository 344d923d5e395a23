"""Server of a session: routes over HTTP on 127.0.0.1, and the loop that serves them."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from kryograph.errors import KryographError, UsageError
from kryograph.files import read_text, replaced
from kryograph.session.item import (
    describe_colours,
    describe_map,
    describe_session,
    explain_guess,
    search_nodes,
)
from kryograph.session.journal import OPERATIONS, NotSavedError
from kryograph.session.page import page_and_policy
from kryograph.session.security import HOSTS, TOKEN_BYTES, failure, protected
from kryograph.session.session import LabellingSession, PageAnswer

TOKEN, LINK = "token", "open.html"
"""Files in the folder of a session: its token, and a link to its page."""

MOST_BYTES = 64 * 1024
"""Largest body of a request."""

LONGEST_TEXT = 1000
"""Largest number of characters of the name of a class, and of an id."""

LONGEST_WAIT, PAUSE = 25.0, 0.1
"""Seconds that a request for a newer model waits at most, and between two looks."""


def session_app(session: LabellingSession, token: str, port: int) -> ASGIApp:
    """Build the application that serves a session."""
    page, policy = page_and_policy()

    async def show_page(request: Request) -> Response:
        return HTMLResponse(page)

    async def item(request: Request) -> Response:
        node, resume = request.query_params.get("node"), "resume" in request.query_params
        if node is not None:
            await run_in_threadpool(session.pick, node)
        elif resume:
            await run_in_threadpool(session.resume)
        return JSONResponse(await run_in_threadpool(describe_session, session))

    async def labels(request: Request) -> Response:
        answer = read_answer(await read_body(request))
        await run_in_threadpool(session.answer, answer)
        return JSONResponse(await run_in_threadpool(describe_session, session))

    async def version(request: Request) -> Response:
        text = request.query_params.get("after", "0")
        if not text.isdecimal() or len(text) > 9:
            raise UsageError("'after' is the number of a version.")
        end = time.monotonic() + LONGEST_WAIT
        while session.version <= int(text) and time.monotonic() < end and not session.closing:
            await asyncio.sleep(PAUSE)
        return JSONResponse({"version": session.version})

    async def explanation(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(explain_guess, session))

    async def search(request: Request) -> Response:
        query = request.query_params.get("q", "")
        return JSONResponse({"hits": await run_in_threadpool(search_nodes, session, query)})

    async def node_map(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(describe_map, session))

    async def colours(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(describe_colours, session))

    async def table(request: Request) -> Response:
        text = await run_in_threadpool(session.labels_text)
        return Response(text, media_type="text/csv; charset=utf-8")

    async def fit(request: Request) -> Response:
        await read_body(request)
        await run_in_threadpool(session.request_fit)
        return JSONResponse(await run_in_threadpool(describe_session, session), 202)

    routes = [
        Route("/", show_page),
        Route("/api/item", item),
        Route("/api/labels", labels, methods=["POST"]),
        Route("/api/version", version),
        Route("/api/explanation", explanation),
        Route("/api/search", search),
        Route("/api/map", node_map),
        Route("/api/colours", colours),
        Route("/api/labels.csv", table),
        Route("/api/fit", fit, methods=["POST"]),
    ]
    handlers: Any = {
        HTTPException: _http_failure,
        UsageError: lambda request, error: failure(400, str(error)),
        KryographError: lambda request, error: failure(500, str(error)),
        NotSavedError: lambda request, error: failure(503, str(error)),
    }
    app = Starlette(routes=routes, exception_handlers=handlers)
    return protected(app, token=token, port=port, policy=policy)


async def _http_failure(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return failure(error.status_code, error.detail)


async def read_body(request: Request) -> Any:
    """Read a body of JSON that is not larger than 64 KiB."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "The body must be JSON (Content-Type: application/json).")
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > MOST_BYTES:
            raise HTTPException(413, f"The body is larger than {MOST_BYTES:,} bytes.")
    try:
        return json.loads(content or b"{}")
    except (ValueError, RecursionError):
        raise UsageError("The body is not JSON.") from None


def read_answer(body: Any) -> PageAnswer:
    """Read a decision from the values of a body, all of which are checked."""
    if not isinstance(body, dict):
        raise UsageError("A decision is an object with id and op.")
    unknown = set(body) - {"id", "op", "node", "label", "seconds"}
    if unknown:
        raise UsageError(f"A decision has no field {sorted(unknown)[0]!r}.")
    texts = {name: body.get(name, "") for name in ("id", "op", "node", "label")}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise UsageError(f"'{name}' must be text.")
    for name in ("id", "label"):
        if len(texts[name]) > LONGEST_TEXT:
            raise UsageError(f"'{name}' has more than {LONGEST_TEXT:,} characters.")
    if not texts["id"] or texts["op"] not in OPERATIONS:
        raise UsageError(f"A decision needs an id, and an op: {', '.join(OPERATIONS)}.")
    try:
        for text in texts.values():
            text.encode()
    except UnicodeEncodeError:
        raise UsageError("A text has half of a surrogate pair.") from None
    seconds = body.get("seconds", 0.0)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < 1e9:
        raise UsageError("'seconds' must be a number of seconds.")
    return PageAnswer(**texts, seconds=float(seconds))


def listen(port: int) -> socket.socket:
    """Open a socket on 127.0.0.1; port 0 means any free one.

    Raises:
        UsageError: If the port is not free.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # A server that was killed can be started again on its port at once.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((HOSTS[0], port))
        sock.listen(128)
    except (OSError, OverflowError) as error:
        sock.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"Port {port} cannot be used ({reason}): choose another with --port, or 0 for any."
        ) from None
    return sock


class SessionServer:
    """A server with its address and token.

    Args:
        session: The session.
        port: Port on 127.0.0.1; 0 for any free one.
    """

    def __init__(self, session: LabellingSession, port: int = 0) -> None:
        self.session, self.token = session, _kept_token(session.folder / TOKEN)
        self._socket = listen(port)
        self.port: int = self._socket.getsockname()[1]
        self._server = _Uvicorn(
            uvicorn.Config(
                session_app(session, self.token, self.port),
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=2,
            ),
            self.stop,
        )

    @property
    def origin(self) -> str:
        """Address of the server without the token of the page."""
        return f"http://{HOSTS[0]}:{self.port}"

    @property
    def address(self) -> str:
        """Address of the page; the token is its fragment."""
        return f"{self.origin}/#{self.token}"

    def write_link(self) -> Path:
        """Write a page that only this user can read and that leads to the address.

        A browser that is started with the address itself would show the token to every user of the
        machine in the list of processes.
        """
        path = self.session.folder / LINK
        refresh = f'<meta http-equiv="refresh" content="0;url={self.address}">'
        _write_private(path, f'<meta charset="utf-8">{refresh}\n')
        return path

    def stop(self) -> None:
        """Let the server end after the requests that it is answering."""
        self.session.closing = True
        self._server.should_exit = True

    def run(self) -> None:
        """Serve until Ctrl-C or a signal to terminate."""
        before = signal.signal(signal.SIGTERM, _interrupt)
        try:
            self._server.run(sockets=[self._socket])
        except KeyboardInterrupt:  # the way to stop; the caller writes labels.csv
            pass
        finally:
            signal.signal(signal.SIGTERM, before)
            self._socket.close()

    @contextmanager
    def running(self) -> Iterator[SessionServer]:
        """Serve in a thread until the block ends."""
        thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)
        thread.start()
        try:
            while not self._server.started and thread.is_alive():
                time.sleep(0.005)
            yield self
        finally:
            self.stop()
            thread.join()
            self._socket.close()


def _kept_token(path: Path) -> str:
    """Token of a session; a tab that waits for the server can go on after a new start."""
    if path.exists():
        token = read_text(path).strip()
        if re.fullmatch(r"[\w-]{32}", token):
            return token
    token = secrets.token_urlsafe(TOKEN_BYTES)
    _write_private(path, token + "\n")
    return token


def _write_private(path: Path, text: str) -> None:
    """Write a file as a whole that no other user may read."""
    with replaced(path) as new:
        new.touch(mode=0o600)
        new.write_text(text, "utf-8")


class _Uvicorn(uvicorn.Server):
    """A server that says when it is told to end, so that nothing waits."""

    def __init__(self, config: uvicorn.Config, on_exit: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_exit = on_exit

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._on_exit()


def _interrupt(sig: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
