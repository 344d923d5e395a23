"""Page of a session: one HTML file without data, with style and script inside it."""

from __future__ import annotations

from functools import cache

from markupsafe import Markup

import kryograph
from kryograph.report.html import content_policy, environment, template_text


@cache
def page_and_policy() -> tuple[str, str]:
    """The page and its Content-Security-Policy, which names the digests of style and script."""
    style, script = template_text("label.css"), template_text("label.js")
    page = environment().get_template("label.html")
    text = page.render(style=Markup(style), script=Markup(script), version=kryograph.__version__)
    policy = content_policy(style, script)
    return text, f"{policy}; connect-src 'self'; img-src data:; frame-ancestors 'none'"
