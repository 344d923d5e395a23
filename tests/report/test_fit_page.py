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

from kryograph.graph import UNKNOWN
from kryograph.labelling.label import LabelledGraph
from kryograph.report import node_data as nodes
from kryograph.report.fit_page import FIRST_SUGGESTIONS, confusion_matrix
from tests.report.labelled_graphs import NASTY, fitted, large, page_of, renamed

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


def data_of(text: str) -> dict[str, Any]:
    [found] = re.findall('<script type="application/json" id="nodes">(.*?)</script>', text, re.S)
    data: dict[str, Any] = json.loads(found)
    return data


def unpacked(packed: str) -> np.ndarray[Any, Any]:
    return np.frombuffer(base64.b64decode(packed), dtype="<u2")


def test_a_page_is_whole_and_its_headings_are_in_order() -> None:
    found = read(fitted())
    assert found.tags["h1"] == found.tags["main"] == found.tags["title"] == 1
    assert found.headings[0] == "h1"
    levels = [int(heading[1]) for heading in found.headings]
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    ids = [value for _, key, value in found.attributes if key == "id"]
    assert len(ids) == len(set(ids))


def test_links_labels_and_descriptions_lead_somewhere() -> None:
    found = read(fitted())
    ids = {value for _, key, value in found.attributes if key == "id"}
    named = ("for", "aria-labelledby", "aria-describedby")
    for _, key, value in found.attributes:
        if key == "href":
            assert value is not None
            assert value[0] == "#"
            assert value[1:] in ids
        if key in named:
            assert value in ids


def test_sections_come_in_the_order_of_a_reader() -> None:
    text = page_of(fitted())
    keys = ("data", "accuracy", "certainty", "map", "suggestions", "systems", "again")
    at = [text.index(f'<section id="{key}"') for key in keys]
    assert at == sorted(at)


def test_the_summary_says_nodes_accuracy_interval_and_system() -> None:
    labelled = fitted()
    share, low, high = (100 * value for value in labelled.accuracy)
    text = read(labelled).text
    assert "260 nodes labelled from 40 given labels by prototypes" in text
    assert f"right in {share:.1f} % of cases (95 % interval {low:.1f} to {high:.1f} %)" in text


def test_the_data_are_described() -> None:
    labelled = fitted()
    text = read(labelled, source=["First sentence.", "Second & last."]).text
    assert "First sentence. Second & last." in text
    for key, value in (
        ("Nodes", "300"),
        ("Edges", f"{labelled.graph.edges:,}"),
        ("Features", "60"),
        ("Mean degree", f"{2 * labelled.graph.edges / 300:.1f}"),
    ):
        assert f"{key} {value} " in text


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
    assert "Seed" not in read(labelled, seed=None).text


def test_suggestions_have_their_reasons_and_lead_to_the_map() -> None:
    labelled = fitted()
    found = read(labelled)
    for each in labelled.suggestions:
        assert f"n{each.node}" in found.text
        assert each.why(labelled.classes) in found.text
    jumps = [value for _, key, value in found.attributes if key == "data-node"]
    assert jumps == [str(each.node) for each in labelled.suggestions]
    assert len(jumps) > FIRST_SUGGESTIONS
    assert f"{len(jumps) - FIRST_SUGGESTIONS} more nodes" in found.text


def test_the_confusion_matrix_counts_held_out_answers() -> None:
    labelled = fitted()
    cells = re.findall('<td class="heat heat-([0-9]+)( right)?">(.*?)</td>', page_of(labelled))
    counts = np.array([0 if text == "·" else int(text) for _, _, text in cells]).reshape(4, 4)
    answers = labelled.held_out.probabilities.argmax(axis=1)
    for given in range(4):
        for answer in range(4):
            both = (labelled.given[labelled.held_out.nodes] == given) & (answers == answer)
            assert counts[given, answer] == both.sum()
    assert [bool(right) for _, right, _ in cells] == np.eye(4, dtype=bool).ravel().tolist()


