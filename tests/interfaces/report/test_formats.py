"""Each output format: its shape, that standard readers accept it, and its escaping."""

from __future__ import annotations

import json
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from conftest import Ran
from notebooks import notebook, prose
from torchrepro_lint.config.settings import FORMATS as SETTINGS_FORMATS
from torchrepro_lint.engine.diagnostic import Diagnostic
from torchrepro_lint.interfaces.cli.app import FORMATS
from torchrepro_lint.interfaces.report.fingerprints import fingerprints
from torchrepro_lint.interfaces.report.formats import renderer
from torchrepro_lint.interfaces.report.view import View
from torchrepro_lint.source.text import Cell, Edit, Fix, Lines, Position, Span

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]

MODEL = "import torch\n\n\ndef build():\n    return torch.nn.Linear(3, 1)\n"
TRAIN = "from model import build\n\nnet = build()\nnet(net.weight).sum().backward()\n"
SWITCH = "import torch\n\nif True:\n\ttorch.backends.cudnn.benchmark = True  # flag\n"
FILES = {
    "pyproject.toml": '[tool.torchrepro-lint]\nselect = ["TRL101", "TRL201"]\nunfixable = ["TRL101"]\n',
    "model.py": MODEL,
    "train.py": TRAIN,
    "sub/switch.py": SWITCH,
    "note.ipynb": notebook(prose(), "%cd x\nimport torch", "torch.backends.cudnn.benchmark = True"),
}
UNSEEDED = "nn.Linear (model.py:5, via build) draws from torch's generator, and nothing in this run seeds torch; "
SEED = "call torch.manual_seed(...) first"
SWITCHED, CALLED = "line=4,endLine=4,col=2,endColumn=39", "line=3,endLine=3,col=1,endColumn=14"
BENCHMARK = (
    "cudnn.benchmark = True lets cuDNN choose algorithms by timing them, which differs between runs; set it to False"
)


def test_the_names_are_those_of_the_settings() -> None:
    assert FORMATS == SETTINGS_FORMATS
    assert all(callable(renderer(name)) for name in FORMATS)


