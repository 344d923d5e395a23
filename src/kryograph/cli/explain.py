"""`kryograph explain`: why a node is predicted as its class, and what if something changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import kryograph
from kryograph.cli.console import note, print_json, print_table, print_text
from kryograph.cli.options import FittedFolder, Json, argument, count, option
from kryograph.errors import UsageError
from kryograph.files import check_own_file, write_text
from kryograph.lazy import lazy_imports
from kryograph.text import percent

with lazy_imports():
    from kryograph.labelling import explanation, run_folder, what_if
    from kryograph.report import explanation_page

HOP_LINES = 8
"""Number of lines of the table of hops; --json has all hops."""

Repeated = list[str] | None
"""Values of an option that may be repeated; None if it is not there."""


def explain(
    run: FittedFolder,
    node: Annotated[str, argument("NODE", "Id of a node, as in predictions.csv.")],
    against: Annotated[
        str | None,
        option("--against", "CLASS", "Compare with this class. Default: the second most probable."),
    ] = None,
    top: Annotated[int, count("--top", "Lines of each table.")] = 10,
    page: Annotated[
        Path | None, option("--html", "FILE", "Write a page with bars instead of printing tables.")
    ] = None,
    without_edge: Annotated[
        Repeated, option("--without-edge", "NODE", "What if there were no edge to this node?")
    ] = None,
    values: Annotated[
        Repeated, option("--set", "COLUMN=VALUE", "What if the node had this value?")
    ] = None,
    without_feature: Annotated[
        Repeated,
        option("--without-feature", "COLUMN", "What if no node had this column, or this feature?"),
    ] = None,
    without_label: Annotated[
        Repeated,
        option("--without-label", "NODE", "What if its label were not given? Fits again."),
    ] = None,
    label_as: Annotated[
        Repeated, option("--label-as", "NODE=CLASS", "What if it had this label? Fits again.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Explain why a node is predicted as its class.

    The log-odds of the predicted class against another one are divided exactly among hops,
    neighbours, nodes and features. With an option that asks "what if" the node is predicted again.
    """
    changes: dict[str, Any] = {
        "without_edge": without_edge or [],
        "values": _pairs("--set", values),
        "without_feature": without_feature or [],
        "without_label": without_label or [],
        "label_as": _pairs("--label-as", label_as),
    }
    changed = any(changes.values())
    if changed and (against is not None or page is not None):
        raise UsageError(
            "--against and --html belong to the explanation: leave out what is to be changed, or "
            "leave them out."
        )
    if page is not None:
        check_own_file(page)
    labelled = run_folder.load_run(run)
    if changed:
        outcome = labelled.what_if(node, **changes)
        print_json(outcome.as_dict()) if as_json else _print_what_if(outcome)
        return
    explained = labelled.explain(node, against, top)
    if page is not None:
        write_text(page, explanation_page.render_explanation(explained, kryograph.__version__))
        note(f"Written: {page}")
    if as_json:
        print_json(explained.as_dict())
    elif page is None:
        _print_explanation(explained)


def _pairs(name: str, texts: Sequence[str] | None) -> dict[str, str]:
    """Split texts such as "age=40" at the first sign."""
    pairs = {}
    for text in texts or ():
        left, sign, right = text.partition("=")
        if not sign or not left:
            raise UsageError(f"{name} takes a name, = and a value, not {text!r}.")
        pairs[left] = right
    return pairs


def _print_explanation(explained: explanation.Explanation) -> None:
    first, second = explained.classes
    p, q = explained.probabilities
    print_text(
        f"{explained.node}: {first} ({percent(p)} %) and not {second} ({percent(q)} %). The "
        f"log-odds ln(p / q) of these calibrated probabilities are {explained.log_odds:+.4f}. "
        "The tables by hops, neighbour, node and feature each add up to them, with the intercept."
    )
    intercept = ("intercept: all features in reach zero", f"{explained.intercept:+.4f}")
    _print_lines("by hops", [intercept, *_hop_lines(explained.hops)])
    _print_lines("through neighbour", _lines(explained.neighbours))
    _print_lines("from node", _lines(explained.nodes, "given"))
    _print_lines("by feature", _lines(explained.features))
    if explained.members.num_rows:
        rows = explained.members.to_pylist()
        _print_lines(
            "by member of the pool", [(row["member"], f"{row['log_odds']:+.4f}") for row in rows]
        )
    print_table(
        ("most similar labelled nodes", "label", "cosine"),
        [
            (row["node"], row["label"], f"{row['similarity']:.3f}")
            for row in explained.given_nearest.to_pylist()
        ],
    )
    for sentence in explained.notes:
        print_text(sentence)
    print_text(f"Gap between the sum and the log-odds: {explained.gap:.1e}.")


def _hop_lines(hops: object) -> list[tuple[str, str]]:
    """Lines of the table of hops; many hops that walks take after the first ones share a line."""
    rows = hops.to_pylist()  # type: ignore[attr-defined]
    walks = [row for row in rows if row["hop"] is not None]
    others = [row for row in rows if row["hop"] is None]
    if len(walks) > HOP_LINES:
        tail = walks[HOP_LINES - 1 :]
        walks = walks[: HOP_LINES - 1]
        name = f"{tail[0]['hop']} to {tail[-1]['hop']} hops"
        walks.append({"name": name, "log_odds": sum(row["log_odds"] for row in tail)})
    return [(row["name"], f"{row['log_odds']:+.4f}") for row in (*walks, *others)]


def _lines(table: object, remark: str | None = None) -> list[tuple[str, str]]:
    """Names and log-odds of an Arrow table; the column `remark` stands behind the name."""
    lines = []
    for row in table.to_pylist():  # type: ignore[attr-defined]
        behind = f" (given: {row[remark]})" if remark and row[remark] else ""
        lines.append((row["name"] + behind, f"{row['log_odds']:+.4f}"))
    return lines


def _print_lines(title: str, lines: Iterable[tuple[str, str]]) -> None:
    print_table((title, "log-odds"), lines)


def _print_what_if(outcome: what_if.WhatIf) -> None:
    before, after = outcome.before, outcome.after
    how = "refitted with the same seed" if outcome.refitted else "recomputed, not trained again"
    print_text(f"{outcome.node}, {'; '.join(outcome.changes)} ({how}):")
    order = sorted(range(len(outcome.classes)), key=lambda c: -max(before[c], after[c]))
    print_table(
        ("class", "before, %", "after, %"),
        [
            (outcome.classes[c], f"{100 * before[c]:.2f}", f"{100 * after[c]:.2f}")
            for c in order[:10]
        ],
    )
    for sentence in outcome.notes:
        print_text(sentence)
