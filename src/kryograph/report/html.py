"""Markup: HTML and SVG in which whatever is not markup already is escaped.

Every value of a page goes through `tag`, so that a label named `<script>` stays a label.

One file: a page that holds its style and script, and may load or run nothing else.

Parts of pages: words and frames that all sections share.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from importlib.resources import files

from kryograph.labelling.label import LabelledGraph
from kryograph.report import charts
from kryograph.text import plural

LONG = 80
"""Names are cut after this many characters; the whole is in the `title`."""

_LONGEST = 1000
"""Even a `title` ends somewhere."""

_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_SEPARATE = frozenset({"R", "AL", "RLE", "RLO", "RLI", "LRE", "LRO", "LRI", "FSI", "PDF", "PDI"})


class Safe(str):
    """Text that is markup."""


def clean(value: object) -> str:
    """Text without the characters that no HTML or UTF-8 file may have."""
    return _NOT_TEXT.sub("\N{REPLACEMENT CHARACTER}", str(value))


def safe(value: object) -> Safe:
    """Markup of anything: itself if it is markup, else escaped."""
    return value if isinstance(value, Safe) else Safe(html.escape(clean(value)))


def tag(name: str, *children: object, **attributes: object) -> Safe:
    """An element; an attribute that is None is left out, `_` in its name is written `-`.

    >>> tag("a", "x < y", href="#z", class_="plain", title=None)
    '<a href="#z" class="plain">x &lt; y</a>'
    """
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(clean(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Safe(f"<{name}{said}>{''.join(safe(child) for child in children)}</{name}>")


def join_markup(parts: Iterable[object], between: str = "") -> Safe:
    """Markup of one part after the other."""
    return Safe(safe(between).join(safe(part) for part in parts))


def shortened(value: object, length: int = LONG) -> str:
    """At most so many characters.

    >>> shortened("abcdef", 4)
    'abc…'
    """
    text = clean(value)
    return text if len(text) <= length else text[: length - 1] + "…"


def name(value: object) -> Safe:
    """Something that the user named: kept apart from the direction of the text around it."""
    text = shortened(value)
    whole = shortened(value, _LONGEST) if text != clean(value) else None
    return tag("bdi", text, title=whole)


def bidi_isolated(value: str) -> str:
    """A name for use inside a sentence: one that is written from right to left turns nothing else.

    >>> bidi_isolated("cats"), bidi_isolated("\N{HEBREW LETTER ALEF}") == "cats"
    ('cats', False)
    """
    text = shortened(value)
    if any(unicodedata.bidirectional(letter) in _SEPARATE for letter in text):
        return f"\N{FIRST STRONG ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}"
    return text


def html_table(
    headings: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    caption: str,
    words: Sequence[int] = (0,),
    class_: str | None = None,
) -> Safe:
    """A table whose columns are numbers, but for those that are `words`; it may scroll sideways."""

    def kind(column: int) -> str | None:
        return None if column in words else "number"

    head = [tag("th", text, scope="col", class_=kind(i)) for i, text in enumerate(headings)]
    body = [
        tag(
            "tr",
            tag("th", row[0], scope="row", class_=kind(0)),
            *(tag("td", text, class_=kind(i)) for i, text in enumerate(row) if i),
        )
        for row in rows
    ]
    made = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *head)),
        tag("tbody", *body),
        class_=class_,
    )
    return tag("div", made, class_="scroll", tabindex="0", role="region", aria_label=caption)


def embedded_json(data: object) -> Safe:
    """JSON that may stand inside a script element: nothing in it can end that element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Safe(text)


def asset(name: str) -> str:
    """The text of a file that comes with the pages."""
    return files("kryograph.report").joinpath("assets", name).read_text("utf-8")


def policy(style: str, script: str) -> Safe:
    """A Content-Security-Policy that names the digests of the two, and forbids all else."""

    def digest(content: str) -> str:
        return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()

    return safe(
        f"default-src 'none'; style-src 'sha256-{digest(style)}'; "
        f"script-src 'sha256-{digest(script)}'; base-uri 'none'; form-action 'none'"
    )


MOST_CLASSES = 24
"""A chart of more classes cannot be read; the others are put together."""


def percent_sign(share: float | None) -> str:
    """With one decimal, the sign on the same line; a dash for none."""
    return "–" if share is None else f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def paragraph(*words: object, class_: str | None = None) -> Safe:
    """Some sentences."""
    return tag("p", *words, class_=class_)


def section(key: str, heading: str, *parts: object) -> Safe:
    """A part of the page that can be linked to."""
    title = tag("h2", heading, id=f"{key}-title")
    return tag("section", title, *parts, id=key, aria_labelledby=f"{key}-title")


def folded(heading: str, *parts: object) -> Safe:
    """What is shown when it is asked for."""
    return tag("details", tag("summary", heading), *parts)


def figure(heading: str, picture: Safe, caption: object, numbers: Safe) -> Safe:
    """A picture with its heading, its caption, and its numbers as a table."""
    said = tag("figcaption", caption)
    return tag("figure", tag("h3", heading), picture, said, folded("Numbers as a table", numbers))


def class_name(labelled: LabelledGraph, c: int) -> Safe:
    """A class with its sign."""
    sign = charts.swatch(c, len(labelled.classes))
    return tag("span", sign, name(labelled.classes[c]), class_="class")


def setting_value(value: object) -> str:
    """A setting's value."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def sets_named(labelled: LabelledGraph) -> str:
    """What the prediction sets promise, as a name."""
    return f"{100 * labelled.calibration.coverage:g} % prediction sets"


def others(count: int) -> str:
    """The name of classes that are put together."""
    return f"{plural(count, 'other class', 'other classes')}"