@pytest.fixture
def report(project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """The report on the sample project in a format."""
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    project(FILES)

    def run(output_format: str, *more: str) -> str:
        return lint("-q", "--output-format", output_format, *(more or (".",))).out

    return run


def test_full(report: Callable[[str], str]) -> None:
    assert report("full") == (
        f"warning[TRL201]: {BENCHMARK}\n"
        " --> note.ipynb:cell 3:1:1\n"
        "  |\n"
        "1 | torch.backends.cudnn.benchmark = True\n"
        "  | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  |\n"
        "  fix  Set cudnn.benchmark to False (unsafe)\n"
        "       1 - torch.backends.cudnn.benchmark = True\n"
        "       1 + torch.backends.cudnn.benchmark = False\n"
        "\n"
        f"warning[TRL201]: {BENCHMARK}\n"
        " --> sub/switch.py:4:2\n"
        "  |\n"
        "3 | if True:\n"
        "4 |     torch.backends.cudnn.benchmark = True  # flag\n"
        "  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  |\n"
        "  fix  Set cudnn.benchmark to False (unsafe)\n"
        "       4 -     torch.backends.cudnn.benchmark = True  # flag\n"
        "       4 +     torch.backends.cudnn.benchmark = False  # flag\n"
        "\n"
        f"warning[TRL101]: {UNSEEDED}{SEED}\n"
        " --> train.py:3:1\n"
        "  |\n"
        "1 | from model import build\n"
        "2 |\n"
        "3 | net = build()\n"
        "  | ^^^^^^^^^^^^^\n"
        "4 | net(net.weight).sum().backward()\n"
        "  |\n"
        "  via  train.py:3:7: calls build\n"
        "       model.py:5:12: nn.Linear draws from torch's generator\n"
        "  fix  none: the settings exclude TRL101 from fixing\n"
        "\n"
    )


def test_json_lines_are_the_objects_of_json(report: Callable[[str], str]) -> None:
    lines = report("json-lines").splitlines()
    assert [json.loads(line) for line in lines] == json.loads(report("json"))
    assert len(lines) == 3


def test_github(report: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    head = "::warning title=torchrepro-lint "
    lines = [
        f"{head}TRL201 (cudnn-benchmark),file=note.ipynb,line=26::note.ipynb:cell 3:1:1: TRL201 {BENCHMARK}",
        f"{head}TRL201 (cudnn-benchmark),file=sub/switch.py,{SWITCHED}::sub/switch.py:4:2: TRL201 {BENCHMARK}",
        f"{head}TRL101 (unseeded-torch),file=train.py,{CALLED}::train.py:3:1: TRL101 {UNSEEDED}{SEED}",
    ]
    assert report("github").splitlines() == lines
    assert "cudnn.benchmark" in FILES["note.ipynb"].splitlines()[26 - 1]
    top = os.getcwd()
    monkeypatch.chdir("sub")
    monkeypatch.setenv("GITHUB_WORKSPACE", top)
    assert report("github").splitlines() == lines[1:2]
    monkeypatch.setenv("GITHUB_WORKSPACE", "/elsewhere")
    assert ",file=switch.py," in report("github")


def test_gitlab(report: Callable[[str], str]) -> None:
    found = json.loads(report("gitlab"))
    assert found[1] == {
        "check_name": "TRL201 cudnn-benchmark",
        "description": f"TRL201 {BENCHMARK}",
        "fingerprint": found[1]["fingerprint"],
        "location": {"lines": {"begin": 4, "end": 4}, "path": "sub/switch.py"},
        "severity": "minor",
    }
    assert found[0]["description"] == f"TRL201 cell 3:1:1: {BENCHMARK}"
    assert found[0]["location"] == {"lines": {"begin": 26, "end": 26}, "path": "note.ipynb"}
    assert len({one["fingerprint"] for one in found}) == 3


def test_junit(report: Callable[[str], str]) -> None:
    root = ET.fromstring(report("junit"))
    assert root.attrib == {"name": "torchrepro-lint", "tests": "3", "failures": "3", "errors": "0"}
    assert [suite.attrib["name"] for suite in root] == ["./note.ipynb", "./sub/switch.py", "./train.py"]
    case = root[1][0]
    assert case.attrib == {
        "name": "TRL201 cudnn-benchmark 4:2",
        "classname": "./sub/switch.py",
        "file": "./sub/switch.py",
        "line": "4",
    }
    assert case[0].attrib == {"type": "warning", "message": f"./sub/switch.py:4:2: TRL201 {BENCHMARK}"}


def test_markdown(report: Callable[[str], str]) -> None:
    text = report("markdown")
    site = "https://github.com/torchrepro/torchrepro-lint/blob/main/rules"
    head = (
        "### torchrepro-lint: 3 warnings in 3 files\n\n"
        "| place | severity | rule | finding |\n"
        "|---|---|---|---|\n"
        f"| `./note.ipynb:cell 3:1:1` | warning | [TRL201]({site}/TRL201-cudnn-benchmark.md) cudnn-benchmark | {BENCHMARK} |\n"
    )
    assert text.startswith(head)
    assert (
        "\n<details><summary>./sub/switch.py:4:2 TRL201 cudnn-benchmark</summary>\n\n"
        "Fix (unsafe): Set cudnn.benchmark to False\n\n"
        "```diff\n-     torch.backends.cudnn.benchmark = True  # flag\n"
        "+     torch.backends.cudnn.benchmark = False  # flag\n```\n\n</details>\n"
    ) in text
    assert "\n\n1. `train.py:3:7` calls build\n2. `model.py:5:12` nn.Linear draws from torch's generator\n" in text


def test_sarif(report: Callable[[str], str]) -> None:
    log = json.loads(report("sarif"))
    (run,) = log["runs"]
    assert log["version"] == "2.1.0"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["TRL101", "TRL201"]
    rule = run["tool"]["driver"]["rules"][1]
    assert (rule["name"], rule["defaultConfiguration"]) == ("cudnn-benchmark", {"enabled": True, "level": "warning"})
    assert rule["help"]["markdown"].startswith("# TRL201 cudnn-benchmark\n")
    cell, switch, unseeded = run["results"]
    assert (switch["ruleId"], switch["ruleIndex"], switch["level"]) == ("TRL201", 1, "warning")
    assert switch["message"] == {"text": BENCHMARK}
    assert switch["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "sub/switch.py", "uriBaseId": "%SRCROOT%"},
                "region": {
                    "startLine": 4,
                    "startColumn": 2,
                    "endLine": 4,
                    "endColumn": 39,
                    "snippet": {"text": "torch.backends.cudnn.benchmark = True"},
                },
            }
        }
    ]
    assert switch["fixes"] == [
        {
            "description": {"text": "Set cudnn.benchmark to False"},
            "artifactChanges": [
                {
                    "artifactLocation": {"uri": "sub/switch.py", "uriBaseId": "%SRCROOT%"},
                    "replacements": [
                        {
                            "deletedRegion": {"startLine": 4, "startColumn": 35, "endLine": 4, "endColumn": 39},
                            "insertedContent": {"text": "False"},
                        }
                    ],
                }
            ],
        }
    ]
    assert cell["message"] == {"text": f"cell 3:1:1: {BENCHMARK}"}
    assert cell["locations"][0]["logicalLocations"] == [{"name": "cell 3"}]
    assert cell["locations"][0]["physicalLocation"]["region"] == {"startLine": 26}
    assert "fixes" not in cell
    (flow,) = unseeded["codeFlows"][0]["threadFlows"]
    assert [
        (step["location"]["physicalLocation"]["artifactLocation"]["uri"], step["location"]["message"]["text"])
        for step in flow["locations"]
    ] == [("train.py", "calls build"), ("model.py", "nn.Linear draws from torch's generator")]


