"""The command ``report``: its formats agree, and equal input gives equal bytes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from conftest import Ran
from html_text import Taken
from overview_projects import STEADY, STUDY, many, overview_of
from torchrepro_lint.interfaces.report import page_html, page_json, page_markdown

Project = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]


def test_the_suffix_or_the_option_says_the_format(project: Project, lint: Lint) -> None:
    place = project({"run.py": STEADY})
    starts = {"a.html": "<!doctype html>", "b.json": "{", "c.md": "# ", "d": "<!doctype html>"}
    for name, start in starts.items():
        assert lint("report", "-o", name).status == 0
        assert (place / name).read_text(encoding="utf-8").startswith(start)
    assert lint("report", "-o", "e.html", "--output-format", "json").status == 0
    assert json.loads((place / "e.html").read_text())["schema"] == 1
    assert lint("report", "--output-format", "markdown").out == (place / "c.md").read_text(encoding="utf-8")


def test_a_suffix_that_names_no_format_is_refused(project: Project, lint: Lint) -> None:
    place = project({"run.py": STEADY})
    assert lint("report", "-o", "a.txt") == Ran(
        2,
        "",
        "torchrepro-lint: a.txt: the suffix '.txt' names no format; use .html, .htm, .json, .md or .markdown, "
        "or add --output-format\n",
    )
    assert not (place / "a.txt").exists()
    assert lint("report", "-o", "a.txt", "--output-format", "markdown").status == 0
    assert (place / "a.txt").read_text(encoding="utf-8").startswith("# ")
    assert lint("report", "-o", "a.HTML").status == 0


@pytest.mark.parametrize("command", [["report", "run.py"], ["ops", "cumsum"], ["check", "run.py"]])
def test_the_option_for_a_file_has_the_same_name_everywhere(project: Project, lint: Lint, command: list[str]) -> None:
    place = project({"run.py": "import torch\ntorch.backends.cudnn.benchmark = True\n"})
    printed = lint(*command).out
    for option in ("-o", "--output-file", *(["--output"] if command[0] != "check" else [])):
        assert lint(*command, option, "page.html").out == ""
        assert (place / "page.html").read_text(encoding="utf-8") == printed != ""
        (place / "page.html").unlink()
    told = lint(command[0], "--help").out
    assert "-o, --output-file FILE" in told
    assert "--output " not in told


def test_the_exit_status_is_that_of_other_commands(project: Project, lint: Lint) -> None:
    project({**STUDY, "broken.py": "def ("})
    ran = lint("report", "steady.py")
    assert (ran.status, ran.err) == (0, "1 entry point; no findings\n")
    assert lint("report", "-o", "page.html").status == 1
    assert lint("report", "-o", "page.html", "--exit-zero").status == 0
    assert lint("report", "--select", "TRL102", "helpers.py").status == 0
    missing = lint("report", "nowhere.py", "steady.py")
    assert (missing.status, "nowhere.py: no such file" in missing.err) == (2, True)
    for wrong in (["--torch-version", "x"], ["--select", "TRL999"], ["--compare", "none.json"]):
        ran = lint("report", *wrong)
        assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)


def test_a_folder_without_python_gets_a_hint(project: Project, lint: Lint) -> None:
    project({"notes/read.txt": ""})
    said = "o Python files or notebooks found; torchrepro-lint --show-settings shows what is excluded\n"
    assert lint("report", "notes").err == f"N{said}"
    assert lint("report", "-o", "page.html", "notes") == Ran(0, "", f"page.html: n{said}")
    assert "shows what is excluded" not in lint("report", "nowhere").err


def test_options_reach_the_analysis(project: Project, lint: Lint) -> None:
    project(STUDY)
    found = json.loads(
        lint("report", "--output-format", "json", "--torch-version", "2.0", "--device", "cpu", "--title", "Ours").out
    )
    assert (found["title"], found["aims"][0]["torch"]) == ("Ours", "2.0")
    assert {entry["device"] for entry in found["entries"]} == {"cpu"}
    found = json.loads(lint("report", "--output-format", "json", "--select", "TRL102,TRL201").out)
    assert {item["code"] for item in found["findings"]} == {"TRL102", "TRL201"}
    assert found["title"] == "study"
    # What nobody looked for was not found absent.
    cells = {cell["control"]: cell for cell in found["entries"][0]["cells"]}
    assert {key for key, cell in cells.items() if cell["says"] == "not checked"} == {"workers", "order"}
    assert cells["order"]["state"] == "unknown"


def test_all_formats_count_the_same_entry_points(project: Project, lint: Lint) -> None:
    draws = "import torch\ntorch.save(torch.rand(3), 'out.pt')\n"
    idle = "import torch\ntorch.backends.cudnn.benchmark = True\nprint(torch.rand(5))\n"
    project({"a.py": draws, "b.py": draws, "idle.py": idle})
    said = "2 of 2 entry points whose run saves or measures something have something to fix; 1 more saves and measures nothing."
    ran = lint("report")
    assert ran.err.startswith("3 entry points, of which 1 saves and measures nothing; ")
    assert f'<p class="verdict">{said}</p>' in ran.out
    told = lint("report", "--output-format", "markdown").out
    assert f"**{said}**" in told
    assert "\n| `idle.py` (saves and measures nothing) | " in told
    entries = json.loads(lint("report", "--output-format", "json").out)["entries"]
    assert [(entry["path"], entry["matters"]) for entry in entries] == [
        ("a.py", True),
        ("b.py", True),
        ("idle.py", False),
    ]


def test_a_file_is_written_whole_or_not_at_all(project: Project, lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    place = project({"run.py": STEADY, "page.html": "old"})
    (place / "page.html").chmod(0o640)
    (place / "link.html").symlink_to("page.html")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", fail)
        ran = lint("report", "-o", "page.html")
    assert (ran.status, "page.html: cannot be written: No space left" in ran.err) == (2, True)
    assert (place / "page.html").read_text() == "old"
    assert sorted(path.name for path in place.iterdir()) == ["link.html", "page.html", "run.py"]
    assert lint("report", "-o", "link.html").status == 0
    assert (place / "link.html").is_symlink()
    assert (place / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert (place / "page.html").stat().st_mode & 0o777 == 0o640
    assert lint("report", "-o", "new/page.html").status == 0
    assert (place / "new" / "page.html").exists()


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="no such device")
def test_a_pipe_is_written_to(project: Project, tmp_path: Path) -> None:
    project({"run.py": STEADY})
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "torchrepro_lint", "report", "-o", "/dev/stdout", "--output-format", "json", "-q"]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert json.loads(ran.stdout)["schema"] == 1


def strings(record: Any, *keys: str) -> Iterator[str]:
    """The texts under these keys, wherever they stand."""
    if isinstance(record, dict):
        for key, value in record.items():
            if key in keys and isinstance(value, str):
                yield value
            yield from strings(value, *keys)
    elif isinstance(record, list):
        for each in record:
            yield from strings(each, *keys)


SHOWN = ("says", "because", "message", "why", "what", "operation", "code", "severity")


def test_page_and_markdown_say_what_the_json_says(project: Project) -> None:
    overview = overview_of(
        project({**STUDY, "broken.py": "def (", "pkg/quiet.py": "import torch\ntorch.rand(2)  # noqa\n"})
    )
    record = json.loads(page_json.render(overview))
    page = Taken(page_html.render(overview)).text
    plain = re.sub(r"\\(?=[\\`*_{}\[\]|~^$])", "", page_markdown.render(overview)).replace("&#35;", "#").lower()
    plain = plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").replace("&#64;", "@")
    texts = sorted(set(strings(record, *SHOWN)))
    assert len(texts) > 60
    for text in texts:
        # A sentence begins with a capital.
        assert " ".join(text.split()).lower() in page.lower(), text
        assert text.lower() in plain or text in ("", "set", "hidden", "package", "rule"), text
    for entry in overview.entries:
        assert all(moment.text in page for moment in entry.timeline.moments)


def test_places_and_fixes_are_in_all_formats(project: Project) -> None:
    overview = overview_of(project(STUDY))
    page, told = page_html.render(overview), page_markdown.render(overview)
    for item in overview.findings:
        assert f'id="{item.id}"' in page
        assert str(item.place) in told
        assert all(row.text in told for row in item.source)
        for line in item.fix.changes if item.fix else ():
            assert f"{line.sign} {line.text}" in told
    assert page.count('class="diff"') == sum(item.fix is not None for item in overview.findings)


def test_every_link_leads_somewhere(project: Project) -> None:
    taken = Taken(page_html.render(overview_of(project(STUDY))))
    assert len(taken.ids) == len(set(taken.ids))
    inner = {value[1:] for tag, name, value in taken.values if name == "href" and value.startswith("#")}
    assert inner <= set(taken.ids)
    outer = {value for _, name, value in taken.values if name in ("href", "src") and not value.startswith("#")}
    assert all(value.startswith("https://github.com/torchrepro/") for value in outer)
    labels = {
        one
        for _, name, value in taken.values
        if name in ("aria-labelledby", "aria-describedby")
        for one in value.split()
    }
    assert labels <= set(taken.ids)
    assert taken.open == []


TWICE = """
import contextlib, sys
from torchrepro_lint.interfaces.cli.app import main
for kind in ("html", "json"):
    with contextlib.suppress(SystemExit):
        main(["report", *sys.argv[1:], "--output-format", kind, "--no-cache", "-q"])
"""


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    written = []
    for seed, name in (("0", "here"), ("1", "elsewhere/and/deeper")):
        place = tmp_path / name
        for path, text in sorted(STUDY.items(), reverse=seed == "1"):
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text(text)
        given, cwd = (".", place) if seed == "0" else (str(place), tmp_path)
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-c", TWICE, given]
        ran = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, check=True)
        written.append(ran.stdout)
        shutil.rmtree(place)
    assert written[0] == written[1]
    assert written[0].count(b"</html>") == written[0].count(b'"schema": 1') == 1
    assert str(tmp_path).encode() not in written[0]


def test_a_page_grows_with_what_is_in_it_and_no_faster(project: Project, tmp_path: Path) -> None:
    place = project({})
    sizes = []
    for number in (30, 60):
        for path, text in many(number, 2).items():
            (place / path).parent.mkdir(exist_ok=True)
            (place / path).write_text(text)
        overview = overview_of(place)
        assert len(overview.entries) == number
        sizes.append(len(page_html.render(overview)))
    assert sizes[1] < 2 * sizes[0]
