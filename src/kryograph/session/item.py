"""Item: what the page shows of the present node and of the session, as values for JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from kryograph.graph import UNKNOWN
from kryograph.report.charts import class_colours
from kryograph.report.node_data import MAX_NODES_ON_MAP, on_grid, packed
from kryograph.session.asking import CHECK, PICKED, SUGGESTED, Question
from kryograph.session.check_score import score_checks
from kryograph.session.reasons import give_reasons
from kryograph.session.session import LabellingSession

MOST_NEIGHBOURS = 12
MOST_HITS = 20

BLIND_REASON = "The model's guess comes after your answer, so that the answer is your own."
PICKED_REASON = "You picked this node."
START_REASON = "Many nodes are near: a label here reaches far."
AGAIN_REASON = "You took your last decision back."


def describe_session(session: LabellingSession) -> dict[str, Any]:
    """Describe the present node and the state of the session."""
    with session.lock:
        decisions, question = session.decisions, session.question
        classes = decisions.classes
        known = decisions.labels != UNKNOWN
        last = session.journal.entries[-1] if session.journal.entries else None
        return {
            "seq": len(session.journal.entries),
            "version": session.version,
            "classes": list(classes),
            "colours": list(class_colours(len(classes))),
            "counts": {
                "nodes": len(decisions.names),
                "labelled": int(known.sum()),
                "session": len(decisions.labelled),
                "skipped": len(decisions.skipped),
                "by_class": np.bincount(decisions.labels[known], minlength=len(classes)).tolist(),
                "undo": len(decisions.active),
            },
            "checks": score_checks(decisions.outcomes(CHECK)).as_dict(),
            "hard": _share(decisions.outcomes(SUGGESTED)),
            "full": _full(session),
            "map": session.positions is not None,
            "last": None
            if last is None
            else {name: getattr(last, name) for name in ("op", "node", "label", "predicted", "p")},
            "item": None if question.node is None else _node(session, question, question.node),
        }


def _share(outcomes: list[bool]) -> dict[str, int]:
    return {"n": len(outcomes), "right": sum(outcomes)}


def _node(session: LabellingSession, question: Question, node: int) -> dict[str, Any]:
    """Describe a node. While the guess is hidden, that of its neighbours is, too."""
    decisions = session.decisions
    label = int(decisions.labels[node])
    return {
        "node": decisions.names[node],
        "fields": session.subject.fields(node),
        "label": None if label == UNKNOWN else decisions.classes[label],
        "picked": question.reason == PICKED,
        "blind": question.blind,
        "guess": None if question.blind else _guess(session, node),
        "why": _reason(session, question),
        "neighbours": _neighbours(session, node, hidden=question.blind),
        "degree": int(np.diff(session.subject.graph.adjacency.indptr)[node]),
    }


def _reason(session: LabellingSession, question: Question) -> str:
    if question.again:
        return AGAIN_REASON
    if question.reason == PICKED:
        return PICKED_REASON
    if question.blind or question.suggestion is None:
        return BLIND_REASON
    if session.prediction.pool is None:
        return START_REASON
    return question.suggestion.why(tuple(session.decisions.classes))


def _guess(session: LabellingSession, node: int) -> dict[str, Any] | None:
    """The two most probable classes by the fast model, and the first one by the full model."""
    if session.prediction.pool is None:
        return None
    classes = session.decisions.classes
    row = session.prediction.probabilities[node]
    order = np.argsort(-row, kind="stable")[:2].tolist()
    guess: dict[str, Any] = {
        "classes": [classes[c] for c in order],
        "p": [float(row[c]) for c in order],
        "full": None,
    }
    if session.full is not None and session.full.probabilities is not None:
        own = session.full.probabilities[node]
        best = int(own.argmax())
        guess["full"] = {"class": classes[best], "p": float(own[best])}
    return guess


def _neighbours(session: LabellingSession, node: int, *, hidden: bool) -> list[dict[str, Any]]:
    """The neighbours with the largest weights, those with a label first among equal ones."""
    adjacency, decisions = session.subject.graph.adjacency, session.decisions
    start, end = adjacency.indptr[node], adjacency.indptr[node + 1]
    near, weights = adjacency.indices[start:end], adjacency.data[start:end]
    order = np.lexsort((decisions.labels[near] == UNKNOWN, -weights))[:MOST_NEIGHBOURS]
    lines = []
    for u in near[order].tolist():
        label = int(decisions.labels[u])
        row = session.prediction.probabilities[u]
        guessed = label == UNKNOWN and not hidden and session.prediction.pool is not None
        lines.append(
            {
                "node": decisions.names[u],
                "label": None if label == UNKNOWN else decisions.classes[label],
                "predicted": decisions.classes[int(row.argmax())] if guessed else None,
                "p": float(row.max()) if guessed else None,
            }
        )
    return lines


def _full(session: LabellingSession) -> dict[str, Any]:
    fit = session.full
    return {
        "automatic": session.automatic,
        "busy": session.background is not None and session.background.busy,
        "labels": None if fit is None else fit.labels,
        "behind": session.behind,
        "accuracy": None if fit is None or fit.accuracy is None else list(fit.accuracy),
        "error": "" if fit is None else fit.error,
        "folder": None if fit is None or fit.folder is None else str(fit.folder),
    }


def explain_guess(session: LabellingSession) -> dict[str, Any] | None:
    """Reasons for the guess of the present node; None while it is hidden or there is none."""
    with session.lock:
        question, prediction = session.question, session.prediction
        if question.node is None or question.blind:
            return None
        classes, model = list(session.decisions.classes), session.model
        node = question.node
    # Outside the lock: an answer need not wait for it. A prediction is never changed.
    form = model.additive(prediction)
    if form is None:
        return None
    first, second = np.argsort(-prediction.probabilities[node], kind="stable")[:2].tolist()
    reasons = give_reasons(session.subject, form, node, first, second)
    return {
        "node": session.decisions.names[node],
        "classes": [classes[first], classes[second]],
        **reasons,
    }


def search_nodes(session: LabellingSession, query: str) -> list[str]:
    """Names of at most 20 nodes that contain the query; those that begin with it come first."""
    words = query.casefold().strip()
    if not words:
        return []
    hits = [name for name in session.decisions.names if words in name.casefold()]
    hits.sort(key=lambda name: (not name.casefold().startswith(words), len(name), name))
    return hits[:MOST_HITS]


def describe_map(session: LabellingSession) -> dict[str, Any] | None:
    """Names and positions of the nodes on the map; None while they are being placed."""
    with session.lock:
        if session.positions is None:
            return None
        nodes = nodes_drawn(len(session.positions))
        names = session.decisions.names
        return {
            "names": [names[node] for node in nodes.tolist()],
            "positions": packed(on_grid(session.positions[nodes]).ravel()),
        }


def describe_colours(session: LabellingSession) -> dict[str, Any]:
    """Label, predicted class and its probability of the nodes on the map."""
    with session.lock:
        nodes = nodes_drawn(len(session.decisions.names))
        probabilities = session.prediction.probabilities[nodes]
        fitted = session.prediction.pool is not None
        return {
            "label": packed(session.decisions.labels[nodes] % 2**16),
            "predicted": packed(
                probabilities.argmax(axis=1) if fitted else np.full(nodes.size, 2**16 - 1)
            ),
            "probability": packed(np.round(probabilities.max(axis=1) * 10_000)),
        }


def nodes_drawn(n: int) -> np.ndarray:
    """Numbers of the nodes on the map: all, or a random sample that is always the same."""
    if n <= MAX_NODES_ON_MAP:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).permutation(n)[:MAX_NODES_ON_MAP])
