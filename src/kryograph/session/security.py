"""Security of the server: who may ask, and what headers every answer has.

Threats are another web site in the same browser, a name that is rebound to this machine (DNS
rebinding), another user of the machine, and node names that are markup. The token is in the
fragment of the address, which is never sent; there are no cookies, because all ports of a host
share them.
"""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOSTS = ("127.0.0.1", "localhost")
"""Names by which the server may be called."""

TOKEN_BYTES = 24

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
"""Headers of every answer, also of errors."""

NOTHING = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
"""Content-Security-Policy of every answer but the page."""


class WithHeaders:
    """Adds the headers to every answer.

    Args:
        app: The application.
        policy: Content-Security-Policy of the page at "/".
    """

    def __init__(self, app: ASGIApp, policy: str) -> None:
        self.app, self.policy = app, policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                is_page = scope["path"] == "/" and message["status"] == 200
                headers["Content-Security-Policy"] = self.policy if is_page else NOTHING
            await send(message)

        await self.app(scope, receive, send_with_headers)


class Guard:
    """Refuses what does not come from the page of this server.

    Args:
        app: The application.
        token: Secret that every request but that of the page needs.
        port: Port of the server.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self.app, self.port = app, port
        self.expected = f"Bearer {token}".encode()
        self.origins = {f"http://{host}:{port}" for host in HOSTS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # no WebSockets
        refusal = self.refusal(scope)
        await (self.app if refusal is None else refusal)(scope, receive, send)

    def refusal(self, scope: Scope) -> JSONResponse | None:
        """Return the answer to a request that is refused; None if it may pass."""
        headers = Headers(scope=scope)
        is_page = scope["path"] == "/"
        origin = headers.get("origin")
        if origin is not None and origin not in self.origins:
            return failure(403, "The request comes from another web site.")
        site = headers.get("sec-fetch-site", "none")
        # The page holds no data. A link to it may stand anywhere, but only as a link.
        navigates = headers.get("sec-fetch-mode") == "navigate"
        if site not in ("none", "same-origin") and not (is_page and navigates):
            return failure(403, "The request comes from another web site.")
        sent = headers.get("authorization", "").encode("latin-1", "replace")
        if not is_page and not hmac.compare_digest(sent, self.expected):
            return failure(401, "The token is missing or wrong: open the address that was printed.")
        return None


def failure(status: int, message: str) -> JSONResponse:
    """Build the answer to a request that failed."""
    return JSONResponse({"error": message}, status)


def protected(app: ASGIApp, *, token: str, port: int, policy: str) -> ASGIApp:
    """Put all checks around an application, and the headers around these."""
    guarded = Guard(app, token, port)
    return WithHeaders(
        TrustedHostMiddleware(guarded, allowed_hosts=HOSTS, www_redirect=False), policy
    )
