from __future__ import annotations

from kryograph.session.fast_model import FastModel
from kryograph.session.reasons import LINES, give_reasons
from tests.session.sessions import cliques


def test_a_node_of_a_clique_belongs_to_it_because_of_its_neighbours() -> None:
    subject = cliques(known=True)
    model = FastModel(subject.features_graph, subject.labels, 2)
    form = model.additive(model.predict(subject.labels, 2))
    assert form is not None
    reasons = give_reasons(subject, form, 3, 0, 1)
    assert set(reasons) == {"hops", "neighbours", "features"}
    assert all(len(lines) <= LINES for lines in reasons.values())
    assert {name for name, _ in reasons["neighbours"]} <= {f"c{i}" for i in range(8)} - {"c3"}
    assert sum(value for _, value in reasons["neighbours"]) > 0