def test_a_matrix_of_many_classes_puts_the_rare_ones_together() -> None:
    labelled = large(2000, classes=60)
    matrix = confusion_matrix(labelled)
    cells = re.findall('<td class="heat[^>]*>(.*?)</td>', matrix)
    assert len(cells) == 25 * 25
    total = sum(0 if text == "·" else int(text.replace(",", "")) for text in cells)
    assert total == len(labelled.held_out.nodes)
    assert "36 other classes" in matrix


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
    text = page_of(labelled, title=name, source=[name], command=name, version=name)
    text.encode("utf-8")
    usual = page_of(fitted())
    found, expected = Reader(text), Reader(usual)
    # Names bring no element of their own, nor any attribute that could run something.
    assert found.tags == expected.tags
    assert not [key for _, key, _ in found.attributes if key.startswith("on") or key == "style"]
    assert len(found.scripts) == len(expected.scripts)
    shown = name if len(name) <= nodes.LONGEST_NAME else name[: nodes.LONGEST_NAME - 1] + "…"
    clean = re.sub("[\x00-\x08\ud800]", "\ufffd", shown)
    assert data_of(text)["names"][0] == clean
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
    found = Reader(text)
    for tag, key, _value in found.attributes:
        assert key not in ("src", "srcset", "xlink:href", "action", "data", "style"), (tag, key)
    assert not re.search(r"@import|url\(|https?:", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", text)
    [policy] = [value for _, key, value in found.attributes if value and "default-src" in value]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for name in ("page.css", "page.js"):
        asset = files("kryograph.report").joinpath("assets", name).read_bytes()
        digest = base64.b64encode(hashlib.sha256(asset).digest()).decode()
        assert f"'sha256-{digest}'" in policy
        assert asset.decode() in text


def test_the_script_is_short() -> None:
    script = files("kryograph.report").joinpath("assets", "page.js").read_text("utf-8")
    assert len(script.splitlines()) < 400


def test_the_map_knows_what_was_given_said_and_predicted() -> None:
    labelled = fitted()
    data = data_of(page_of(labelled))
    assert data["names"] == [f"n{i}" for i in range(300)]
    given = unpacked(data["given"])
    assert np.array_equal(np.where(given == nodes.NONE, UNKNOWN, given.astype(int)), labelled.given)
    assert np.array_equal(unpacked(data["predicted"]), labelled.probabilities.argmax(axis=1))
    sure = unpacked(data["probability"]) / 10_000
    assert np.abs(sure - labelled.probabilities.max(axis=1)).max() <= 0.5e-4
    said = unpacked(data["said"])
    asked = labelled.held_out.nodes
    assert np.array_equal(np.flatnonzero(said != nodes.NONE), asked)
    right = said[asked] == labelled.given[asked]
    assert np.array_equal(right, labelled.held_out.right)
    for node, at in enumerate(unpacked(data["set"])):
        assert data["sets"][at] == np.flatnonzero(labelled.sets[node]).tolist()


def test_places_keep_their_proportions() -> None:
    labelled = fitted()
    wide = np.stack([np.linspace(-3, 7, 300), np.linspace(0, 5, 300)], axis=1)
    at = unpacked(data_of(page_of(labelled, positions=wide))["places"]).reshape(-1, 2).astype(float)
    assert np.ptp(at, axis=0) == pytest.approx([65535, 65535 / 2], abs=1)
    same = unpacked(data_of(page_of(labelled, positions=np.zeros((300, 2))))["places"])
    assert len(set(same.tolist())) == 1


def test_a_large_prediction_set_is_shown_by_its_size() -> None:
    labelled = large(500, classes=30)
    everything = replace(labelled, calibration=replace(labelled.calibration, threshold=0.0))
    data = data_of(page_of(everything))
    assert data["sets"] == [30]


def test_nodes_without_names_go_by_their_numbers() -> None:
    labelled = fitted()
    data = data_of(page_of(replace(labelled, graph=replace(labelled.graph, names=None))))
    assert data["names"][:3] == ["0", "1", "2"]


def test_twenty_thousand_nodes_stay_small() -> None:
    text = page_of(large(20_000))
    assert len(text.encode()) < 3_000_000
    assert len(data_of(text)["names"]) == 20_000
    assert "The map shows" not in text


def test_of_more_nodes_the_map_shows_some_and_says_so() -> None:
    labelled = replace(large(30_000), suggestions=fitted().suggestions)
    text = page_of(labelled)
    assert "The map shows 20,000 of 30,000 nodes" in text
    names = data_of(text)["names"]
    assert len(names) == len(set(names)) == 20_000
    known = {f"node-{i:06d}" for i in np.flatnonzero(labelled.given != UNKNOWN)}
    assert known <= set(names)
    jumps = re.findall('data-node="([0-9]+)"', text)
    assert [names[int(at)] for at in jumps] == [
        f"node-{each.node:06d}" for each in labelled.suggestions
    ]
    assert page_of(labelled) == text


def test_labelled_nodes_do_not_push_all_others_off_the_map() -> None:
    labelled = large(30_000)
    truth = labelled.raw.argmax(axis=1)
    given = np.where(np.arange(30_000) < 25_000, truth, UNKNOWN)
    shown = nodes.nodes_on_map(replace(labelled, given=given))
    assert (given[shown] == UNKNOWN).sum() >= 2_000


def test_a_graph_without_edges_between_labels_has_no_homophily() -> None:
    labelled = fitted()
    alone = replace(labelled.graph, adjacency=0 * labelled.graph.adjacency)
    text = read(replace(labelled, graph=alone)).text
    assert "homophily cannot be told (–)" in text
    assert "Isolated nodes 300" in text
    assert "Components 300" in text


def test_a_graph_whose_nodes_all_have_labels_still_has_a_page() -> None:
    labelled = fitted()
    everything = labelled.raw.argmax(axis=1)
    text = read(replace(labelled, given=everything, suggestions=())).text
    assert "Every node has a label." in text
    assert "0 nodes labelled from 300 given labels" in text
