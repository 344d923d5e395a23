from __future__ import annotations

import base64
import hashlib
import re

from kryograph.session.page import page_and_policy


def test_the_policy_names_the_digests_of_style_and_script() -> None:
    page, policy = page_and_policy()
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        [content] = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


def test_the_page_names_no_other_address_and_inserts_no_markup() -> None:
    page, _ = page_and_policy()
    assert set(re.findall(r"https?://[^\s\"']+", page)) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", page)
    assert not re.search(r"\son\w+=|\sstyle=", re.sub(r"<script>.*</script>", "", page, flags=re.S))
