"""HTML pages from the templates of this package.

A page is one file that opens without network. Style and script are inside it, and its
Content-Security-Policy names their digests and forbids everything else. Autoescaping is on, so a
class that is called `<script>` stays text.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kryograph.text import percent, plural

MAX_NAME_LENGTH = 80
"""Names are cut to this many characters; the tooltip (`title`) has up to `MAX_TITLE_LENGTH`."""

MAX_TITLE_LENGTH = 1000

_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_TURNS_TEXT = frozenset({"R", "AL", "RLE", "RLO", "RLI", "LRE", "LRO", "LRI", "FSI", "PDF", "PDI"})


def clean(value: object) -> str:
    """Replace the characters that HTML or UTF-8 does not allow."""
    return _NOT_TEXT.sub("\N{REPLACEMENT CHARACTER}", str(value))


def shortened(value: object, length: int = MAX_NAME_LENGTH) -> str:
    """Cut a text to at most `length` characters.

    >>> shortened("abcdef", 4)
    'abc…'
    """
    text = clean(value)
    return text if len(text) <= length else text[: length - 1] + "…"


def name(value: object) -> Markup:
    """A name chosen by the user: cut, and with a text direction of its own.

    >>> name("a < b")
    Markup('<bdi>a &lt; b</bdi>')
    """
    text = shortened(value)
    if text == clean(value):
        return Markup("<bdi>{}</bdi>").format(text)
    return Markup('<bdi title="{}">{}</bdi>').format(shortened(value, MAX_TITLE_LENGTH), text)


def bidi_isolated(value: str) -> str:
    """A name for plain text: if it is written from right to left, isolate characters surround it.

    >>> bidi_isolated("cats"), bidi_isolated("\N{HEBREW LETTER ALEF}") == "cats"
    ('cats', False)
    """
    text = shortened(value)
    if any(unicodedata.bidirectional(letter) in _TURNS_TEXT for letter in text):
        return f"\N{FIRST STRONG ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}"
    return text


def percent_sign(share: float | None) -> str:
    """Format a fraction in per cent with its sign; None is a dash.

    >>> percent_sign(0.8351) == "83.5\N{NO-BREAK SPACE}%", percent_sign(None)
    (True, '–')
    """
    return "–" if share is None else f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def embedded_json(data: object) -> Markup:
    """JSON for the inside of a script element: no character of it can end that element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def template_text(file: str) -> str:
    """Text of a style sheet or script among the templates."""
    return files("kryograph.report").joinpath("templates", file).read_text("utf-8")


def content_policy(style: str, *scripts: str) -> str:
    """Content-Security-Policy that allows this style and these scripts and nothing else."""

    def digest(content: str) -> str:
        return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()

    allowed = " ".join(f"'sha256-{digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; style-src 'sha256-{digest(style)}'; "
        f"script-src {allowed}; base-uri 'none'; form-action 'none'"
    )


@cache
def environment() -> Environment:
    """Jinja environment of the pages."""
    pages = Environment(
        loader=PackageLoader("kryograph.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if hasattr(value, "__html__") else clean(value),
    )
    pages.filters |= {
        "name": name,
        "bidi_isolated": bidi_isolated,
        "percent": percent_sign,
        "points": percent,
        "json": embedded_json,
        "plural": plural,
        "thousands": lambda count: f"{count:,}",
    }
    return pages


def render_page(template: str, *, style: str, scripts: Sequence[str], **context: Any) -> str:
    """Render a template that extends `page.html`, which lists the variables that it needs.

    `style` and `scripts` are texts.
    """
    page = environment().get_template(template)
    policy = content_policy(style, *scripts)
    inside = {"style": Markup(style), "scripts": [Markup(script) for script in scripts]}
    return page.render(policy=policy, **inside, **context)
