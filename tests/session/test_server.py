"""`kryograph.session.server`: routes and errors of a real server."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kryograph.errors import UsageError
from kryograph.session.server import MOST_BYTES, SessionServer, listen
from kryograph.session.session import LabellingSession
from tests.session.sessions import Client, K, cliques, lines, truth


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    session = LabellingSession(tmp_path, cliques())
    with SessionServer(session).running() as server:
        yield Client(server)
    session.close()


def test_a_person_labels_over_http(client: Client) -> None:
    state = client.get("/api/item")
    for number in range(5):
        node = state["item"]["node"]
        state = client.post(id=str(number), op="label", node=node, label=truth(node), seconds=1.25)
        assert state["seq"] == number + 1
        assert state["last"]["node"] == node
        assert state["item"]["node"] != node
    assert lines(client.server.session.folder)[0]["seconds"] == 1.25
    table = list(csv.DictReader(client.request("GET", "/api/labels.csv")[2].splitlines()))
    assert [row["label"] for row in table] == [truth(row["id"]) for row in table]
    assert len(table) == 5


def test_the_same_request_twice_is_one_line(client: Client) -> None:
    answer = {"id": "a", "op": "label", "node": "c1", "label": "cat"}
    assert client.post(**answer) == client.post(**answer)
    assert len(lines(client.server.session.folder)) == 1


def test_a_node_can_be_picked_and_left(client: Client) -> None:
    first = client.get("/api/item")["item"]["node"]
    picked = client.get("/api/item?node=d5")["item"]
    assert (picked["node"], picked["picked"]) == ("d5", True)
    assert client.get("/api/item")["item"]["node"] == "d5"
    assert client.get("/api/item?resume=1")["item"]["node"] == first
    assert client.get("/api/search?q=d5")["hits"] == ["d5"]
    assert client.get("/api/explanation") is None
    assert client.get("/api/map") is None
    assert set(client.get("/api/colours")) == {"label", "predicted", "probability"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 60_000, "not JSON"),
        ([], "an object with id and op"),
        ({"op": "label"}, "needs an id"),
        ({"id": "a", "op": "erase"}, "needs an id, and an op"),
        ({"id": 1, "op": "skip"}, "'id' must be text"),
        ({"id": "a" * 1001, "op": "skip"}, "more than 1,000 characters"),
        ({"id": "a", "op": "skip", "node": "c1", "x": 1}, "no field 'x'"),
        ({"id": "a", "op": "skip", "node": "c1", "seconds": -1}, "number of seconds"),
        ({"id": "a", "op": "skip", "node": "c1", "seconds": True}, "number of seconds"),
        (b'{"id": "a", "op": "skip", "node": "c1", "seconds": NaN}', "number of seconds"),
        (b'{"id": "\\ud800", "op": "skip", "node": "c1"}', "surrogate"),
        ({"id": "a", "op": "skip", "node": "zebra"}, "no node 'zebra'"),
        ({"id": "a", "op": "label", "node": "c1", "label": "owl"}, "no class 'owl'"),
        ({"id": "a", "op": "class", "label": "cat"}, "class 'cat' already"),
        ({"id": "a", "op": "undo"}, "nothing to undo"),
    ],
)
def test_what_is_no_decision_is_refused(client: Client, body: Any, reason: str) -> None:
    status, _, text = client.request("POST", "/api/labels", body)
    assert status == 400
    assert reason in json.loads(text)["error"]
    assert lines(client.server.session.folder) == []


def test_other_errors_have_their_numbers(client: Client) -> None:
    answer = {"id": "a", "op": "skip", "node": "c1"}
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    assert client.request("POST", "/api/labels", answer, **form)[0] == 415
    assert client.request("POST", "/api/labels", answer, Content_Type="text/plain")[0] == 415
    large = answer | {"label": "x" * MOST_BYTES}
    assert client.request("POST", "/api/labels", large)[0] == 413
    assert client.request("GET", "/api/labels")[0] == 405
    assert client.request("GET", "/docs")[0] == 404
    assert client.request("GET", "/api/item?node=zebra")[0] == 400
    assert client.request("GET", "/api/version?after=x")[0] == 400
    assert client.request("POST", "/api/fit", {})[0] == 400  # there is no process for it
    assert lines(client.server.session.folder) == []


def test_a_full_disk_is_503_and_nothing_changes(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    session = LabellingSession(tmp_path, cliques(known=True))
    with SessionServer(session).running() as server:
        client = Client(server)
        client.post(id="a", op="label", node="c1", label="cat")
        before = client.get("/api/item")
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        size = session.journal.path.stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, limits[1]))
        try:
            answer = {"id": "b", "op": "label", "node": "c2", "label": "cat"}
            status, _, text = client.request("POST", "/api/labels", answer)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert status == 503
        assert json.loads(text)["error"].startswith("not saved: no room on the disk")
        assert client.get("/api/item") == before
        assert len(lines(tmp_path)) == 1
        assert client.post(**answer)["seq"] == 2
    session.close()


def test_waiting_for_a_newer_model_ends_when_there_is_one(client: Client) -> None:
    session = client.server.session
    session.version = 4
    start = time.monotonic()
    assert client.get("/api/version?after=3") == {"version": 4}
    assert time.monotonic() - start < 5


def test_a_port_that_is_taken_is_named(client: Client) -> None:
    with pytest.raises(UsageError, match=rf"Port {client.server.port} cannot be used \("):
        listen(client.server.port)
    with pytest.raises(UsageError, match="Port 99999 cannot be used"):
        listen(99999)


def test_a_new_server_of_a_session_has_its_token(tmp_path: Path) -> None:
    tokens = set()
    for _ in range(2):
        session = LabellingSession(tmp_path, cliques())
        with SessionServer(session).running() as server:
            tokens.add(server.token)
            assert server.address == f"http://127.0.0.1:{server.port}/#{server.token}"
        session.close()
    assert len(tokens) == 1
    (tmp_path / "token").write_text("short")
    session = LabellingSession(tmp_path, cliques())
    with SessionServer(session).running() as server:
        assert server.token not in tokens
    session.close()


SERVE = """
import sys
from pathlib import Path
from kryograph.session.server import SessionServer
from kryograph.session.session import LabellingSession
from tests.session.sessions import cliques
session = LabellingSession(Path(sys.argv[1]), cliques())
server = SessionServer(session, int(sys.argv[2]))
print(server.port, server.token, flush=True)
server.run()
session.close()
print("closed", flush=True)
"""


@pytest.mark.slow
def test_a_killed_server_is_started_again_on_its_port(tmp_path: Path) -> None:
    port, token, sent = 0, "", 0
    for _ in range(2):
        with subprocess.Popen(
            [sys.executable, "-c", SERVE, str(tmp_path), str(port)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        ) as process:
            assert process.stdout is not None
            port_text, token = process.stdout.readline().split()
            port = int(port_text)
            client = Client(_Address(port, token))  # type: ignore[arg-type]
            for name in (f"c{sent}", f"d{sent}"):
                client.post(id=f"{name} {sent}", op="label", node=name, label=truth(name))
            sent += 1
            process.kill()
    assert len(lines(tmp_path)) == 4
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, str(tmp_path), str(port)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().split() == [str(port), token]
        client.get("/api/item")  # it serves, so that it knows what to do at a signal
        process.terminate()
        assert process.stdout.read() == "closed\n"
    assert len((tmp_path / "labels.csv").read_text("utf-8").splitlines()) == 5
    assert sent < K


class _Address:
    """Port and token of a server in another process."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.token = port, token
