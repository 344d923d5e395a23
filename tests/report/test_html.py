from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kryograph.report.html import (
    Safe,
    bidi_isolated,
    clean,
    embedded_json,
    html_table,
    join_markup,
    name,
    percent_sign,
    setting_value,
    tag,
)


def test_what_is_markup_stays_and_what_is_not_is_escaped() -> None:
    inner = tag("b", "a < b")
    assert tag("p", inner, " & c", title='"x"') == (
        '<p title="&quot;x&quot;"><b>a &lt; b</b> &amp; c</p>'
    )
    assert join_markup(["<", Safe("<i></i>")], " & ") == "&lt; &amp; <i></i>"


@given(st.text(alphabet=st.characters(codec=None)))
def test_any_text_makes_a_file_that_can_be_written(text: str) -> None:
    made = tag("p", text, title=text)
    made.encode("utf-8")
    assert made.count("<") == made.count(">") == 2


@given(st.text(alphabet=st.sampled_from("<>&/!-script\u2028\u2029\"'\\ a")))
def test_embedded_json_says_the_same_and_cannot_end_its_script(text: str) -> None:
    made = embedded_json({text: [text]})
    assert json.loads(made) == {text: [text]}
    assert not set(made) & set("<>&\u2028\u2029")


def test_a_number_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError):
        embedded_json([float("nan")])


def test_a_long_name_is_cut_and_whole_in_its_title() -> None:
    assert name("short") == "<bdi>short</bdi>"
    assert name("y" * 90) == f'<bdi title="{"y" * 90}">{"y" * 79}…</bdi>'
    assert len(name("y" * 10**6)) < 1200


def test_only_names_that_turn_the_text_are_isolated() -> None:
    assert bidi_isolated("plain, (with) 1 🧊") == "plain, (with) 1 🧊"
    assert bidi_isolated("\u202ex") == "\N{FIRST STRONG ISOLATE}\u202ex\N{POP DIRECTIONAL ISOLATE}"


def test_characters_that_html_forbids_are_replaced() -> None:
    assert clean("a\x00b\ud800c\n") == "a\ufffdb\ufffdc\n"


def test_columns_of_a_table_are_numbers_unless_they_are_words() -> None:
    made = html_table(("k", "v", "w"), [("a", 1, "x")], caption="C", words=(0, 2))
    assert '<th scope="row">a</th><td class="number">1</td><td>x</td>' in made
    assert '<th scope="col" class="number">v</th>' in made
    assert "<caption>C</caption>" in made


def test_values_are_written_as_people_do() -> None:
    assert [setting_value(v) for v in (True, 0.0100, 3, "relu")] == ["true", "0.01", "3", "relu"]
    assert (percent_sign(0.8351), percent_sign(None)) == ("83.5\N{NO-BREAK SPACE}%", "–")
