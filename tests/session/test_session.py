from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kryograph.errors import UsageError
from kryograph.graph import Graph
from kryograph.session.session import LabellingSession, PageAnswer
from kryograph.session.subject import Subject
from tests.session.sessions import CLASSES, K, Person, cliques, lines, truth


def test_labels_of_a_person_label_the_graph(tmp_path: Path) -> None:
    session = LabellingSession(tmp_path, cliques(), by="eve")
    person = Person(session)
    while session.prediction.pool is None:
        person.label()
    expected = [truth(name) for name in session.decisions.names]
    best = session.prediction.probabilities.argmax(axis=1)
    assert [CLASSES[c] for c in best] == expected
    names = person.label(3)
    assert len(set(names)) == 3
    stored = lines(tmp_path)
    assert [line["node"] for line in stored[-3:]] == names
    assert {line["by"] for line in stored} == {"eve"}
    assert all(line["predicted"] == line["label"] for line in stored[-3:])
    assert all(0.5 < line["p"] <= 1 for line in stored[-3:])
    assert stored[0]["predicted"] == ""
    assert stored[0]["p"] is None
    session.close()


def test_a_session_goes_on_where_it_was(tmp_path: Path) -> None:
    session = LabellingSession(tmp_path, cliques(), seed=3)
    person = Person(session)
    person.label(4)
    person.send("skip", person.node)
    person.send("class", label="owl")
    before = (session.question.node, session.question.reason)
    session.close()
    again = LabellingSession(tmp_path, cliques(), seed=9)
    assert again.seed == 3
    assert again.continued == 4
    assert again.decisions.classes == ["cat", "dog", "owl"]
    assert again.decisions.labels.tolist() == session.decisions.labels.tolist()
    assert len(again.decisions.skipped) == 1
    assert (again.question.node, again.question.reason) == before
    Person(again).send("undo")
    again.close()
    last = LabellingSession(tmp_path, cliques())
    assert last.question.again
    assert last.question.node == again.question.node
    last.close()


def test_undo_asks_again_and_every_step_is_a_line(tmp_path: Path) -> None:
    session = LabellingSession(tmp_path, cliques(known=True))
    person = Person(session)
    names = person.label(2)
    person.send("skip", skipped := person.node)
    for name in (skipped, names[1], names[0]):
        person.send("undo")
        assert person.node == name
        assert session.question.again
    assert session.decisions.labels.tolist() == cliques(known=True).labels.tolist()
    assert [line["op"] for line in lines(tmp_path)] == ["label"] * 2 + ["skip"] + ["undo"] * 3
    assert [line["of"] for line in lines(tmp_path)[-3:]] == [3, 2, 1]
    with pytest.raises(UsageError, match="nothing to undo"):
        person.send("undo")
    assert len(lines(tmp_path)) == 6
    session.close()


def test_the_same_id_is_written_once(tmp_path: Path) -> None:
    session = LabellingSession(tmp_path, cliques())
    for _ in range(3):
        session.answer(PageAnswer("a", "label", "c1", "cat"))
    assert len(lines(tmp_path)) == 1
    with pytest.raises(UsageError, match="another decision"):
        session.answer(PageAnswer("a", "label", "c1", "dog"))
    with pytest.raises(UsageError, match="another decision"):
        session.answer(PageAnswer("a", "label", "c2", "cat"))
    session.close()


def test_the_accuracy_is_that_of_unannounced_nodes_before_their_label(tmp_path: Path) -> None:
    session = LabellingSession(tmp_path, cliques(known=True), checks=1.0)
    person = Person(session)
    person.label(3)
    person.send("label", person.node, "dog" if truth(person.node) == "cat" else "cat")
    assert session.decisions.outcomes("check") == [True, True, True, False]
    wrong = lines(tmp_path)[-1]["node"]
    session.pick(wrong)
    person.send("label", wrong, truth(wrong))  # a slip is corrected
    assert lines(tmp_path)[-1]["reason"] == "picked"
    assert session.decisions.outcomes("check") == [True, True, True, True]
    free = [
        name for k, name in enumerate(session.decisions.names) if session.decisions.labels[k] < 0
    ]
    session.pick(free[0])
    person.label()
    assert len(session.decisions.outcomes("check")) == 4
    session.resume()
    assert session.question.reason == "check"
    session.close()


def test_another_graph_is_refused(tmp_path: Path) -> None:
    LabellingSession(tmp_path, cliques()).close()
    graph = cliques().graph
    others = [
        cliques(names=[f"x{i}" for i in range(2 * K)]),
        Subject(Graph(graph.adjacency, np.eye(2 * K, 3), graph.names), cliques().labels, CLASSES),
    ]
    for other in others:
        with pytest.raises(UsageError, match="session of another graph"):
            LabellingSession(tmp_path, other)
    LabellingSession(tmp_path, cliques()).close()  # and the lock is released


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"format": 9}', '{"format": 1, "graph": 2}', "\x00"]
)
def test_a_damaged_description_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "session.json").write_text(content, "utf-8")
    with pytest.raises(UsageError, match=r"session.json"):
        LabellingSession(tmp_path, cliques())


def test_labels_in_another_order_of_classes_keep_their_names(tmp_path: Path) -> None:
    session = LabellingSession(tmp_path, cliques(known=True))
    Person(session).send("class", label="owl")
    session.close()
    subject = cliques(known=True)
    turned = Subject(
        subject.graph, np.where(subject.labels >= 0, 2 - subject.labels, -1), ("owl", "dog", "cat")
    )
    again = LabellingSession(tmp_path, turned)
    assert again.decisions.classes == ["cat", "dog", "owl"]
    assert again.decisions.labels.tolist() == subject.labels.tolist()
    again.close()
    assert json.loads((tmp_path / "session.json").read_text("utf-8"))["classes"] == [*CLASSES]


def test_when_all_nodes_have_a_label_there_is_no_question(tmp_path: Path) -> None:
    session = LabellingSession(tmp_path, cliques())
    Person(session).label(2 * K)
    assert session.question.node is None
    assert session.labels_text().count("\n") == 2 * K + 1
    session.close()


def test_a_fit_needs_a_process_and_two_classes(tmp_path: Path) -> None:
    session = LabellingSession(tmp_path, cliques())
    with pytest.raises(UsageError, match="no process"):
        session.request_fit()
    assert session.behind is None
    session.close()
