"""Console examples of a page: each is run, and holds what the commands print in a terminal.

A page is a script. Its blocks are followed from top to bottom in a scratch folder that holds a copy of ``examples/``:

```` ```python title="train.py" ````  writes that file; ``toml`` and other languages with a title do so, too
```` ```diff title="train.py" ````    changes that file
```` ```console ````                  runs each line that begins with ``$``, and shows what it prints

A comment of HTML before a console block says which part of the output is shown:

``<!-- show: 1-8, /missing/+1, -2 -->``  lines by number (from the end where negative), and those that a pattern matches, with
                                         the number of lines after them; "…" stands for what is left out. ``cut 100`` cuts lines
``<!-- numbers differ -->``              each command prints other numbers: those on the page are of the run that wrote it
``<!-- numbers agree -->``               each command prints the same numbers, on this machine; other machines may print others
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).parents[2]
COLUMNS = 88
SHELL = shutil.which("sh") or "/bin/sh"
LEFT_OUT = "…"
# Where a reader's project may lie: stands for the scratch folder, whose name changes.
PROJECT = "/home/you/project"
_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>show: [^\n]*|numbers (?:differ|agree)) -->\n\n?)?"
    r"^(?P<open>[ ]*)(?P<fence>`{3,})(?P<language>\w+)(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=open)(?P=fence)[ ]*$",
    re.MULTILINE | re.DOTALL,
)
_TITLE = re.compile(r'title="([^"]+)"')
_NUMBER = re.compile(r"\d+\.\d+")
_ITEM = re.compile(r"/(?P<pattern>.+?)/(?:\+(?P<after>\d+))?|(?P<first>-?\d+)(?:-(?P<last>\d+))?|cut (?P<cut>\d+)")
_PROGRESS = re.compile(r"\r(?:\[[#.]*\] \d+/\d+ files|\x1b\[K)")


class Block(NamedTuple):
    """A fenced block: where its text stands in the page, and what is said of it."""

    start: int
    end: int
    language: str
    title: str
    note: str
    indent: str
    text: str


class Wrong(NamedTuple):
    """A block that does not hold what its commands print."""

    block: Block
    printed: str


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page that say something to this module, in order."""
    for match in _BLOCK.finditer(page):
        title = _TITLE.search(match["info"])
        if match["language"] == "console" or title:
            indent = match["open"]
            text = re.sub(f"^{indent}", "", match["text"], flags=re.MULTILINE)
            named = title[1] if title else ""
            yield Block(*match.span("text"), match["language"], named, match["note"] or "", indent, text)


def check(page: str) -> list[Wrong]:
    """Run a page; the console blocks that hold something else than what is printed."""
    if "```console" not in page:
        return []
    with scratch() as folder:
        return [wrong for block in blocks(page) for wrong in _follow(block, folder)]


