"""Small sessions for tests: two cliques whose first halves are cats and whose others are dogs."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

import numpy as np

from kryograph.data import toy
from kryograph.graph import UNKNOWN, Graph
from kryograph.session.server import SessionServer
from kryograph.session.session import LabellingSession, PageAnswer
from kryograph.session.subject import Subject

K = 8
"""Number of nodes of a clique."""

CLASSES = ("cat", "dog")
HOSTILE = "<img src=x onerror=alert(1)>"


def cliques(*, known: bool = False, names: list[str] | None = None) -> Subject:
    """Two cliques of named nodes; with `known` the nodes c0 and d0 have their labels."""
    graph = toy.two_cliques(K)
    names = names or [f"c{i}" for i in range(K)] + [f"d{i}" for i in range(K)]
    labels = np.full(2 * K, UNKNOWN)
    if known:
        labels[[0, K]] = [0, 1]
    return Subject(Graph(graph.adjacency, graph.features, tuple(names)), labels, CLASSES)


def truth(name: str) -> str:
    """Class of a node by its name."""
    return "cat" if name.startswith("c") else "dog"


class Person:
    """Answers truthfully, one node after the other, straight to the session."""

    def __init__(self, session: LabellingSession) -> None:
        self.session, self.number = session, len(session.journal.entries)

    @property
    def node(self) -> str:
        """Name of the node that is displayed."""
        assert self.session.question.node is not None
        return self.session.decisions.names[self.session.question.node]

    def send(self, op: str, node: str = "", label: str = "") -> None:
        self.number += 1
        self.session.answer(PageAnswer(f"id {self.number}", op, node, label, 1.5))

    def label(self, count: int = 1) -> list[str]:
        """Label the displayed nodes; returns their names."""
        names = []
        for _ in range(count):
            names.append(self.node)
            self.send("label", names[-1], truth(names[-1]))
        return names


class Client:
    """Requests to a running server."""

    def __init__(self, server: SessionServer) -> None:
        self.server = server

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        leave_out: tuple[str, ...] = (),
        **headers: str,
    ) -> tuple[int, dict[str, str], str]:
        """Status, headers and text of an answer; `headers` have _ for -."""
        sent = {"Host": f"127.0.0.1:{self.server.port}"}
        sent["Authorization"] = f"Bearer {self.server.token if token is None else token}"
        content = None
        if body is not None:
            sent["Content-Type"] = "application/json"
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            sent["Content-Length"] = str(len(content))
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                if name not in leave_out:
                    connection.putheader(name, value)
            connection.endheaders(content)
            answer = connection.getresponse()
            lower = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, lower, answer.read().decode()
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        status, _, text = self.request("GET", path)
        assert status == 200, text
        return json.loads(text)

    def post(self, **answer: Any) -> Any:
        status, _, text = self.request("POST", "/api/labels", answer)
        assert status == 200, text
        return json.loads(text)


def lines(folder: Path) -> list[dict[str, Any]]:
    """Entries of the journal of a folder, as they are in the file."""
    return [json.loads(line) for line in (folder / "journal.jsonl").read_bytes().splitlines()]
