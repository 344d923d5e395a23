from __future__ import annotations

from pathlib import Path

from kryograph.session.labels_table import labels_text
from kryograph.session.session import LabellingSession
from tests.session.sessions import Person, cliques


def test_known_labels_come_first_and_new_ones_with_their_prediction(tmp_path: Path) -> None:
    session = LabellingSession(tmp_path, cliques(known=True), by="eve, b", checks=0)
    person = Person(session)
    person.send("label", "c5", "cat")
    person.send("label", "c0", "dog")  # replaces a label that was known
    rows = labels_text(session.decisions).splitlines()
    assert rows[0] == "id,label,by,time,predicted,probability,asked"
    assert rows[1] == "d0,dog,,,,,given"
    assert rows[2].startswith('c5,cat,"eve, b",')
    assert ",cat,0." in rows[2] or ",cat,1.0" in rows[2]
    assert rows[3].startswith("c0,dog,")
    assert len(rows) == 4
    session.close()
    assert (tmp_path / "labels.csv").read_text("utf-8").splitlines() == rows
