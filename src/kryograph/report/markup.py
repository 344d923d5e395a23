"""Markup: HTML and SVG in which whatever is not markup already is escaped.

Every value of a page goes through `tag`, so that a label named `<script>` stays a label.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterable, Sequence

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


def joined(parts: Iterable[object], between: str = "") -> Safe:
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


def isolated(value: str) -> str:
    """A name for use inside a sentence: one that is written from right to left turns nothing else.

    >>> isolated("cats"), isolated("\N{HEBREW LETTER ALEF}") == "cats"
    ('cats', False)
    """
    text = shortened(value)
    if any(unicodedata.bidirectional(letter) in _SEPARATE for letter in text):
        return f"\N{FIRST STRONG ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}"
    return text


def table(
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