def rewritten(page: str) -> str:
    """The page with the output of its commands as it is now."""
    for wrong in reversed(check(page)):
        text = re.sub("^(?=.)", wrong.block.indent, wrong.printed, flags=re.MULTILINE)
        page = page[: wrong.block.start] + text + page[wrong.block.end :]
    return page


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder with a copy of the example."""
    with tempfile.TemporaryDirectory(prefix="docs-") as folder:
        work = Path(folder).resolve() / "work"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(TOP / "examples", work / "examples", ignore=ignored)
        yield work


def _follow(block: Block, folder: Path) -> Iterator[Wrong]:
    if block.language == "console":
        commands = [line[2:] for line in block.text.splitlines() if line.startswith("$ ")]
        outputs = [in_terminal(command, folder) for command in commands]
        _compare_numbers(block.note, outputs)
        printed = "".join(f"$ {each}\n{shown(out, block.note)}" for each, out in zip(commands, outputs, strict=True))
        if _stable(printed, block.note) != _stable(block.text, block.note):
            yield Wrong(block, printed)
    elif block.language == "diff":
        file = folder / block.title
        file.write_text(patched(file.read_text(encoding="utf-8"), block.text), encoding="utf-8")
    else:
        file = folder / block.title
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text, encoding="utf-8")


def _compare_numbers(note: str, outputs: list[str]) -> None:
    """Raise ``ValueError`` where the outputs do not differ, or agree, as the note says."""
    different = len({tuple(_NUMBER.findall(each)) for each in outputs})
    wanted = {"numbers differ": len(outputs), "numbers agree": 1}.get(note, different)
    if len(outputs) < 2 and note.startswith("numbers"):
        raise ValueError(f"{note}: a block with one command")
    if different != wanted or (note.startswith("numbers") and not all(map(_NUMBER.search, outputs))):
        raise ValueError(f"{note}: not so in {outputs}")


def _stable(text: str, note: str) -> str:
    return _NUMBER.sub("#", text) if note.startswith("numbers") else text


def in_terminal(command: str, folder: Path, **variables: str) -> str:
    """What a shell command prints in a terminal without colour, both streams as they come."""
    import pty

    with tempfile.TemporaryDirectory(prefix="bin-") as tools:
        _write_shims(Path(tools))
        environment = _environment(folder, tools) | variables
        ours, theirs = pty.openpty()
        process = subprocess.Popen(  # noqa: S603  the commands of the project's own pages
            [SHELL, "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        output = _read_all(ours)
        process.wait()
    text = output.decode("utf-8").replace("\r\n", "\n").replace(str(folder), PROJECT)
    return _PROGRESS.sub("", text)


def _read_all(terminal: int) -> bytes:
    output = b""
    while True:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:  # Linux says so when the last process has closed the terminal
            piece = b""
        if not piece:
            os.close(terminal)
            return output
        output += piece


def _write_shims(folder: Path) -> None:
    """The tool of this checkout, and the Python that runs it, under the names that a reader types."""
    for name, words in (("torchrepro-lint", "-m torchrepro_lint"), ("python", "")):
        shim = folder / name
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n', encoding="utf-8")
        shim.chmod(0o755)


def _environment(folder: Path, tools: str) -> dict[str, str]:
    dropped = ("FORCE_COLOR", "PYTHONHASHSEED", "PYTHONPATH", "GITHUB_", "CI_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    return kept | {
        "PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', '')}",
        "PYTHONPATH": os.environ.get("DOCS_PROGRAM", str(TOP)),
        "PYTHONWARNINGS": "ignore",
        "NO_COLOR": "1",
        "TERM": "xterm-256color",
        "COLUMNS": str(COLUMNS),
        "LINES": "50",
        "OMP_NUM_THREADS": "1",
        "TORCHREPRO_LINT_CACHE_DIR": str(folder.parent / "cache"),
    }


def shown(output: str, note: str) -> str:
    """The lines of an output that a note asks for; raises ``ValueError`` where a pattern matches nothing."""
    lines = [line.rstrip() for line in output.splitlines()]
    if not note.startswith("show: "):
        return "".join(f"{line}\n" for line in lines)
    kept, width = _chosen(lines, note.removeprefix("show: "))
    result, last = "", -1
    for index in [*sorted(kept), len(lines)]:
        result += f"{LEFT_OUT}\n" if index > last + 1 else ""
        result += f"{_cut(lines[index], width)}\n" if index < len(lines) else ""
        last = index
    return result


def _chosen(lines: list[str], wanted: str) -> tuple[set[int], int]:
    kept: set[int] = set()
    width = 10_000
    for item in _ITEM.finditer(wanted):
        if item["cut"]:
            width = int(item["cut"])
        elif item["pattern"]:
            kept |= _matched(lines, item["pattern"], int(item["after"] or 0))
        elif item["first"].startswith("-"):
            kept |= set(range(len(lines) + int(item["first"]), len(lines)))
        else:
            kept |= set(range(int(item["first"]) - 1, min(int(item["last"] or item["first"]), len(lines))))
    return kept, width


def _matched(lines: list[str], pattern: str, after: int) -> set[int]:
    found = [index for index, line in enumerate(lines) if re.search(pattern, line)]
    if not found:
        raise ValueError(f"no line of the output matches {pattern!r}: {lines}")
    return {row for index in found for row in range(index, min(index + after + 1, len(lines)))}


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 1].rstrip()}{LEFT_OUT}"


def patched(text: str, diff: str) -> str:
    """A text with the hunks of a diff applied; raises ``ValueError`` where one does not fit in exactly one place."""
    for hunk in re.split(r"^@@.*\n", diff, flags=re.MULTILINE):
        lines = [line for line in hunk.splitlines() if not line.startswith(("---", "+++"))]
        before = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
        after = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
        if not before and not after:
            continue
        if text.count(before) != 1:
            raise ValueError(f"this stands {text.count(before)} times in the file:\n{before}")
        text = text.replace(before, after)
    return text
