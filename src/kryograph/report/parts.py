"""Parts of pages: words and frames that all sections share."""

from __future__ import annotations

from kryograph.labelling.fit import Labelled
from kryograph.report import charts
from kryograph.report.markup import Safe, name, tag

MOST_CLASSES = 24
"""A chart of more classes cannot be read; the others are put together."""


def percent(share: float | None) -> str:
    """With one decimal, the sign on the same line; a dash for none."""
    return "–" if share is None else f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def plural(count: int, what: str, many: str | None = None) -> str:
    """A count with its noun.

    >>> plural(1, "node"), plural(1200, "class", "classes")
    ('1 node', '1,200 classes')
    """
    return f"{count:,} {what if count == 1 else many or what + 's'}"


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


def class_name(labelled: Labelled, c: int) -> Safe:
    """A class with its sign."""
    sign = charts.swatch(c, len(labelled.classes))
    return tag("span", sign, name(labelled.classes[c]), class_="class")


def setting_value(value: object) -> str:
    """A setting's value."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def sets_named(labelled: Labelled) -> str:
    """What the prediction sets promise, as a name."""
    return f"{100 * labelled.calibration.coverage:g} % prediction sets"


def others(count: int) -> str:
    """The name of classes that are put together."""
    return f"{plural(count, 'other class', 'other classes')}"
