"""No text of the scanned code is interpreted as mark-up in a report."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from html_text import Taken
from overview_projects import STEADY, overview_of
from torchrepro_lint.interfaces.report import page_html, page_json, page_markdown
from torchrepro_lint.interfaces.report.html_document import visible

Project = Callable[[Mapping[str, str | bytes]], Path]

# Names that a file system may hold, and that a careless page would take for markup.
EVIL = "<img src=x onerror=alert(1)>"
HOSTILE = {
    f"{EVIL}.py": STEADY.replace("np.random.seed(0)\n", ""),
    "a\"b'c&amp;</script>.py": STEADY,
    "\u202egnp.py": STEADY.replace('"model.pt"', "'<script>alert(1)</script>\u202e\u2066'"),
    "tab\tand\x1b[31m.py": "def broken(:\n",
    "`|*_[x](y).py": STEADY.replace("random.seed(0)\nnp", "np"),
    "pyproject.toml": '[project]\nname = "</title><script>alert(1)</script>"\n',
    "<b>folder</b>/\u00e9t\u00e9.py": "import os, torch\n\u0434\u0430\u043d\u043d\u044b\u0435 = [torch.load(\u4e2d) for \u4e2d in os.listdir('<i>\u200f')]\n",
}
TAGS = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "a",
    "header",
    "div",
    "h1",
    "h2",
    "h3",
    "p",
    "section",
    "ol",
    "ul",
    "li",
    "nav",
    "main",
    "table",
    "caption",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "span",
    "details",
    "summary",
    "svg",
    "desc",
    "g",
    "path",
    "circle",
    "rect",
    "text",
    "b",
    "small",
    "dl",
    "dt",
    "dd",
    "code",
    "bdi",
    "wbr",
    "form",
    "label",
    "input",
    "select",
    "option",
    "button",
    "article",
    "pre",
    "i",
    "ins",
    "del",
    "strong",
    "em",
    "footer",
    "script",
}


def test_nothing_scanned_is_markup(project: Project) -> None:
    names = HOSTILE if sys.platform != "win32" else {"pyproject.toml": HOSTILE["pyproject.toml"]}
    overview = overview_of(project(names))
    page = page_html.render(overview)
    taken = Taken(page)
    assert taken.tags <= TAGS
    assert not any(name.startswith("on") or name in ("style", "src", "srcdoc") for _, name in taken.attributes)
    assert page.count("<script") == 1
    assert all(one.isprintable() or one == "\n" for one in page)
    assert EVIL in taken.text
    assert "\\u202egnp.py" in taken.text
    told = page_markdown.render(overview)
    assert "<img" not in re.sub(r"(`+).*?\1", "", told)
    assert "\x1b" not in told
    assert "\u202e" not in told
    assert json.loads(page_json.render(overview))["title"] == "</title><script>alert(1)</script>"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such a name")
def test_a_name_that_is_no_text_is_shown(project: Project) -> None:
    place = project({})
    with (place / "bad").with_name(os.fsdecode(b"bad\xff.py")).open("w") as file:
        file.write(STEADY.replace("np.random.seed(0)\n", ""))
    overview = overview_of(place)
    page_html.render(overview).encode()
    assert "bad\\udcff.py" in Taken(page_html.render(overview)).text
    assert json.loads(page_json.render(overview))["entries"][0]["path"] == "bad\udcff.py"


def test_the_policy_allows_the_page_and_nothing_else(project: Project) -> None:
    page = page_html.render(overview_of(project({"run.py": STEADY})))
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert "http" not in policy


@pytest.mark.parametrize("text", ["a\u202eb", "\x00", "\u2066", "\udcff", "\u00a0", "\n"])
def test_what_does_not_show_is_shown(text: str) -> None:
    assert visible(text).isprintable()
    assert visible(text) != text
