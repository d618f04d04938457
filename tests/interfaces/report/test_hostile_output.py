"""Nothing in files, settings or strings becomes a command for a terminal or for GitHub's log."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from conftest import Ran
from html_text import Taken
from torchrepro_lint.source.errors import CONTROL_CHARACTERS, escaped, escaped_line, escaped_message, escaped_path

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows refuses such names")
linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")

NASTY = "\x1b]0;PWN\x07\u009b31m\u202e\u061c"
SHOWN = "\\x1b]0;PWN\\x07\\x9b31m\\u202e\\u061c"
FLAW = "import torch\n\ntorch.backends.cudnn.benchmark = True\n"
MODEL = "import torch\n\n\ndef draw():\n    return torch.randn(3)\n"
# What Unicode calls Bidi_Control, which Python's database does not name.
BIDI_CONTROL = {0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
# Of the formats those that show, as signs around numbers, and the joiners, which letters of Persian and emoji need.
SEEN = {*range(0x0600, 0x0606), 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, 0x110BD, 0x110CD, 0x200C, 0x200D}


def harmless(text: str) -> bool:
    """Whether text that was printed holds nothing that a terminal or GitHub's log obeys."""
    commands = re.search(r"^\s*::|##\[", text, re.MULTILINE)
    return commands is None and re.search(f"(?![\n])[{CONTROL_CHARACTERS}\udc80-\udc9f]", text) is None


def test_all_that_unicode_hides_is_shown() -> None:
    hidden = re.compile(f"[{CONTROL_CHARACTERS}]")
    for number in range(sys.maxunicode + 1):
        kind = unicodedata.category(chr(number))
        wanted = kind in ("Cc", "Zl", "Zp") or (kind == "Cf" and number not in SEEN) or number in BIDI_CONTROL
        if wanted:
            assert hidden.fullmatch(chr(number)), hex(number)
            assert escaped(chr(number)).isascii()
        elif kind != "Cn" and not 0xD800 <= number < 0xE000:  # a newer Unicode may name what Python does not know yet
            assert escaped(chr(number)) == chr(number)


@pytest.mark.parametrize(
    ("text", "line", "name", "quoted"),
    [
        ("a\x1b\udc9b\udce9", "a\\x1b\\x9b\udce9", "a\\x1b\\x9b\udce9", "a\\x1b\\udc9b\\udce9"),
        ("::error::x", "\\x3a:error::x", "./::error::x", "::error::x"),
        (" \xa0::error::x", " \xa0\\x3a:error::x", "./ \xa0::error::x", " \xa0::error::x"),
        ("a::b ##[c]", "a::b #\\x23[c]", "a::b #\\x23[c]", "a::b #\\x23[c]"),
        ("\u3042 \U000e0041", "\u3042 \\U000e0041", "\u3042 \\U000e0041", "\u3042 \\U000e0041"),
    ],
)
def test_shown(text: str, line: str, name: str, quoted: str) -> None:
    assert (escaped_line(text), escaped_path(text), escaped_message(text)) == (line, name, quoted)
    assert escaped_line(line) == line
    assert escaped_path(name) == name


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_strings_of_a_traced_program(project: Maker, lint: Lint, output_format: str) -> None:
    """Also where a text that is too long goes on in the next line, and where halves of pairs would make up a character."""
    value = r"\udcc2\udc9b31mRED \udce2\udc80\udcae \udc9b \x1b[31m \u061c ##[error]x " + "w " * 60 + "::error::x"
    settings = "".join(f'os.environ["PYTHONHASHSEED"] = "{"w " * count}::error::x"\n' for count in range(45))
    text = f'import os, torch\nos.environ["CUBLAS_WORKSPACE_CONFIG"] = "{value}"\n{settings}torch.rand(3)\n'
    project({"::error::a.py": text + "torch.use_deterministic_algorithms(True)\n"})
    ran = lint("trace", "::error::a.py", "--output-format", output_format)
    assert ran.status == 0
    assert harmless(ran.out)
    if output_format == "text":
        assert ran.out.startswith("./::error::a.py  torch ")
        assert (
            "CUBLAS_WORKSPACE_CONFIG = \\udcc2\\udc9b31mRED \\udce2\\udc80\\udcae \\udc9b \\x1b[31m \\u061c"
            in " ".join(ran.out.split())
        )
        assert "\\x3a:error::x" in ran.out
    else:
        values = [each["value"] for each in json.loads(ran.out)[0]["moments"]]
        assert any(
            str(each).startswith("\udcc2\udc9b31mRED \udce2\udc80\udcae \udc9b \x1b[31m \u061c ##[") for each in values
        )


