"""The pages of rules as readers of the site see them.

Their examples carry marks for the tests (``tests/page_examples.py``): ``# error: [TRL302] "part of the message"`` behind a line, and
words behind the language of a block. Here a mark becomes the whole message below the block, and the words become its title.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

TOP = Path(__file__).parents[2]
sys.path.insert(0, str(TOP / "tests"))

from page_examples import Example, examples, unmarked  # type: ignore[import-not-found, unused-ignore]  # noqa: E402

_BLOCK = re.compile(r"^```(?P<language>\w+)(?P<words>[^\n`]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"# error: \[(?P<code>TRL\d{3})\](?: \"(?P<part>[^\"]*)\")?")
_OPTIONS = {"torch": "for torch {}", "device": "for the device {}", "select": "with --select {}"}
_SETTINGS = ("pyproject.toml", "torchrepro-lint.toml")
# The messages of a file's findings, by row and code.
Messages = Mapping[tuple[int, str], list[str]]


def readable_pages(files: list[Path]) -> dict[str, str]:
    """The text of each page by its name, with marks and words turned into text."""
    told = _messages({file.name: examples(file) for file in files})
    return {file.name: _readable(file.read_text(encoding="utf-8"), told[file.name]) for file in files}


def _readable(page: str, told: Mapping[str, Messages]) -> str:
    return _BLOCK.sub(lambda match: _block(match, told), page)


def _messages(pages: Mapping[str, list[Example]]) -> dict[str, dict[str, dict[tuple[int, str], list[str]]]]:
    """What one run reports on all examples, each a project: page, text of the file, row and code to messages."""
    found: dict[str, dict[str, dict[tuple[int, str], list[str]]]] = {name: {} for name in pages}
    with tempfile.TemporaryDirectory(prefix="rules-") as scratch:
        top = Path(scratch).resolve()
        for name, each in pages.items():
            for number, example in enumerate(each):
                _write(example, top / name / str(number))
        for one in _linted(top):
            file = Path(one["filename"])
            page, folder, *rest = file.relative_to(top).parts
            rows = found[page].setdefault(pages[page][int(folder)].files["/".join(rest)], {})
            rows.setdefault((one["location"]["row"], one["code"]), []).append(one["message"])
    return found


def _write(example: Example, folder: Path) -> None:
    for path, text in {**_settings(example), **example.files}.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def _settings(example: Example) -> dict[str, str]:
    """The settings of an example that brings none."""
    if any(name in example.files for name in _SETTINGS):
        return {}
    options = example.options
    select = options.get("select")
    lines = [f"select = {json.dumps(select.split(','))}" if select else f'extend-select = ["{options["page"]}"]']
    lines += [f'torch-version = "{options["torch"]}"'] if "torch" in options else []
    lines += [f'device = "{options["device"]}"'] if "device" in options else []
    return {_SETTINGS[1]: "".join(f"{line}\n" for line in lines)}


def _linted(folder: Path) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "torchrepro_lint", str(folder), "--output-format", "json", "--exit-zero", "-q"]
    environment = {**os.environ, "PYTHONPATH": str(TOP)}
    ran = subprocess.run(  # noqa: S603  this Python
        command, cwd=TOP, env=environment, check=True, stdout=subprocess.PIPE, encoding="utf-8"
    )
    found: list[dict[str, Any]] = json.loads(ran.stdout)
    return found


def _block(match: re.Match[str], told: Mapping[str, Messages]) -> str:
    code = unmarked(match["code"])
    findings = list(_findings(match["code"], told.get(code, {})))
    rows = sorted({row for row, _ in findings})
    title = _title(match["words"].split())
    head = match["language"] + (f' title="{title}"' if title else "")
    head += f' hl_lines="{" ".join(map(str, rows))}"' if rows else ""
    lines = [f"- {f'Line {row}: ' if len(rows) > 1 else ''}{text}\n" for row, text in findings]
    return f"```{head}\n{code}```" + (f"\n\n{''.join(lines)}" if lines else "")


def _findings(code: str, told: Messages) -> Iterator[tuple[int, str]]:
    """Row and text of each mark: the message that has the mark's part, else that part."""
    for row, line in enumerate(code.splitlines(), 1):
        for mark in _MARK.finditer(line):
            part = mark["part"] or ""
            fitting = [message for message in told.get((row, mark["code"]), []) if part in message]
            yield row, f"**{mark['code']}** {_escaped(fitting[0]) if fitting else _escaped(part)}"


def _escaped(message: str) -> str:
    """A message as Markdown shows it letter by letter."""
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", message)


def _title(words: list[str]) -> str:
    """What the words behind the language say."""
    options = dict(word.split("=", 1) for word in words if "=" in word)
    said = [options["path"]] if "path" in options else []
    if "fixed" in words:
        said.append("after --fix --unsafe-fixes" if "unsafe" in words else "after --fix")
    said += [text.format(options[key]) for key, text in _OPTIONS.items() if key in options]
    return ", ".join(said)


def fixes(files: list[Path]) -> dict[str, set[str]]:
    """How safe the fixes of each rule are in the examples of the pages: ``safe``, ``unsafe`` or both."""
    found: dict[str, set[str]] = {}
    with tempfile.TemporaryDirectory(prefix="rules-") as scratch:
        for file in files:
            for number, example in enumerate(examples(file)):
                _write(example, Path(scratch) / file.name / str(number))
        for one in _linted(Path(scratch)):
            if one["fix"]:
                found.setdefault(one["code"], set()).add(one["fix"]["applicability"])
    return found
