from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from kryograph.data.tables import Plan, PlanLine
from kryograph.labelling.labelled_graph import LabelledGraph
from kryograph.report import fit_page
from kryograph.report.fit_page import (
    FIRST_COLUMNS,
    FIRST_SUGGESTIONS,
    FIT_SECTIONS,
    MAX_COLUMNS_LISTED,
    MAX_SYSTEMS_LISTED,
    SCRIPTS,
)
from kryograph.report.html import environment
from kryograph.report.node_data import MAX_NODE_NAME_LENGTH
from kryograph.systems import system
from tests.report.labelled_graphs import (
    NASTY,
    embedded_nodes,
    fitted,
    info_of,
    lopsided,
    page_of,
    renamed,
)

VOID = {"meta", "input", "link", "img", "br", "hr"}


class Reader(HTMLParser):
    """Elements, their attributes and the text of a page; complains where tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str | None]] = []
        self.headings: list[str] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, key, value) for key, value in attrs]
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        kept = self.scripts if self.open[-1:] in (["script"], ["style"]) else self.words
        kept.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


def read(labelled: LabelledGraph, **changes: Any) -> Reader:
    return Reader(page_of(labelled, **changes))


def test_a_page_is_whole_and_its_headings_are_in_order() -> None:
    page = read(fitted())
    assert page.tags["h1"] == page.tags["main"] == page.tags["title"] == 1
    assert page.headings[0] == "h1"
    levels = [int(heading[1]) for heading in page.headings]
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    ids = [value for _, key, value in page.attributes if key == "id"]
    assert len(ids) == len(set(ids))


def test_links_labels_and_descriptions_lead_somewhere() -> None:
    page = read(fitted())
    ids = {value for _, key, value in page.attributes if key == "id"}
    named = ("for", "aria-labelledby", "aria-describedby")
    for _, key, value in page.attributes:
        if key == "href":
            assert value is not None
            assert value[0] == "#"
            assert value[1:] in ids
        if key in named:
            assert value in ids


def test_sections_come_in_the_order_of_their_records() -> None:
    text = page_of(lopsided())
    starts = [text.index(f'<section id="{section.key}"') for section in FIT_SECTIONS[1:]]
    assert starts == sorted(starts)
    links = re.findall('<a href="#([a-z]+)">(.*?)</a>', text.partition("<main")[0])
    assert links == [(section.key, section.title) for section in FIT_SECTIONS[1:]]


def test_every_section_has_its_block_in_the_template() -> None:
    blocks = environment().get_template("fit.html").blocks
    assert set(blocks) - {"links", "main"} == {section.key for section in FIT_SECTIONS}


def test_a_section_without_context_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = [replace(s, context=lambda *_: None) if s.key == "map" else s for s in FIT_SECTIONS]
    monkeypatch.setattr(fit_page, "FIT_SECTIONS", tuple(kept))
    page = Reader(page_of(fitted()))
    assert "Map of the nodes" not in page.text
    assert not [value for _, _, value in page.attributes if value in ("#map", "map")]
    assert "What to label next" in page.text


def test_the_summary_says_nodes_accuracy_interval_and_system() -> None:
    labelled = fitted()
    share, low, high = (100 * value for value in labelled.accuracy)
    text = read(labelled).text
    assert "260 nodes labelled from 40 given labels by prototypes" in text
    assert (
        f"{share:.1f} % of 40 predictions were correct (95 % interval {low:.1f} % to {high:.1f} %)"
    ) in text


def test_the_data_are_described() -> None:
    labelled = fitted()
    text = read(labelled, notes=["First sentence.", "Second & last."]).text
    assert "First sentence. Second & last." in text
    for key, value in (
        ("Nodes", "300"),
        ("Edges", f"{labelled.graph.edges:,}"),
        ("Features", "60"),
        ("Mean degree", f"{2 * labelled.graph.edges / 300:.1f}"),
    ):
        assert f"{key} {value} " in text


def test_accuracy_stands_beside_the_baseline_and_classes_have_intervals() -> None:
    labelled = lopsided()
    text = read(labelled).text
    baseline = f"{100 * labelled.baseline.accuracy:.1f} %"
    assert f"Most frequent class {baseline} accuracy of always answering it" in text
    assert f"Always answering the most frequent class, no , would be right for {baseline}" in text
    rare = labelled.per_class["yes"]
    assert rare.precision is not None
    assert rare.recall is not None
    cells = [
        f"{rare.labels}",
        *(
            cell
            for share in (rare.precision, rare.recall)
            for cell in (
                f"{100 * share.value:.1f} %",
                f"{100 * share.low:.0f}–{100 * share.high:.0f}",
            )
        ),
    ]
    assert f"yes {' '.join(cells)} " in text


def test_ranking_has_a_curve_a_slider_and_their_numbers() -> None:
    labelled = lopsided()
    ranking = labelled.quality.ranking
    assert ranking is not None
    page = read(labelled)
    assert ranking.sentence(labelled.classes) in page.text
    [points] = [value for _, key, value in page.attributes if key == "data-points"]
    assert points is not None
    thresholds, precisions, recalls, *_ = zip(*json.loads(points), strict=True)
    assert list(thresholds) == sorted(thresholds)
    assert recalls[0] == 1.0
    assert precisions[0] == pytest.approx(ranking.points[-1].precision, abs=1e-4)
    for name in (*SCRIPTS, "threshold.js"):
        asset = files("kryograph.report").joinpath("templates", name).read_bytes()
        digest = base64.b64encode(hashlib.sha256(asset).digest()).decode()
        assert any(value and f"'sha256-{digest}'" in value for _, _, value in page.attributes)


def test_more_than_two_classes_have_no_ranking_and_no_script_for_it() -> None:
    text = page_of(fitted())
    assert 'id="ranking"' not in text
    assert "data-points" not in text.partition("<script")[0]


def test_disputed_labels_are_listed_with_both_classes() -> None:
    labelled = lopsided()
    assert len(labelled.disputed) > 2
    text = read(labelled).text
    for one in labelled.disputed:
        given, predicted = labelled.classes[one.label], labelled.classes[one.predicted]
        assert f"n{one.node} {given} {predicted} {100 * one.probability:.1f} %" in text
    calm = replace(
        labelled, held_out=replace(labelled.held_out, labels=labelled.held_out.right * 0)
    )
    sure = np.tile([1.0, 0.0], (len(calm.held_out.nodes), 1))
    calm = replace(calm, held_out=replace(calm.held_out, probabilities=sure))
    assert "Labels to check" not in read(calm).text


def test_columns_are_listed_with_their_use() -> None:
    labelled = lopsided()
    text = read(labelled).text
    assert "tx.csv payer source by its name" in text
    assert "tx.csv memo <1> not used every value is different" in text
    assert 'id="columns"' not in page_of(fitted())
    many = Plan([PlanLine("t.csv", f"c{k}", "number") for k in range(MAX_COLUMNS_LISTED + 3)])
    text = read(replace(labelled, plan=many)).text
    assert f"{MAX_COLUMNS_LISTED - FIRST_COLUMNS} more columns" in text
    assert f"c{MAX_COLUMNS_LISTED - 1} " in text
    assert "3 further columns not listed" in text


def test_few_held_out_labels_have_no_reliability_curve() -> None:
    labelled = fitted()
    held = labelled.held_out
    few = replace(
        held,
        nodes=held.nodes[:4],
        labels=held.labels[:4],
        probabilities=held.probabilities[:4],
        importance=np.ones(4),
    )
    page = page_of(replace(labelled, held_out=few))
    assert "Fewer than 5 labels were held out" in page
    assert "before calibration" not in page
    assert "which are at least 5." in page_of(labelled)


def test_the_page_says_for_how_many_nodes_it_has_explanations() -> None:
    labelled = fitted()
    data = embedded_nodes(page_of(labelled))
    count = len(data["explanations"])
    assert count == 20 + len(labelled.disputed)
    assert f"{count} nodes with disputed labels or low probabilities have an" in read(labelled).text
    assert data["unexplained"] is None
    assert data["run"] == "'my run'"
    assert "There is no exact explanation for trees" in read(lopsided()).text


def test_sets_by_class_are_described_as_such() -> None:
    assert "every class has a threshold of its own" in read(lopsided()).text
    assert "every class has a threshold of its own" not in read(fitted()).text


def test_the_end_says_how_to_do_it_again() -> None:
    labelled = fitted()
    text = read(labelled).text
    for said in (
        "kryograph fit --edges edges.csv --label topic --out run/",
        "kryograph 1.2.3",
        "Seed 7",
        "Time 12 s",
        labelled.graph.fingerprint,
        f"Temperature {labelled.calibration.temperature:.4f}",
        *labelled.model.system.settings.as_dict(),
    ):
        assert said in text
    assert "Seed unknown" in read(labelled, seed=None).text


def test_suggestions_have_their_reasons_and_lead_to_the_map() -> None:
    labelled = fitted()
    page = read(labelled)
    for suggestion in labelled.suggestions:
        assert f"n{suggestion.node}" in page.text
        assert suggestion.why(labelled.classes) in page.text
    jumps = [value for _, key, value in page.attributes if key == "data-node"]
    assert jumps == [str(one.node) for one in (*labelled.suggestions, *labelled.disputed)]
    jumps = jumps[: len(labelled.suggestions)]
    assert len(jumps) > FIRST_SUGGESTIONS
    assert f"{len(jumps) - FIRST_SUGGESTIONS} more nodes" in page.text


@pytest.mark.parametrize(
    ("name", "embedding"),
    [
        ("prototypes", "log-probabilities"),
        ("lp", "log-probabilities"),
        ("gcn", "the last hidden layer"),
        ("truncated-krylov", "the last hidden layer"),
    ],
)
def test_the_map_is_named_after_what_the_system_embeds(name: str, embedding: str) -> None:
    labelled = fitted()
    model = replace(labelled.model, system=system(name))
    [section] = [section for section in FIT_SECTIONS if section.key == "map"]
    context = section.context(replace(labelled, model=model), info_of(labelled))
    assert context is not None
    assert context["embedding"] == embedding
    text = page_of(labelled)
    assert "t-SNE of log-probabilities:" in text


def test_systems_beyond_the_limit_are_counted() -> None:
    labelled = fitted()
    many = replace(labelled, candidates=labelled.candidates * (MAX_SYSTEMS_LISTED + 3))
    assert "3 systems with lower scores" in read(many).text
    assert page_of(many).count('<span class="tag">chosen</span>') == 1


@pytest.mark.parametrize(
    "name",
    [
        NASTY,
        "<img src=x onerror=alert(1)>",
        "\"quoted\" & 'quoted' `ticked`",
        "--><!-- ${x} $title %s {0}",
        "🧊 ice \u2028\u2029",
        "שלום עולם",
        "\u202eevil",
        "x" * 5000,
        "two\nlines\ttab",
        "",
        "nul \x00 bell \x07 lone \ud800",
    ],
)
def test_a_name_is_text_wherever_it_stands(name: str) -> None:
    labelled = renamed(fitted(), classes=[name], nodes=[name] * 299)
    text = page_of(labelled, title=name, notes=[name], command=name or " ", version=name)
    text.encode("utf-8")
    usual = page_of(fitted())
    page, expected = Reader(text), Reader(usual)
    # Names bring no element of their own, nor any attribute that could run something.
    assert page.tags == expected.tags
    assert not [key for _, key, _ in page.attributes if key.startswith("on") or key == "style"]
    assert len(page.scripts) == len(expected.scripts)
    shown = name if len(name) <= MAX_NODE_NAME_LENGTH else name[: MAX_NODE_NAME_LENGTH - 1] + "…"
    clean = re.sub("[\x00-\x08\ud800]", "\ufffd", shown)
    assert embedded_nodes(text)["names"][0] == clean
    assert not re.search("<script>alert|<img", text)
    if "\u2028" in name:
        [raw] = re.findall('id="nodes">(.*?)</script>', text, re.S)
        assert "\u2028" not in raw


def test_a_name_from_right_to_left_turns_nothing_else() -> None:
    text = page_of(renamed(fitted(), classes=["שלום"]))
    assert "<bdi>שלום</bdi>" in text
    assert "\N{FIRST STRONG ISOLATE}שלום\N{POP DIRECTIONAL ISOLATE}" in text


def test_nothing_is_loaded_and_nothing_else_may_run() -> None:
    text = page_of(fitted())
    page = Reader(text)
    for tag, key, _value in page.attributes:
        assert key not in ("src", "srcset", "xlink:href", "action", "data", "style"), (tag, key)
    assert not re.search(r"@import|url\(|https?:", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", text)
    [policy] = [value for _, key, value in page.attributes if value and "default-src" in value]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for name in ("page.css", *SCRIPTS):
        asset = files("kryograph.report").joinpath("templates", name).read_bytes()
        digest = base64.b64encode(hashlib.sha256(asset).digest()).decode()
        assert f"'sha256-{digest}'" in policy
        assert asset.decode() in text


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_short(name: str) -> None:
    script = files("kryograph.report").joinpath("templates", name).read_text("utf-8")
    assert len(script.splitlines()) < 400


def test_a_graph_without_edges_between_labels_has_no_homophily() -> None:
    labelled = fitted()
    alone = replace(labelled.graph, adjacency=0 * labelled.graph.adjacency)
    text = read(replace(labelled, graph=alone)).text
    assert "the homophily is unknown" in text
    assert "Isolated nodes 300" in text
    assert "Components 300" in text


def test_a_graph_whose_nodes_all_have_labels_still_has_a_page() -> None:
    labelled = fitted()
    everything = labelled.probabilities.argmax(axis=1)
    text = read(replace(labelled, given_labels=everything, suggestions=())).text
    assert "Every node has a label." in text
    assert "0 nodes labelled from 300 given labels" in text
