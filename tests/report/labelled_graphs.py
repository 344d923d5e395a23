"""Labelled graphs for the tests of pages: a real fit of a small graph, and random large ones."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from kryograph.data import synthetic_citations
from kryograph.data.tables import Plan, PlanLine
from kryograph.data.tables.plan import NOT_USED
from kryograph.graph import UNKNOWN, Graph
from kryograph.labelling.cross_validation import HeldOut
from kryograph.labelling.label import label_nodes
from kryograph.labelling.labelled_graph import LabelledGraph
from kryograph.report.fit_page import PageInfo, render_fit_page
from kryograph.systems import system
from tests.fraud_graph import FRAUD_CLASSES, draw_fraud_graph

NASTY = "</script><script>alert(1)</script>"
"""A name that would run a script if it were not escaped."""

PLAN_LINES = (
    PlanLine("tx.csv", "payer", "source", "by its name"),
    PlanLine("tx.csv", "payee", "target", "by its name"),
    PlanLine("tx.csv", "memo <1>", NOT_USED, "every value is different"),
    PlanLine("accounts.csv", "is_fraud", "label"),
)


@cache
def fitted(n: int = 300, classes: int = 4) -> LabelledGraph:
    """A fit in closed form, with forty labels; nodes are named n0, n1, …"""
    data = synthetic_citations(n=n, classes=classes, words=60, seed=3, homophily=0.8)
    rng = np.random.default_rng(0)
    given = np.full(n, UNKNOWN)
    known = rng.permutation(n)[:40]
    given[known] = data.labels[known]
    named = replace(data.graph, names=tuple(f"n{i}" for i in range(n)))
    names = tuple(f"topic {c}" for c in range(classes))
    return label_nodes(named, given, names, systems=[system("prototypes")], suggestions=30)


@cache
def lopsided() -> LabelledGraph:
    """A fit with two classes, "no" and "yes", and a plan; "yes" is rare, three labels are wrong."""
    graph, _, given = draw_fraud_graph(400, labelled=0.5, signal=2.0, seed=3)
    given[np.flatnonzero(given == 0)[:3]] = 1
    named = replace(graph, names=tuple(f"n{i}" for i in range(400)))
    labelled = label_nodes(
        named, given, FRAUD_CLASSES, systems=[system("trees")], coverage_by="class"
    )
    return replace(labelled, plan=Plan(list(PLAN_LINES)))


def renamed(
    labelled: LabelledGraph, *, classes: Sequence[str] = (), nodes: Sequence[str] = ()
) -> LabelledGraph:
    """A copy with other names for the first classes and nodes."""
    old = labelled.graph.names
    assert old is not None
    graph = replace(labelled.graph, names=(*nodes, *old[len(nodes) :]))
    return replace(labelled, classes=(*classes, *labelled.classes[len(classes) :]), graph=graph)


def large(n: int, classes: int = 7) -> LabelledGraph:
    """A graph of `n` nodes with random probabilities; its system has no exact explanation."""
    rng = np.random.default_rng(1)
    pairs = rng.integers(0, n, size=(2, 2 * n))
    graph = Graph.from_edges(
        pairs,
        n,
        features=np.ones((n, 1)),
        names=[f"node-{i:06d}" for i in range(n)],
    )
    truth = rng.integers(0, classes, size=n)
    raw = rng.dirichlet(np.full(classes, 0.3), size=n)
    raw[np.arange(n), truth] += rng.random(n)
    raw /= raw.sum(axis=1, keepdims=True)
    given = np.full(n, UNKNOWN)
    known = np.sort(rng.permutation(n)[: n // 20])
    given[known] = truth[known]
    return replace(
        fitted(),
        graph=graph,
        given_labels=given,
        classes=tuple(f"topic {c}" for c in range(classes)),
        probabilities=raw,
        held_out=HeldOut(known, truth[known], raw[known], np.ones(known.size)),
        model=replace(lopsided().model, rule=None),
        suggestions=(),
    )


def places(labelled: LabelledGraph) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Positions without t-SNE: a cloud for each predicted class."""
    rng = np.random.default_rng(2)
    best = labelled.probabilities.argmax(axis=1)
    angle = 2 * np.pi * best / len(labelled.classes)
    middle = 4 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    cloud: np.ndarray[Any, np.dtype[np.float64]] = middle + rng.normal(size=(len(best), 2))
    return cloud


def info_of(labelled: LabelledGraph, **changes: Any) -> PageInfo:
    """What the page needs besides the labelled graph; `changes` replace fields."""
    info: dict[str, Any] = {
        "title": "A small graph",
        "notes": ["edges.csv has 600 rows."],
        "command": "kryograph fit --edges edges.csv --label topic --out run/",
        "version": "1.2.3",
        "seconds": 12.3,
        "positions": places(labelled),
        "seed": 7,
        "run": "my run",
    }
    return PageInfo(**{**info, **changes})


def page_of(labelled: LabelledGraph, **changes: Any) -> str:
    """The page of a labelled graph; `changes` replace fields of its `PageInfo`."""
    return render_fit_page(labelled, info_of(labelled, **changes))


def embedded_nodes(page: str) -> dict[str, Any]:
    """Data of the nodes that a page has for its script."""
    [text] = re.findall('<script type="application/json" id="nodes">(.*?)</script>', page, re.S)
    data: dict[str, Any] = json.loads(text)
    return data
