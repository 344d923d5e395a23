from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kryograph.session.security import HEADERS
from kryograph.session.server import SessionServer
from kryograph.session.session import LabellingSession
from tests.session.sessions import Client, cliques, lines


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    session = LabellingSession(tmp_path, cliques())
    with SessionServer(session).running() as server:
        yield Client(server)
    session.close()


ANSWER = {"id": "a", "op": "label", "node": "c1", "label": "cat"}


@pytest.mark.parametrize("host", ["evil", "evil:8123", "127.0.0.1.evil", "[::1]", ""])
def test_an_unknown_host_is_refused(client: Client, host: str) -> None:
    for path in ("/", "/api/item"):
        assert client.request("GET", path, Host=host)[0] == 400


def test_a_missing_host_is_refused(client: Client) -> None:
    assert client.request("GET", "/", leave_out=("Host",))[0] == 400


def test_both_names_of_this_machine_are_known(client: Client) -> None:
    port = client.server.port
    for host in (f"localhost:{port}", f"127.0.0.1:{port}"):
        assert client.request("GET", "/api/item", Host=host, Origin=f"http://{host}")[0] == 200


@pytest.mark.parametrize("origin", ["http://evil", "null", "https://127.0.0.1", "http://127.0.0.1"])
def test_another_origin_is_refused(client: Client, origin: str) -> None:
    assert client.request("POST", "/api/labels", ANSWER, Origin=origin)[0] == 403
    assert client.request("GET", "/", Origin=origin)[0] == 403
    assert lines(client.server.session.folder) == []


@pytest.mark.parametrize("site", ["cross-site", "same-site", "nonsense"])
def test_a_request_of_another_site_is_refused(client: Client, site: str) -> None:
    assert client.request("POST", "/api/labels", ANSWER, Sec_Fetch_Site=site)[0] == 403
    assert client.request("GET", "/", Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors")[0] == 403
    # The page has no data, and the link that opens it may stand in a file.
    assert client.request("GET", "/", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate")[0] == 200
    navigate = {"Sec_Fetch_Site": site, "Sec_Fetch_Mode": "navigate"}
    assert client.request("GET", "/api/item", **navigate)[0] == 403


@pytest.mark.parametrize("token", ["", "wrong", "é"])
def test_all_but_the_page_needs_the_token(client: Client, token: str) -> None:
    paths = ("item", "version", "explanation", "search", "map", "colours", "labels.csv", "none")
    for path in paths:
        assert client.request("GET", f"/api/{path}", token=token)[0] == 401
        assert client.request("GET", f"/api/{path}", leave_out=("Authorization",))[0] == 401
    for path in ("labels", "fit"):
        assert client.request("POST", f"/api/{path}", ANSWER, token=token)[0] == 401
    status, _, page = client.request("GET", "/", leave_out=("Authorization",))
    assert status == 200
    assert client.server.token not in page


def test_every_answer_has_the_headers(client: Client) -> None:
    answers = {
        200: client.request("GET", "/"),
        201: client.request("GET", "/api/item"),
        400: client.request("GET", "/", Host="evil"),
        401: client.request("GET", "/api/item", token="x"),
        403: client.request("GET", "/", Origin="null"),
        404: client.request("GET", "/api/nothing"),
        405: client.request("DELETE", "/api/item"),
        415: client.request("POST", "/api/labels"),
    }
    for expected, (status, headers, _) in answers.items():
        assert status == (200 if expected == 201 else expected)
        for name, value in HEADERS.items():
            assert headers[name.lower()] == value
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "frame-ancestors 'none'" in policy
        assert ("sha256-" in policy) == (expected == 200)
        assert "set-cookie" not in headers
        assert "server" not in headers
        assert "access-control-allow-origin" not in headers


def test_only_this_machine_is_served(client: Client) -> None:
    assert client.server._socket.getsockname()[0] == "127.0.0.1"


def test_the_token_is_for_this_user_alone(client: Client) -> None:
    folder = client.server.session.folder
    link = client.server.write_link()
    for path in (folder / "token", link, folder / "journal.jsonl"):
        assert path.stat().st_mode & 0o077 == 0, path
    assert client.server.address in link.read_text("utf-8")
    assert len(client.server.token) == 32
