"""Labels table: all labels of a session as CSV, in the form that `fit --labels` reads."""

from __future__ import annotations

import csv
import io

import numpy as np

from kryograph.graph import UNKNOWN
from kryograph.session.decisions import Decisions

LABELS_FILE = "labels.csv"

COLUMNS = ("id", "label", "by", "time", "predicted", "probability", "asked")
"""Columns of the table. `asked` is "given" for labels that were known before the session."""


def labels_text(decisions: Decisions) -> str:
    """Write labels as CSV: first those that were known before, then those of the session."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    labelled = decisions.labelled
    new = {entry.node for entry in labelled}
    for number in np.flatnonzero(decisions.initial != UNKNOWN).tolist():
        if decisions.names[number] not in new:
            label = decisions.classes[decisions.initial[number]]
            table.writerow([decisions.names[number], label, "", "", "", "", "given"])
    for one in labelled:
        p = "" if one.p is None else f"{one.p:.4f}"
        table.writerow([one.node, one.label, one.by, one.time, one.predicted, p, one.reason])
    return text.getvalue()
