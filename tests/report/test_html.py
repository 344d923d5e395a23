from __future__ import annotations

import base64
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from markupsafe import Markup

from kryograph.report.fit_page import SCRIPTS
from kryograph.report.html import (
    bidi_isolated,
    clean,
    content_policy,
    embedded_json,
    environment,
    name,
    percent_sign,
    template_text,
)


def rendered(source: str, **context: object) -> str:
    return environment().from_string(source).render(**context)


def test_environment_escapes_text_and_keeps_markup() -> None:
    template = '<p title="{{ title }}">{{ inner }}{{ text }}</p>'
    made = rendered(template, title='"x"', inner=Markup("<b>y</b>"), text=" & a < b")
    assert made == '<p title="&#34;x&#34;"><b>y</b> &amp; a &lt; b</p>'


@given(st.text(alphabet=st.characters(codec=None)))
def test_environment_makes_a_file_that_can_be_written_of_any_text(text: str) -> None:
    made = rendered('<p title="{{ text }}">{{ text }}{{ text|name }}</p>', text=text)
    made.encode("utf-8")
    assert made.count("<") == made.count(">") == 4


def test_environment_refuses_a_variable_that_is_missing() -> None:
    with pytest.raises(UndefinedError, match="missing"):
        rendered("{{ missing }}")


def test_filters_format_numbers_and_names() -> None:
    template = "{{ 0.8351|percent }} {{ 1234|thousands }} {{ 2|plural('node') }} {{ 'a'|name }}"
    assert rendered(template) == "83.5\N{NO-BREAK SPACE}% 1,234 2 nodes <bdi>a</bdi>"
    assert rendered("{{ data|json }}", data={"a": "<"}) == '{"a":"\\u003c"}'


@given(st.text(alphabet=st.sampled_from("<>&/!-script\u2028\u2029\"'\\ a")))
def test_embedded_json_says_the_same_and_cannot_end_its_script(text: str) -> None:
    made = embedded_json({text: [text]})
    assert json.loads(made) == {text: [text]}
    assert not set(made) & set("<>&\u2028\u2029")


def test_embedded_json_refuses_a_number_that_json_does_not_have() -> None:
    with pytest.raises(ValueError):
        embedded_json([float("nan")])


def test_name_is_cut_and_whole_in_its_title() -> None:
    assert name("short") == "<bdi>short</bdi>"
    assert name("y" * 90) == f'<bdi title="{"y" * 90}">{"y" * 79}…</bdi>'
    assert len(name("y" * 10**6)) < 1200
    assert name("<b>") == "<bdi>&lt;b&gt;</bdi>"


def test_bidi_isolated_changes_only_names_that_turn_the_text() -> None:
    assert bidi_isolated("plain, (with) 1 🧊") == "plain, (with) 1 🧊"
    assert bidi_isolated("\u202ex") == "\N{FIRST STRONG ISOLATE}\u202ex\N{POP DIRECTIONAL ISOLATE}"


def test_clean_replaces_characters_that_html_forbids() -> None:
    assert clean("a\x00b\ud800c\n") == "a\ufffdb\ufffdc\n"


def test_percent_sign_has_one_decimal_and_a_dash_for_none() -> None:
    assert (percent_sign(0.8351), percent_sign(None)) == ("83.5\N{NO-BREAK SPACE}%", "–")


def test_table_has_numbers_in_its_columns_unless_they_are_words() -> None:
    source = '{% import "macros.html" as ui %}{{ ui.table(["k", "v", "w"], rows, "C", [0, 2]) }}'
    made = rendered(source, rows=[("a", 1, "<x>")])
    assert '<th scope="row">a</th><td class="number">1</td><td>&lt;x&gt;</td>' in made
    assert '<th scope="col" class="number">v</th><th scope="col">w</th>' in made
    assert "<caption>C</caption>" in made


def test_content_policy_names_two_digests_and_forbids_the_rest() -> None:
    policy = content_policy("a", "b")
    for kind, content in (("style", b"a"), ("script", b"b")):
        digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


@pytest.mark.parametrize("file", ["page.css", *SCRIPTS, "results.css", "results.js"])
def test_template_text_of_styles_and_scripts_cannot_end_its_element(file: str) -> None:
    assert "</" not in template_text(file)