def test_sarif_fits_the_published_schema(report: Callable[[str], str]) -> None:
    """``TORCHREPRO_SARIF_SCHEMA`` is a copy of the schema that the log names in ``$schema``."""
    jsonschema = pytest.importorskip("jsonschema")
    place = os.environ.get("TORCHREPRO_SARIF_SCHEMA")
    if not place:
        pytest.skip("TORCHREPRO_SARIF_SCHEMA names no schema")
    schema = json.loads(Path(place).read_text(encoding="utf-8"))
    assert schema["id"] == json.loads(report("sarif"))["$schema"]
    for log in (report("sarif"), report("sarif", "model.py"), renderer("sarif")([NASTY], View(base="/x"))):
        jsonschema.validate(json.loads(log), schema)


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_to_report(report: Callable[..., str], name: str) -> None:
    text = report(name, "model.py")
    if name in ("full", "concise", "flake8", "github", "json-lines"):
        assert text == ""
    elif name in ("json", "gitlab"):
        assert json.loads(text) == []
    elif name == "sarif":
        assert json.loads(text)["runs"][0]["results"] == []
    elif name == "junit":
        assert [case.tag for case in ET.fromstring(text).iter("testcase")] == ["testcase"]
    else:
        assert text == "### torchrepro-lint: no findings\n"


NASTY_TEXT = "x = '\x1b[31m\u0000|`<b>'  # ]]> & \ud800\n"
NASTY = Diagnostic(
    "a|b`,%\n:\udcff<c>.py",
    Position(1, 5),
    "TRL201",
    'a | `b` *c* _d_ <e> & "f" % \r\n:: \x1b[0m @you #1 ]]>',
    "/x/a|b`,%\n:\udcff<c>.py",
    Position(1, 9),
    "cudnn-benchmark",
    "error",
    Fix("do|`it`<now>", (Edit(Span(4, 5), "```\n"),), True),
    Lines(NASTY_TEXT),
    (),
    (),
    Span(4, 8),
    Lines(NASTY_TEXT),
)


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_escapes_for_itself(name: str) -> None:
    text = renderer(name)([NASTY], View(base="/x"))
    text.encode("utf-8", "surrogateescape")
    check: dict[str, Callable[[str], Any]] = {
        "concise": flake8,
        "flake8": flake8,
        "full": full,
        "json": json.loads,
        "json-lines": json.loads,
        "sarif": sarif,
        "github": github,
        "gitlab": json.loads,
        "junit": junit,
        "markdown": markdown,
    }
    check[name](text)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)


