"""The site builds without a warning, loads nothing from elsewhere, and can be searched."""

from __future__ import annotations

import functools
import http.server
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

import browser
from browser import Browser
from torchrepro_lint.checks import RULES

pytest.importorskip("material")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
TOP = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    ran = subprocess.run(command, cwd=TOP, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder


class Loads(HTMLParser):
    """What a page loads by itself: scripts, styles, images, frames, fonts."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link" and given.get("rel") in {"canonical", "next", "prev"}:
            return
        if tag in {"script", "img", "iframe", "link", "source"}:
            self.found += filter(None, (given.get("src"), given.get("href")))


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > len(RULES)
    for page in pages:
        loads = Loads()
        loads.feed(page.read_text(encoding="utf-8"))
        assert [each for each in loads.found if re.match(r"(?:https?:)?//", each)] == [], page
    # Material loads Mermaid from elsewhere where a page has a drawing of it.
    assert [page for page in pages if 'class="mermaid"' in page.read_text(encoding="utf-8")] == []


def test_every_rule_has_a_page_without_marks(site: Path) -> None:
    for rule in RULES:
        text = (site / "rules" / f"{rule.code}-{rule.name}" / "index.html").read_text(encoding="utf-8")
        assert "# error: [" not in text
        assert f"<strong>{rule.code}</strong>" in text, "the messages of its examples"


def test_links_between_files_of_the_repository_stay_on_the_site(site: Path) -> None:
    text = (site / "contributing" / "index.html").read_text(encoding="utf-8")
    assert 'href="../architecture/"' in text
    assert "blob/main/docs/" not in text


def test_the_search_index_has_rules_settings_and_operations(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    places = {entry["location"] for entry in index["docs"]}
    assert {"settings/#torch-version", "rules/TRL302-dataloader-generator/", "tutorial/"} <= places
    assert any(
        "torch.cumsum" in entry["text"] for entry in index["docs"] if entry["location"].startswith("operations/")
    )


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.skipif(browser.missing() is not None, reason=str(browser.missing()))
def test_search_finds_a_rule(address: str, chromium: Browser) -> None:
    chromium.emulate(1280, 900, "light")
    chromium.visit(f"{address}/")
    chromium.run("document.querySelector('.md-search__input').focus()")
    chromium.type(".md-search__input", "shuffled loader")
    assert "TRL302" in waited(chromium, "a.md-search-result__link")
    assert chromium.complaints() == []


@pytest.mark.skipif(browser.missing() is not None, reason=str(browser.missing()))
@pytest.mark.parametrize("page", ["", "rules/", "rules/TRL302-dataloader-generator/", "settings/", "command-line/"])
def test_no_page_is_wider_than_a_phone(address: str, chromium: Browser, page: str) -> None:
    chromium.emulate(390, 844, "dark")
    chromium.visit(f"{address}/{page}")
    assert chromium.run("return document.documentElement.scrollWidth") <= 390


@pytest.mark.skipif(browser.missing() is not None, reason=str(browser.missing()))
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", ["", "tutorial/", "rules/", "rules/TRL302-dataloader-generator/", "architecture/"])
def test_nothing_keeps_people_out(address: str, chromium: Browser, axe: str, page: str, scheme: str) -> None:
    chromium.emulate(1280, 900, scheme)
    chromium.visit(f"{address}/{page}")
    chromium.run(axe)
    script = "return axe.run({runOnly: ['wcag2a', 'wcag2aa']}).then(found => found.violations.map(each => each.id))"
    # Material lets the keyboard scroll wide code where there is a mouse, and this browser has none.
    assert [each for each in chromium.run(script) if each != "scrollable-region-focusable"] == []


def waited(window: Browser, selector: str) -> str:
    """The text of what a selector finds, once there is something."""
    script = "return Array.from(document.querySelectorAll(arguments[0]), each => each.textContent).join(' ')"
    for _ in range(100):
        text = window.run(script, selector)
        if text.strip():
            return str(text)
        time.sleep(0.1)
    raise AssertionError(f"nothing for {selector}")
