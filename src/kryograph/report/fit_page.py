"""Sections of a page: what was read, what to label next, and which systems were tried.

Quality: sections of a page that say how good the answers are, and how sure.

Page: a labelled graph as one HTML file that opens without network.

Style and script are inside, and a Content-Security-Policy lets nothing else run or load: it names
the digests of both. Pictures are SVG, but for the map of the nodes, which the script draws.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import zip_longest
from string import Template

import numpy as np
import numpy.typing as npt

from kryograph.graph import UNKNOWN, Indices
from kryograph.labelling.calibration import Bin, reliability
from kryograph.labelling.cross_validation import Candidate
from kryograph.labelling.label import LabelledGraph
from kryograph.report import charts, facts
from kryograph.report import fit_page as quality
from kryograph.report import fit_page as sections
from kryograph.report import html as parts
from kryograph.report.html import (
    MOST_CLASSES,
    Safe,
    asset,
    bidi_isolated,
    class_name,
    clean,
    embedded_json,
    figure,
    folded,
    html_table,
    join_markup,
    name,
    others,
    paragraph,
    percent_sign,
    policy,
    safe,
    section,
    sets_named,
    setting_value,
    tag,
)
from kryograph.report.node_data import NODES_SHOWN, node_data, nodes_on_map
from kryograph.text import plural

FIRST_SUGGESTIONS = 15
FIRST_SYSTEMS = 20


def summary_section(labelled: LabelledGraph) -> Safe:
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
        tag("strong", percent_sign(share)),
        f" of cases (95 % interval {100 * low:.1f} to {percent_sign(high)}).",
        class_="lead",
    )


def headline(labelled: LabelledGraph) -> Safe:
    """The numbers that matter most, large."""
    share, low, high = labelled.accuracy
    sizes = facts.set_sizes(labelled)
    single = sizes[0] / sizes.sum() if sizes.sum() else None
    free = int((labelled.given == UNKNOWN).sum())
    figures = [
        ("Held-out accuracy", percent_sign(share), charts.interval(share, low, high)),
        ("Nodes labelled", f"{free:,}", f"of {labelled.graph.n:,}"),
        ("Labels given", f"{labelled.graph.n - free:,}", _of_classes(labelled)),
        (
            "One class in the set",
            percent_sign(single),
            f"{sets_named(labelled)}, nodes without a label",
        ),
    ]
    return tag(
        "dl",
        *(
            tag("div", tag("dt", what), tag("dd", value, class_="figure"), tag("dd", more))
            for what, value, more in figures
        ),
        class_="headline",
    )


def _of_classes(labelled: LabelledGraph) -> str:
    return f"in {plural(len(labelled.classes), 'class', 'classes')}"


def data_section(labelled: LabelledGraph, source: Sequence[str]) -> Safe:
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
            f"Homophily {percent_sign(alike)}: that share of the {plural(pairs, 'edge')} between "
            f"labelled nodes joins equal labels."
        )
    bins = facts.degree_bins(degree)
    widest = max(bins, key=lambda each: each[1])
    picture = charts.histogram(
        bins, unit="neighbours of a node", label=f"Degrees: most nodes have {widest[0]}."
    )
    numbers = html_table(
        ("Neighbours", "Nodes"), [(k, f"{v:,}") for k, v in bins], caption="Degrees"
    )
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


def label_counts(labelled: LabelledGraph) -> Safe:
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
    return html_table(
        ("Class", "Labels", bar), rows, caption="Labels given, by class", words=(0, 2)
    )


def suggestions_section(labelled: LabelledGraph, places: dict[int, int]) -> Safe:
    """Nodes to label next; `places` says where on the map a node is."""
    names = labelled.graph.names
    probabilities = labelled.probabilities
    words = tuple(bidi_isolated(each) for each in labelled.classes)
    rows = []
    for k, each in enumerate(labelled.suggestions, start=1):
        said = name(names[each.node] if names else each.node)
        if each.node in places:
            said = tag("button", said, type="button", class_="jump", data_node=places[each.node])
        sure = percent_sign(float(probabilities[each.node, each.first]))
        rows.append((f"{k}", said, class_name(labelled, each.first), sure, each.why(words)))
    headings = ("", "Node", "Predicted", "Probability", "Why")

    def part(chosen: list[tuple[str, Safe, Safe, str, str]]) -> Safe:
        return html_table(
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


def systems_section(labelled: LabelledGraph) -> Safe:
    """What was tried."""
    rows: list[tuple[object, ...]] = []
    for k, candidate in enumerate(labelled.candidates[:FIRST_SYSTEMS]):
        chosen = tag("span", "chosen", class_="tag") if k == 0 else ""
        system = join_markup([candidate.system.name, " ", chosen])
        epochs = candidate.epochs() if candidate.curves.shape[1] > 1 else "–"
        rows.append((system, _changed(candidate), epochs, percent_sign(candidate.accuracy)))
    more = len(labelled.candidates) - len(rows)
    return section(
        "systems",
        "Systems that were tried",
        paragraph(
            "Each was trained with parts of the given labels hidden and scored on these. One is "
            "chosen by this score, which is therefore a little too good."
        ),
        html_table(
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


def accuracy_section(labelled: LabelledGraph) -> Safe:
    """How good the answers are, by labels that were held out."""
    share, low, high = labelled.accuracy
    held, known = len(labelled.held_out.nodes), int((labelled.given != UNKNOWN).sum())
    never = known - held
    words = (
        f"Given labels were hidden in turns and asked for: {percent_sign(share)} of {held:,} "
        "answers "
        f"were right, with a 95 % interval from {100 * low:.1f} to {percent_sign(high)} (Wilson)."
    )
    if never:
        were = "was never hidden, being" if never == 1 else "were never hidden, each"
        words += f" {plural(never, 'label')} {were} the only one of its class."
    scores = facts.class_scores(labelled)
    rows = [
        (
            class_name(labelled, c),
            f"{score.given:,}",
            percent_sign(score.precision),
            percent_sign(score.recall),
            percent_sign(score.f1),
            f"{score.predicted:,}",
        )
        for c, score in enumerate(scores)
    ]
    headings = ("Class", "Labels", "Precision", "Recall", "F1", "Predicted")
    explained = (
        "Precision: of the answers that name the class, how many are right. Recall: of the labels "
        "of the class, how many were found. Predicted: nodes without a label that now have it."
    )
    return section(
        "accuracy",
        "How good the answers are",
        paragraph(words),
        tag("h3", "By class"),
        html_table(headings, rows, caption="Held-out scores, by class"),
        paragraph(explained, class_="note"),
        tag("h3", "What is taken for what"),
        confusion_matrix(labelled),
        paragraph(
            "Rows are given labels, columns held-out answers; a cell is stronger the larger its "
            "share of the row. Right answers are on the diagonal, framed.",
            class_="note",
        ),
    )


def confusion_matrix(labelled: LabelledGraph) -> Safe:
    """A heat map that is a table."""
    counts = facts.confusion(labelled)
    kept = facts.most_frequent(counts.sum(axis=1) + counts.sum(axis=0), MOST_CLASSES)
    titles: list[Safe] = [class_name(labelled, c) for c in kept.tolist()]
    rest = np.setdiff1d(np.arange(len(counts)), kept)
    if rest.size:
        titles.append(safe(others(rest.size)))
        counts = _merged(_merged(counts, kept, rest).T, kept, rest).T
    head = [tag("th", tag("span", title), scope="col", class_="upright") for title in titles]
    rows = []
    for r, row in enumerate(counts):
        cells = []
        for c, count in enumerate(row.tolist()):
            heat = round(10 * count / row.sum()) if count else 0
            kind = f"heat heat-{heat}" + " right" * (r == c)
            cells.append(tag("td", f"{count:,}" if count else "·", class_=kind))
        rows.append(tag("tr", tag("th", titles[r], scope="row"), *cells))
    caption = "Held-out answers: given label by row, answer by column"
    corner = tag("td", "given ↓  answer →", class_="corner")
    made = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", corner, *head)),
        tag("tbody", *rows),
        class_="confusion",
    )
    return tag("div", made, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _merged(counts: Indices, kept: Indices, rest: Indices) -> Indices:
    """The kept rows, then the sum of the rest."""
    return np.concatenate([counts[kept], counts[rest].sum(axis=0, keepdims=True)])


def certainty_section(labelled: LabelledGraph) -> Safe:
    """How sure the answers are, and whether rightly so."""
    held, calibration = labelled.held_out, labelled.calibration
    asked = labelled.given[held.nodes]
    before = reliability(held.probabilities, asked)
    after = reliability(calibration.probabilities(held.probabilities), asked)
    curve = figure(
        "Reliability",
        join_markup(
            [
                charts.key(("before", "before calibration"), ("after", "after calibration")),
                charts.reliability_curve(before, after),
            ]
        ),
        f"A point on the dotted line is as often right as it is sure. Calibration divides "
        f"log-probabilities by the temperature {calibration.temperature:.2f}, learned from these "
        "same held-out labels. Columns below: how many labels each point stands for.",
        _reliability_table(before, after),
    )
    sizes = facts.set_sizes(labelled)
    used = int(np.flatnonzero(sizes).max(initial=0)) + 1
    bars = [(str(size), int(count)) for size, count in enumerate(sizes[:used], start=1)]
    free = int(sizes.sum())
    one = int(sizes[0])
    promise = (
        f"A set holds every class that the node may well be of. The sets are made so that the true "
        f"class of a new node is in its set in {100 * calibration.coverage:g} % of cases: classes "
        f"of probability {calibration.threshold:.3f} or more. {one:,} of "
        f"{plural(free, 'node')} without a label have a single class in their set."
    )
    sets = figure(
        f"Size of the {sets_named(labelled)}",
        charts.histogram(
            bars, unit="classes in the set", label=f"{one:,} of {free:,} sets hold one class."
        ),
        promise,
        html_table(
            ("Classes in the set", "Nodes"), [(k, f"{v:,}") for k, v in bars], caption="Sizes"
        ),
    )
    return section(
        "certainty", "How sure the answers are", tag("div", curve, sets, class_="pair even")
    )


def _reliability_table(before: list[Bin], after: list[Bin]) -> Safe:
    def three(b: Bin | None) -> tuple[str, str, str]:
        return (
            (percent_sign(b.confidence), percent_sign(b.accuracy), f"{b.count:,}")
            if b
            else ("", "", "")
        )

    rows = [(*three(b), *three(a)) for b, a in zip_longest(before, after)]
    headings = ("Sure, before", "Right", "Labels", "Sure, after", "Right", "Labels")
    return html_table(headings, rows, caption="Reliability of held-out answers", words=())


def page(
    labelled: LabelledGraph,
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
    nodes = nodes_on_map(labelled)
    places = {node: place for place, node in enumerate(nodes.tolist())}
    style, script = asset("page.css"), asset("page.js")
    contents = [
        sections.data_section(labelled, source),
        quality.accuracy_section(labelled),
        quality.certainty_section(labelled),
        _map(labelled, len(nodes)),
        sections.suggestions_section(labelled, places),
        sections.systems_section(labelled),
        reproduction(labelled, command=command, version=version, seconds=seconds, seed=seed),
    ]
    return Template(asset("page.html")).substitute(
        policy=policy(style, script),
        title=safe(title),
        style=style,
        script=script,
        summary=sections.summary_section(labelled),
        headline=sections.headline(labelled),
        contents=join_markup(contents, "\n"),
        data=embedded_json(node_data(labelled, positions, nodes)),
        version=safe(version),
    )


def _map(labelled: LabelledGraph, count: int) -> Safe:
    """The map's frame; the script fills it."""
    n = labelled.graph.n
    if count < n:
        which = (
            f"The map shows {count:,} of {n:,} nodes: those suggested below, "
            f"up to {NODES_SHOWN // 2:,} "
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
    labelled: LabelledGraph, *, command: str, version: str, seconds: float, seed: int | None
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
        html_table(("Setting", "Value", "What it is"), rows, caption="Settings", words=(0, 2)),
    )
