"""Reasons: why the fast model predicts a node as its class, in a few lines for the page."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kryograph.explain.contributions import AdditiveForm, Values
from kryograph.session.subject import Subject
from kryograph.text import plural

LINES = 5
"""Number of features and of neighbours that are listed."""


def give_reasons(
    subject: Subject, form: AdditiveForm, node: int, first: int, second: int
) -> dict[str, list[tuple[str, float]]]:
    """Divide the log-odds of two classes at a node; both are class numbers.

    Returns:
        Lines of name and log-odds for hops, neighbours and features, the strongest ones.
    """
    parts = form.contributions(node, first, second)
    hops = ["own features", *(plural(k, "hop") for k in range(1, parts.hops.size))]
    near = parts.neighbours.copy()
    near[node] = 0.0
    return {
        "hops": _strongest(parts.hops, lambda k: hops[k]),
        "neighbours": _strongest(near, lambda u: subject.names[u]),
        "features": _strongest(parts.features, subject.feature_name),
    }


def _strongest(values: Values, name: Callable[[int], str]) -> list[tuple[str, float]]:
    order = np.argsort(-abs(values), kind="stable")[:LINES]
    return [(name(k), round(float(values[k]), 4)) for k in order.tolist() if values[k]]
