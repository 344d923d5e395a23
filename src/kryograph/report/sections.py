"""Sections of a page: what was read, what to label next, and which systems were tried."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from kryograph.graph import UNKNOWN
from kryograph.labelling.choice import Candidate
from kryograph.labelling.fit import Labelled
from kryograph.report import charts, facts
from kryograph.report.markup import Safe, isolated, joined, name, table, tag
from kryograph.report.parts import (
    MOST_CLASSES,
    class_name,
    figure,
    folded,
    others,
    paragraph,
    percent,
    plural,
    section,
    sets_named,
    setting_value,
)

FIRST_SUGGESTIONS = 15
FIRST_SYSTEMS = 20


def summary(labelled: Labelled) -> Safe:
    """The whole page in a sentence or two."""
    share, low, high = labelled.accuracy
    free = int((labelled.given == UNKNOWN).sum())
    asked = len(labelled.held_out.nodes)
    tried = len(labelled.candidates)
    chosen = f", chosen among {tried}" if tried > 1 else ""
    return paragraph(
        tag("strong", plural(free, "node"), " labelled"),
        f" from {plural(labelled.graph.n - free, 'given label')} by ",
        tag("strong", labelled.model.system.name),
        f"{chosen}. Asked about {plural(asked, 'given label')} that it could not see, it was right "
        "in ",
        tag("strong", percent(share)),
        f" of cases (95 % interval {100 * low:.1f} to {percent(high)}).",
        class_="lead",
    )


def headline(labelled: Labelled) -> Safe:
    """The numbers that matter most, large."""
    share, low, high = labelled.accuracy
    sizes = facts.set_sizes(labelled)
    single = sizes[0] / sizes.sum() if sizes.sum() else None
    free = int((labelled.given == UNKNOWN).sum())
    figures = [
        ("Held-out accuracy", percent(share), charts.interval(share, low, high)),
        ("Nodes labelled", f"{free:,}", f"of {labelled.graph.n:,}"),
        ("Labels given", f"{labelled.graph.n - free:,}", _of_classes(labelled)),
        ("One class in the set", percent(single), f"{sets_named(labelled)}, nodes without a label"),
    ]
    return tag(
        "dl",
        *(
            tag("div", tag("dt", what), tag("dd", value, class_="figure"), tag("dd", more))
            for what, value, more in figures
        ),
        class_="headline",
    )


def _of_classes(labelled: Labelled) -> str:
    return f"in {plural(len(labelled.classes), 'class', 'classes')}"


def data(labelled: Labelled, source: Sequence[str]) -> Safe:
    """What was read."""
    graph = labelled.graph
    degree = facts.degrees(graph)
    alike, pairs = facts.homophily(graph, labelled.given)
    rows = [
        ("Nodes", f"{graph.n:,}"),
        ("Edges", f"{graph.edges:,}"),
        ("Features", f"{graph.features.shape[1]:,}"),
        ("Components", f"{facts.components(graph):,}"),
        ("Isolated nodes", f"{int((degree == 0).sum()):,}"),
        ("Mean degree", f"{degree.mean():.1f}"),
        ("Median degree", f"{np.median(degree):g}"),
        ("Largest degree", f"{int(degree.max()):,}"),
    ]
    facts_list = tag(
        "dl", *(tag("div", tag("dt", k), tag("dd", v)) for k, v in rows), class_="facts"
    )
    if alike is None:
        joins = "No edge joins two labelled nodes, so homophily cannot be told (–)."
    else:
        joins = (
            f"Homophily {percent(alike)}: that share of the {plural(pairs, 'edge')} between "
            f"labelled nodes joins equal labels."
        )
    bins = facts.degree_bins(degree)
    widest = max(bins, key=lambda each: each[1])
    picture = charts.histogram(
        bins, unit="neighbours of a node", label=f"Degrees: most nodes have {widest[0]}."
    )
    numbers = table(("Neighbours", "Nodes"), [(k, f"{v:,}") for k, v in bins], caption="Degrees")
    told = [paragraph(sentence) for sentence in source]
    return section(
        "data",
        "The data",
        *told,
        facts_list,
        tag(
            "div",
            figure("Degrees", picture, "How many nodes have how many neighbours.", numbers),
            tag("div", tag("h3", "Labels given"), label_counts(labelled), paragraph(joins)),
            class_="pair",
        ),
    )


def label_counts(labelled: Labelled) -> Safe:
    """How many labels each class has."""
    known = labelled.given[labelled.given != UNKNOWN]
    counts = np.bincount(known, minlength=len(labelled.classes)).astype(np.int64)
    kept = facts.most_frequent(counts, MOST_CLASSES)
    most = int(counts.max(initial=1))
    rows: list[tuple[object, ...]] = [
        (class_name(labelled, c), f"{counts[c]:,}", charts.share_bar(counts[c] / most))
        for c in kept.tolist()
    ]
    if rest := len(counts) - len(kept):
        left = int(counts.sum() - counts[kept].sum())
        rows.append((others(rest), f"{left:,}", ""))
    bar = tag("span", "Bar", class_="hidden")
    return table(("Class", "Labels", bar), rows, caption="Labels given, by class", words=(0, 2))


def suggestions(labelled: Labelled, places: dict[int, int]) -> Safe:
    """Nodes to label next; `places` says where on the map a node is."""
    names = labelled.graph.names
    probabilities = labelled.probabilities
    words = tuple(isolated(each) for each in labelled.classes)
    rows = []
    for k, each in enumerate(labelled.suggestions, start=1):
        said = name(names[each.node] if names else each.node)
        if each.node in places:
            said = tag("button", said, type="button", class_="jump", data_node=places[each.node])
        sure = percent(float(probabilities[each.node, each.first]))
        rows.append((f"{k}", said, class_name(labelled, each.first), sure, each.why(words)))
    headings = ("", "Node", "Predicted", "Probability", "Why")

    def part(chosen: list[tuple[str, Safe, Safe, str, str]]) -> Safe:
        return table(
            headings, chosen, caption="Nodes to label next", words=(1, 2, 4), class_="suggestions"
        )

    if not rows:
        return section("suggestions", "What to label next", paragraph("Every node has a label."))
    rest = rows[FIRST_SUGGESTIONS:]
    return section(
        "suggestions",
        "What to label next",
        paragraph(
            "A label helps most where many doubtful nodes are near and labelled ones are far. "
            "Choose a node to see it on the map."
        ),
        part(rows[:FIRST_SUGGESTIONS]),
        folded(f"{plural(len(rest), 'more node')}", part(rest)) if rest else "",
    )


def systems(labelled: Labelled) -> Safe:
    """What was tried."""
    rows: list[tuple[object, ...]] = []
    for k, candidate in enumerate(labelled.candidates[:FIRST_SYSTEMS]):
        chosen = tag("span", "chosen", class_="tag") if k == 0 else ""
        system = joined([candidate.system.name, " ", chosen])
        epochs = candidate.epochs() if candidate.curves.shape[1] > 1 else "–"
        rows.append((system, _changed(candidate), epochs, percent(candidate.accuracy)))
    more = len(labelled.candidates) - len(rows)
    return section(
        "systems",
        "Systems that were tried",
        paragraph(
            "Each was trained with parts of the given labels hidden and scored on these. One is "
            "chosen by this score, which is therefore a little too good."
        ),
        table(
            ("System", "Settings changed", "Epochs", "Accuracy"),
            rows,
            caption="Systems and their accuracy on hidden labels",
            words=(0, 1),
        ),
        paragraph(f"{more:,} that did worse are not shown.") if more > 0 else "",
    )


def _changed(candidate: Candidate) -> str:
    """The settings that are not the system's own defaults."""
    settings = candidate.system.settings
    fields = dataclasses.fields(settings)
    own = {f.name: f.default for f in fields}
    new = {key: value for key, value in settings.as_dict().items() if value != own[key]}
    return ", ".join(f"{key} {setting_value(value)}" for key, value in new.items()) or "–"
