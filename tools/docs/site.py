"""Hooks of MkDocs: the pages that do not lie in ``docs/``, and links that hold on the site as they do in the repository.

Pages link to files of the repository, as ``../rules/TRL302-dataloader-generator.md``, so that they can be read there. On the site such
a link leads to the page made from that file, or to the file on GitHub.
"""

from __future__ import annotations

import os
import posixpath
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

TOP = Path(__file__).parents[2]
sys.path.insert(0, str(TOP))  # MkDocs loads this file by its path

from tools.docs import drawing, rule_pages  # noqa: E402
from tools.docs.tables import FAMILIES  # noqa: E402

REPOSITORY = "https://github.com/torchrepro/torchrepro-lint/blob/main"
# Pages of the site that lie elsewhere in the repository.
ELSEWHERE = {
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
    "example.md": "examples/README.md",
    "rules/index.md": "docs/rules.md",
}
_FENCED = re.compile(r"^( *)(`{3,}).*?^\1\2[ ]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()(?!\w+:)([^)#\s]+)(#[^)\s]*)?(?=\))")
_SITE = re.compile(r"<!-- site: (.*?) -->", re.DOTALL)
_NOTE = re.compile(r"^<!-- (?:show: .*|numbers \w+|written by .*|end.*|drawn by .*|figures of .*) -->\n", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill in the navigation of rules and editors."""
    for entry in config.nav or ():
        if "Rules" in entry:
            entry["Rules"] = ["rules/index.md", *_rules()]
        if "Editors" in entry:
            pages = sorted(path.name for path in (TOP / "docs" / "editors").glob("*.md"))
            entry["Editors"] = [f"editors/{name}" for name in sorted(pages, key=lambda name: name != "index.md")]
    return config


def _rules() -> Iterator[dict[str, Any]]:
    files = sorted(path.name for path in (TOP / "rules").glob("TRL*.md"))
    for family, (title, _) in FAMILIES.items():
        pages = [{_title(name): f"rules/{name}"} for name in files if name.startswith(family)]
        yield {f"{title} ({family})": pages}


def _title(name: str) -> str:
    code, _, rest = name.removesuffix(".md").partition("-")
    return f"{code} {rest}"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of rules, those from elsewhere, and the two pages that the tool itself writes."""
    for name, text in rule_pages.readable_pages(sorted((TOP / "rules").glob("TRL*.md"))).items():
        files.append(File.generated(config, f"rules/{name}", content=text))
    for name, source in ELSEWHERE.items():
        files.append(File.generated(config, name, content=(TOP / source).read_text(encoding="utf-8")))
    for name, text in _written_by_the_tool().items():
        files.append(File.generated(config, name, content=text))
    return files


def _written_by_the_tool() -> dict[str, str]:
    """The table of operations, and a report on the example, as the tool writes them."""
    return {
        "operations-table.html": _printed("ops", "--output-format", "html"),
        "example-report.html": _printed("report", "examples", "--exit-zero", "-q"),
    }


def _operations() -> str:
    """All operations for the newest release, so that they can be searched."""
    title, _, table = _printed("ops", "--output-format", "markdown").partition("\n")
    return f"\n#{title}\n{table}"


def _printed(*words: str) -> str:
    command = [sys.executable, "-m", "torchrepro_lint", *words]
    environment = {**os.environ, "PYTHONPATH": str(TOP)}
    return subprocess.run(  # noqa: S603  this Python
        command, cwd=TOP, env=environment, check=True, stdout=subprocess.PIPE, encoding="utf-8"
    ).stdout


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links to files of the repository into links of the site, leave out comments, and draw."""
    del config
    text = _SITE.sub(r"\1", _NOTE.sub("", drawing.drawn(markdown)))
    if page.file.src_uri == "operations.md":
        text += _operations()
    parts, start = [], 0
    for match in _FENCED.finditer(text):
        parts += [relinked(text[start : match.start()], page.file.src_uri, files), match[0]]
        start = match.end()
    return "".join([*parts, relinked(text[start:], page.file.src_uri, files)])


def relinked(text: str, uri: str, files: Files) -> str:
    """A text of a page with its links as the site needs them."""
    here = posixpath.dirname(_source(uri))

    def link(match: re.Match[str]) -> str:
        source = posixpath.normpath(posixpath.join(here, match[1]))
        anchor = match[2] or ""
        for target in _targets(source):
            if files.get_file_from_path(target):
                return posixpath.relpath(target, posixpath.dirname(uri) or ".") + anchor
        return f"{REPOSITORY}/{source}{anchor}" if (TOP / source).exists() else match[0]

    return _LINK.sub(link, text)


def _source(uri: str) -> str:
    """Where in the repository a page of the site lies."""
    return ELSEWHERE.get(uri, uri if uri.startswith("rules/") else f"docs/{uri}")


def _targets(source: str) -> list[str]:
    """The pages of the site that may be made from a file of the repository."""
    found = [uri for uri, path in ELSEWHERE.items() if path == source]
    if source == "README.md":
        found.append("index.md")
    if source.startswith("rules/"):
        found.append(source)
    return [*found, source.removeprefix("docs/")] if source.startswith("docs/") else found
