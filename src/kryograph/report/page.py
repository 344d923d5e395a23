"""Page: a labelled graph as one HTML file that opens without network.

Style and script are inside, and a Content-Security-Policy lets nothing else run or load: it names
the digests of both. Pictures are SVG, but for the map of the nodes, which the script draws.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from string import Template

import numpy as np
import numpy.typing as npt

from kryograph.labelling.fit import Labelled
from kryograph.report import parts, quality, sections
from kryograph.report.markup import Safe, clean, embedded_json, joined, safe, table, tag
from kryograph.report.nodes import SHOWN, node_data, shown
from kryograph.report.one_file import asset, policy
from kryograph.report.parts import paragraph, section


def page(
    labelled: Labelled,
    *,
    title: str,
    source: Sequence[str],
    command: str,
    version: str,
    seconds: float,
    positions: npt.NDArray[np.floating],
    seed: int | None = None,
) -> str:
    """The whole page.

    Args:
        labelled: What there is to say.
        title: Above it all.
        source: Sentences: what was read, and what was noticed.
        command: How to do it again.
        version: Of kryograph.
        seconds: How long it took.
        positions: N × 2, the map.
        seed: Of the fit, if it is known.
    """
    nodes = shown(labelled)
    places = {node: place for place, node in enumerate(nodes.tolist())}
    style, script = asset("page.css"), asset("page.js")
    contents = [
        sections.data(labelled, source),
        quality.accuracy(labelled),
        quality.certainty(labelled),
        _map(labelled, len(nodes)),
        sections.suggestions(labelled, places),
        sections.systems(labelled),
        reproduction(labelled, command=command, version=version, seconds=seconds, seed=seed),
    ]
    return Template(asset("page.html")).substitute(
        policy=policy(style, script),
        title=safe(title),
        style=style,
        script=script,
        summary=sections.summary(labelled),
        headline=sections.headline(labelled),
        contents=joined(contents, "\n"),
        data=embedded_json(node_data(labelled, positions, nodes)),
        version=safe(version),
    )


def _map(labelled: Labelled, count: int) -> Safe:
    """The map's frame; the script fills it."""
    n = labelled.graph.n
    if count < n:
        which = (
            f"The map shows {count:,} of {n:,} nodes: those suggested below, up to {SHOWN // 2:,} "
            "with a label, and a random rest. "
        )
    else:
        which = ""
    about = paragraph(
        "Near nodes look alike to the model (t-SNE of its last hidden layer); distances between "
        f"groups mean little. {which}"
        "Point at a node to see what is known of it."
    )
    return section("map", "Map of the nodes", about, Safe(asset("map.html")))


def reproduction(
    labelled: Labelled, *, command: str, version: str, seconds: float, seed: int | None
) -> Safe:
    """Settings of the chosen system, and how to do it all again."""
    model, calibration = labelled.model, labelled.calibration
    system = model.system
    rows = [
        (
            field.name,
            parts.setting_value(getattr(system.settings, field.name)),
            field.metadata["summary"],
        )
        for field in dataclasses.fields(system.settings)
    ]
    if system.uses_operator:
        rows.append(("operator", system.operator, "how the graph spreads what its nodes know"))
    facts = [
        ("System", system.name),
        ("Paper", system.paper),
        ("Epochs", f"{labelled.epochs:,}" if labelled.epochs else "–"),
        ("Temperature", f"{calibration.temperature:.4f}"),
        ("Threshold of the sets", f"{calibration.threshold:.6f}"),
        ("kryograph", version),
        *([("Seed", str(seed))] if seed is not None else []),
        ("Fingerprint of the graph", model.graph),
        ("Time", f"{seconds:,.0f} s"),
    ]
    listed = tag(
        "dl",
        *(tag("div", tag("dt", k), tag("dd", clean(v))) for k, v in facts),
        class_="facts wide",
    )
    return section(
        "again",
        "Settings, and how to do it again",
        tag("pre", tag("code", command), tabindex="0", aria_label="Command"),
        listed,
        tag("h3", f"Settings of {system.name}"),
        table(("Setting", "Value", "What it is"), rows, caption="Settings", words=(0, 2)),
    )