def flake8(text: str) -> None:
    assert text == (
        'a|b`,%\\x0a:\udcff<c>.py:1:5: TRL201 a | `b` *c* _d_ <e> & "f" % \\x0d\\x0a:: \\x1b[0m @you #1 ]]>\n'
    )


def full(text: str) -> None:
    first, place, *rest = text.splitlines()
    assert first == 'error[TRL201]: a | `b` *c* _d_ <e> & "f" % \\x0d\\x0a:: \\x1b[0m @you #1 ]]>'
    assert place == " --> a|b`,%\\x0a:\udcff<c>.py:1:5"
    assert not any(line.startswith("::") for line in rest)


def sarif(text: str) -> None:
    (result,) = json.loads(text)["runs"][0]["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "a%7Cb%60%2C%25%0A%3A%FF%3Cc%3E.py"
    assert result["message"]["text"] == NASTY.message


def github(text: str) -> None:
    assert text.count("\n") == 1
    _, properties, message = text.split("::", 2)
    assert "file=a|b`%2C%25%0A%3A\udcff<c>.py,line=1,endLine=1,col=5,endColumn=9" in properties
    assert message.endswith("% \r\n:: \\x1b[0m @you #1 ]]>\n".replace("%", "%25").replace("\r\n:", "%0D%0A:"))


def junit(text: str) -> None:
    case = next(ET.fromstring(text.encode("utf-8", "surrogateescape")).iter("testcase"))
    assert case.attrib["file"] == "a|b`,%\n:\ufffd<c>.py"
    assert case[0].attrib["message"].endswith('*c* _d_ <e> & "f" % \r\n:: \ufffd[0m @you #1 ]]>')


def markdown(text: str) -> None:
    row = text.splitlines()[4]
    assert row.startswith("| ``a\\|b`,%\ufffd:\ufffd<c>.py:1:5`` | error | ")
    assert row.endswith(
        '| a \\| \\`b\\` \\*c\\* \\_d\\_ &lt;e&gt; &amp; "f" % \ufffd\ufffd:: \ufffd\\[0m &#64;you &#35;1 \\]\\]&gt; |'
    )
    assert "<summary>a|b`,%\ufffd:\ufffd&lt;c&gt;.py:1:5 TRL201" in text
    assert "````diff\n" in text


@pytest.mark.parametrize(
    ("text", "span", "drawn"),
    [
        ("\tx = y\n", (1, 2), ["1 |     x = y", "  |     ^"]),
        ("名前 = é(ë)\n", (5, 6), ["1 | 名前 = é(ë)", "  |        ^"]),
        ("名前\n", (0, 2), ["1 | 名前", "  | ^^^^"]),
        (
            "e\u0301 = x\n",
            (5, 6),
            ["1 | e\u0301 = x", "  |     ^"],
        ),
        ("", (0, 0), ["1 |", "  | ^"]),
        ("x = (\n", (6, 6), ["1 | x = (", "2 |", "  | ^"]),
        (
            "f(\n    a,\n  b)\ng\n",
            (0, 14),
            ["1 | f(", "  | ^^", "2 |     a,", "3 |   b)"],
        ),
        ("x" * 90 + " = " + "y" * 100, (93, 95), []),
    ],
)
def test_lines_are_underlined(text: str, span: tuple[int, int], drawn: list[str]) -> None:
    lines = Lines(text)
    one = NASTY._replace(
        display="a.py", message="m", fix=None, lines=lines, written=lines, span=Span(*span), start=lines.place(span[0])
    )
    shown = renderer("full")([one], View()).splitlines()[3:-2]
    if len(text) > 120:
        code, mark = (line[4:] for line in shown)
        assert code.startswith("…x")
        assert code.endswith("y…")
        assert [code[at] for at, letter in enumerate(mark) if letter == "^"] == ["y", "y"]
        assert code[mark.index("^") - 1] == " "
    else:
        assert shown == drawn


def test_of_a_long_range_the_first_line_is_underlined() -> None:
    text = "f(\n" + "    a,\n" * 20 + ")\n"
    lines = Lines(text)
    one = NASTY._replace(fix=None, lines=lines, written=lines, span=Span(0, len(text) - 1), start=Position(1, 1))
    shown = renderer("full")([one], View()).splitlines()
    assert shown[3:] == ["1 | f(", "  | ^^", "2 |     a,", "3 |     a,", "  | …", "  |", ""]


@pytest.mark.parametrize(
    ("text", "at", "drawn"),
    [
        ("a\n\n\nf()\n\n\nb\n", 4, ["4 | f()", "  | ^^^"]),
        ("a\n\nf()\n\nb\n", 3, ["1 | a", "2 |", "3 | f()", "  | ^^^", "4 |", "5 | b"]),
    ],
)
def test_empty_lines_at_the_ends_of_an_excerpt_are_left_out(text: str, at: int, drawn: list[str]) -> None:
    lines = Lines(text)
    one = NASTY._replace(fix=None, lines=lines, written=lines, span=Span(at, at + 3), start=lines.place(at))
    assert renderer("full")([one], View()).splitlines()[3:-2] == drawn


def test_findings_of_one_place_with_one_fix_share_a_block() -> None:
    lines = Lines("f(1)\n")
    fix = Fix("pass 2", (Edit(Span(3, 3), ", 2"),), False)
    one = NASTY._replace(
        display="a.py",
        message="m",
        severity="note",
        fix=fix,
        lines=lines,
        written=lines,
        span=Span(0, 4),
        start=Position(1, 1),
    )
    other = one._replace(code="TRL202", message="n", severity="warning")
    later = one._replace(code="TRL301", fix=fix._replace(edits=(Edit(Span(2, 3), "3"),)))
    unfixed = [one._replace(code=code, fix=None, unfixed="it is so") for code in ("TRL101", "TRL102")]
    assert renderer("full")([one, later, other, *unfixed], View()).splitlines()[:12] == [
        "note[TRL201]: m",
        "warning[TRL202]: n",
        " --> a.py:1:1",
        "  |",
        "1 | f(1)",
        "  | ^^^^",
        "  |",
        "  fix  pass 2 (unsafe)",
        "       1 - f(1)",
        "       1 + f(1, 2)",
        "",
        "note[TRL301]: m",
    ]
    assert renderer("full")([one, later, other, *unfixed], View()).count("-->") == 4
    assert renderer("concise")([one, other], View()).count("\n") == 2


def test_each_severity_has_its_colour() -> None:
    found = [NASTY._replace(severity=each, fix=None) for each in ("note", "warning", "error")]
    full = [renderer("full")([one], View(colour=True)) for one in found]
    styles = [text[: text.index(one.severity)] for one, text in zip(found, full, strict=True)]
    assert len({*styles, ""}) == 4
    for one, text, style in zip(found, full, styles, strict=True):
        assert f"{style}^" in text
        assert f" {style}TRL201\033[m " in renderer("concise")([one], View(colour=True))


def test_on_a_terminal_texts_are_wrapped_and_code_is_cut() -> None:
    lines = Lines("x = " + "y" * 200 + "\n")
    one = NASTY._replace(
        display="a.py",
        message="one two three " * 8 + "end",
        fix=None,
        unfixed="why not " * 9 + "?",
        lines=lines,
        written=lines,
        span=Span(0, 1),
        start=Position(1, 1),
    )
    shown = renderer("full")([one], View(width=60)).splitlines()
    assert max(map(len, shown)) <= 60
    assert shown[1].startswith("    ")
    assert " ".join(" ".join(shown[:3]).split()) == f"error[TRL201]: {one.message}"
    assert any(line.endswith("…") for line in shown)
    assert shown[-2].startswith("       ")
    wide = renderer("full")([one], View()).splitlines()
    assert wide[0] == f"error[TRL201]: {one.message}"


def test_a_fix_of_several_places_and_files() -> None:
    text, other = "import a\n\n\nf(1)\nf(2)\ng()\n", "x\n"
    edits = (
        Edit(Span(8, 8), "\nimport b"),
        Edit(Span(13, 14), "3, 4"),
        Edit(Span(18, 19), "5"),
        Edit(Span(21, 25), ""),
    )
    fix = Fix("t", edits, True, (("b/o.py", (Edit(Span(0, 1), "y"),)),))
    lines = Lines(text)
    one = NASTY._replace(
        fix=fix,
        lines=lines,
        written=lines,
        span=Span(11, 15),
        start=Position(4, 1),
        others=(("b/o.py", "/x/b/o.py", Lines(other)),),
    )
    assert renderer("full")([one], View()).split("  fix  t\n")[1].splitlines() == [
        "       2 + import b",
        "       4 - f(1)",
        "       5 + f(3, 4)",
        "       5 - f(2)",
        "       6 + f(5)",
        "       6 - g()",
        "       b/o.py",
        "       1 - x",
        "       1 + y",
        "",
    ]
    (fixes,) = json.loads(renderer("sarif")([one], View(base="/x")))["runs"][0]["results"][0]["fixes"]
    assert [change["artifactLocation"]["uri"] for change in fixes["artifactChanges"]][1:] == ["b/o.py"]


def test_the_rows_of_a_fix_in_several_cells_count_from_the_start_of_each() -> None:
    lines = Lines("a = 1\nb = 2\nc = 3\n", (Cell(1, 0, 11), Cell(2, 12, 17)))
    fix = Fix("t", (Edit(Span(0, 0), "import a\nimport b\n"), Edit(Span(12, 17), "d = 4")), True)
    one = NASTY._replace(fix=fix, lines=lines, written=lines, span=Span(0, 5), start=lines.place(0))
    assert renderer("full")([one], View()).split("  fix  t\n")[1].splitlines() == [
        "       1 + import a",
        "       2 + import b",
        "       cell 2",
        "       1 - c = 3",
        "       1 + d = 4",
        "",
    ]


def test_fingerprints_stay_when_lines_move() -> None:
    def prints(text: str) -> list[str]:
        lines = Lines(text)
        places = [at for at in range(len(text)) if text.startswith("BAD", at)]
        return fingerprints(
            [NASTY._replace(lines=lines, span=Span(at, at + 3), start=lines.place(at)) for at in places], "/x"
        )

    first = prints("BAD = 1\nBAD = 2\nBAD = 2\n")
    assert len(set(first)) == 3
    assert all(len(each) == 32 for each in first)
    assert prints("\n\n  BAD =  1\n\nBAD = 2\nx\nBAD = 2\n") == first
    assert prints("BAD = 2\n") == first[1:2]


def test_output_file(project: Maker, lint: Lint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(FILES)
    monkeypatch.setenv("FORCE_COLOR", "1")
    plain = lint("-o", "out/deep/report.txt")
    assert (plain.status, plain.out) == (1, "")
    assert plain.err.startswith("Found 3 warnings in 3 files")
    text = (tmp_path / "out/deep/report.txt").read_text(encoding="utf-8")
    assert text.startswith(f"./note.ipynb:cell 3:1:1: TRL201 {BENCHMARK}\n")
    assert lint("-q", "--output-file", "report.xml", "--output-format", "junit").out == ""
    ET.parse(tmp_path / "report.xml")
    refused = lint("--output-file", "train.py/x")
    assert (refused.status, refused.out) == (2, "")
    assert "train.py/x: cannot be written: " in refused.err


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": ""}, False),
    ],
)
def test_colour(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], coloured: bool
) -> None:
    project(FILES)
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for name in ("concise", "flake8", "full"):
        assert ("\033[" in lint("-q", "--output-format", name).out) is coloured
    for name in ("json", "github", "markdown", "junit"):
        assert "\033[" not in lint("-q", "--output-format", name).out


def test_statistics_in_every_format(project: Maker, lint: Lint) -> None:
    project(FILES)
    assert lint("-q", "--statistics", "--output-format", "github").out.startswith("2\tTRL201\t")
    assert [one["count"] for one in json.loads(lint("-q", "--statistics", "--output-format", "json-lines").out)] == [
        2,
        1,
    ]