@pytest.mark.parametrize(
    ("settings", "arguments", "said"),
    [
        ('"{}" = 1', (), f"{SHOWN}: unknown key"),
        ('exclude = ["{}"]\nsource-roots = ["{}", "x\\n::error::y"]', ("--show-settings",), f"exclude = {SHOWN}\n"),
    ],
)
def test_settings(project: Maker, lint: Lint, settings: str, arguments: tuple[str, ...], said: str) -> None:
    nasty = json.dumps(NASTY)[1:-1]
    project({"a.py": "", "pyproject.toml": f"[tool.torchrepro-lint]\n{settings.replace('{}', nasty)}\n"})
    ran = lint(*arguments, ".")
    assert said in ran.out + ran.err
    assert harmless(ran.out)
    assert harmless(ran.err)
    assert (ran.out + ran.err).count("\n") == (1 if ran.status else 17)


@posix
def test_names_in_messages(project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    """In errors and notes, whether a file is read or written."""
    folder = project({f"p{NASTY}/a.py": FLAW, f"p{NASTY}/pyproject.toml": "[tool\n"})
    assert f"p{SHOWN}/pyproject.toml: invalid TOML" in lint(".").err
    (folder / f"p{NASTY}/pyproject.toml").write_text("")
    known = {"path": f"::error::{NASTY}.py", "code": f"T\n::error::{NASTY}", "line": f"x{NASTY} ##[error]y"}
    (folder / f"::error::{NASTY}.json").write_text(json.dumps({"version": 1, "findings": [{**known, "count": 1}]}))
    (folder / f"bad{NASTY}.json").write_text("{")
    (folder / f"bad{NASTY}").write_text("")
    for arguments, said in (
        (
            ("--baseline", f"::error::{NASTY}.json", "."),
            f"\\x3a:error::{SHOWN}.json lists 1 finding that no longer exist",
        ),
        (("--baseline", f"bad{NASTY}.json", "."), f"bad{SHOWN}.json: not a file that --write-baseline wrote"),
        (("--baseline", f"none{NASTY}", "."), f"none{SHOWN}: cannot be read"),
        (("--write-baseline", f"new{NASTY}", "."), f"to new{SHOWN}\n"),
        (("-o", f"bad{NASTY}/x", "."), f"bad{SHOWN}/x: cannot be written"),
        (("report", "-o", f"page{NASTY}.json", "."), f"page{SHOWN}.json: "),
        ((f"no\n::error::{NASTY}",), f"no\\x0a::error::{SHOWN}: no such file"),
        ((f"--no{NASTY}",), "torchrepro-lint: "),
    ):
        ran = lint(*arguments)
        assert said in ran.err
        assert harmless(ran.err)


@posix
def test_a_name_that_begins_as_a_command_of_githubs_log(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is shown as a path of the same file, in each format and where a step of a way stands in a line of its own."""
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    name = "::error::x.py"
    calls = "import model, torch\n\nif __name__ == '__main__':\n    x = model.draw()\n    torch.save(x, 'x.pt')\n"
    project({"model.py": MODEL.replace("torch.randn(3)", "torch.randn(3)  # ##[error]y"), name: calls})
    found = "./::error::x.py:4:"
    for arguments in ((name,), ("--verbose", name, "model.py"), ("--output-format", "full", name, "model.py")):
        ran = lint("--no-cache", "--select", "TRL101", *arguments)
        assert ran.status == 1
        assert found in ran.out
        assert harmless(ran.out)
        assert harmless(ran.err)
    assert lint("--show-files", name).out == f"./{name}\n"
    assert lint("--stdin-filename", name, "--select", "TRL001", stdin=b"(").out.startswith(f"./{name}:1:")
    assert lint("--output-format", "github", "--select", "TRL101", name).out.startswith("::warning title=")


@posix
@pytest.mark.parametrize("name", ["json", "json-lines", "gitlab", "sarif", "junit", "markdown", "flake8", "full"])
def test_a_mark_of_githubs_log_in_each_format(project: Maker, lint: Lint, name: str) -> None:
    """A parser of the format reads what it read before; in text it is written otherwise."""
    place = "##[error]x.py"
    project({place: FLAW.replace("True", "True  # ##[error]y")})
    ran = lint("--select", "TRL201", "--output-format", name, place)
    assert ran.status == 1
    assert harmless(ran.out)
    readers: dict[str, Callable[[str], object]] = {
        "json": lambda text: os.path.basename(json.loads(text)[0]["filename"]),
        "json-lines": lambda text: os.path.basename(json.loads(text)["filename"]),
        "gitlab": lambda text: json.loads(text)[0]["location"]["path"],
        "sarif": lambda text: place if "%23%23%5Berror%5Dx.py" in text else "",
        # The name as it is displayed, in which the mark is shown.
        "junit": lambda text: next(ET.fromstring(text).iter("testcase")).attrib["file"].replace("\\x23", "#"),
        "markdown": lambda text: place if "\\x23\\[error\\]x.py" in text or "#\\x23[error]x.py" in text else "",
        "flake8": lambda text: text.partition(":")[0].replace("\\x23", "#"),
        "full": lambda text: re.search(r"--> (.+?):", text)[1].replace("\\x23", "#"),  # type: ignore[index]
    }
    assert readers[name](ran.out) == place


def test_an_underline_stays_below_what_it_is_about(project: Maker, lint: Lint) -> None:
    project({"a.py": "import torch\n\nx = '##[a] ##[b]'; torch.backends.cudnn.benchmark = True\n"})
    rows = lint("--select", "TRL201", "--output-format", "full", "a.py").out.splitlines()
    (at,) = (number for number, row in enumerate(rows) if row.startswith("3 | x = "))
    assert rows[at].startswith("3 | x = '#\\x23[a] #\\x23[b]'; torch")
    assert rows[at].index("torch") == rows[at + 1].index("^")


@posix
@pytest.mark.parametrize("output_format", ["html", "json", "markdown"])
def test_a_mark_of_githubs_log_in_a_report(project: Maker, lint: Lint, output_format: str) -> None:
    project(
        {"##[error]x.py": FLAW.replace("torch.b", "x = torch.rand(3); y = '##[z]'\nopen('x').write(str(x))\ntorch.b")}
    )
    ran = lint("report", "--no-cache", "--output-format", output_format, ".")
    assert ran.status == 1
    assert "##[" not in ran.out
    read = {"html": lambda text: Taken(text).text, "json": lambda text: json.dumps(json.loads(text))}
    if output_format in read:
        assert {"##[error]x.py", "##[z]"} <= set(re.findall(r"##\[error\]x\.py|##\[z\]", read[output_format](ran.out)))
    else:
        assert "<code>&#35;&#35;\\[error\\]x.py" in ran.out


@linux
def test_a_byte_of_a_name_that_controls_a_terminal_is_shown(project: Maker, lint: Lint) -> None:
    folder = project({})
    (folder / os.fsdecode(b"raw\x9b31mX\xe9.py")).write_text(FLAW)
    (folder / os.fsdecode(b"broken\x9b\xe9.py")).write_text("(")
    for arguments in ((".",), ("--show-files", "."), ("--diff", "--unsafe-fixes", "."), ("--verbose", ".")):
        out = os.fsencode(lint("--no-cache", *arguments).out)
        assert b"./raw\\x9b31mX\xe9.py" in out
        assert b"\x9b" not in out


def test_the_plugin_of_flake8_shows_messages(project: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchrepro_lint.checks.rule import Finding
    from torchrepro_lint.interfaces import flake8_plugin
    from torchrepro_lint.source.text import Lines, Span

    class Answer:
        errors = (f"broken{NASTY}",)
        findings = (Finding("TRL101", Span(0, 0), f"x{NASTY} ##[error]y"),)
        lines = Lines("")
        root = "/"

    class Session:
        def findings(self, *_: object) -> type[Answer]:
            return Answer

    monkeypatch.setattr(flake8_plugin.Plugin, "_shared_session", classmethod(lambda _: Session()))
    (found,) = flake8_plugin.Plugin(None, f"a{NASTY}.py", []).run()  # type: ignore[arg-type]
    assert found[2] == f"TRL101 x{SHOWN} #\\x23[error]y"


PATCHED = [
    "x = 1\n\x0c\ntorch = 2\nFLAW\n",
    "# a\x1c\x1d\x1e\x85\u2028\u2029\x0bb\nFLAW\n# c\x0cd\n",
    "x = 1\r\n# \x0c \r\nFLAW\r\ny = '\x85'\r\n",
    "x = 1\rFLAW\ry = 2\r",
    "x = 1\nFLAW",
    "\u2028 = 1\n" * 9 + "FLAW\n" + "# \x0c\n" * 9,
]


@pytest.mark.parametrize("text", PATCHED)
@pytest.mark.parametrize("tool", [False, True])
def test_a_diff_applied_is_the_fixed_text(tmp_path: Path, text: str, tool: bool) -> None:
    from torchrepro_lint.config.discovery import GivenFile
    from torchrepro_lint.engine.writing import FileChange
    from torchrepro_lint.interfaces.report.diff import render
    from torchrepro_lint.source.decoding import Source

    fixed = text.replace("FLAW", "MENDED\nTWICE" if "\r" not in text else "MENDED")
    change = FileChange(GivenFile("a.py", "/a.py"), Source(text, "utf-8", False), Source(fixed, "utf-8", False))
    patch = render(change)
    if not tool:
        assert applied(text, patch) == fixed
        return
    if shutil.which("patch") is None:
        pytest.skip("no patch here")
    (tmp_path / "a.py").write_bytes(text.encode())
    command = ["patch", "--binary", "-p0", "a.py"]
    subprocess.run(command, cwd=tmp_path, input=patch.encode(), check=True, capture_output=True)
    assert (tmp_path / "a.py").read_bytes().decode() == fixed


def applied(text: str, patch: str) -> str:
    """A text with a unified diff applied, whose lines are what a line feed ends."""
    old, new, at = re.findall("[^\n]*\n|[^\n]+", text), [], 0
    last = ""
    for line in re.findall("[^\n]*\n", patch)[2:]:
        if found := re.match(r"@@ -(\d+)(?:,(\d+))? ", line):
            start = int(found[1]) - (found[2] != "0")
            new += old[at:start]
            at = start
        elif line.startswith("\\"):
            new[-1:] = [new[-1].removesuffix("\n")] if last != "-" else new[-1:]
        else:
            last = line[0]
            if last in " -":
                assert old[at].rstrip("\n") == line[1:].rstrip("\n")
                at += 1
            if last in " +":
                new.append(line[1:])
    return "".join((*new, *old[at:]))


def test_a_fix_counts_the_rows_that_python_counts(project: Maker, lint: Lint) -> None:
    """A form feed ends no line of what is taken away."""
    text = "import torch\n\n\ndef pick(rows, at):\n    return torch.index_select(rows,  # \x0c\n        0, at)\n"
    project({"a.py": text})
    out = lint("--select", "TRL401", "--unsafe-fixes", "--output-format", "full", "--no-cache", "a.py").out
    if "fix" in out:
        assert "       5 - " in out
        assert "       7 - " not in out
