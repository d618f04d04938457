"""Notebooks from bytes to findings, and fixes that change the cells concerned and nothing else."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from conftest import Ran
from notebooks import PYTHON, code, notebook, prose
from torchrepro_lint.source.decoding import Source, decode, encode, fit_to_cells, with_edits
from torchrepro_lint.source.text import Edit, Fix, Lines, Position, Span

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]
toys = pytest.mark.usefixtures("toys")


def read(text: str) -> Source:
    source = decode(text.encode(), notebook=True)
    assert isinstance(source, Source), source
    return source


def places(ran: Ran) -> list[str]:
    return [line.rpartition(": ")[0] + line.rpartition(": ")[2][:7] for line in ran.out.splitlines()]


@toys
def test_findings_have_a_cell(project: Maker, lint: Lint) -> None:
    project(
        {"a.ipynb": notebook(prose(), "x = 1\nBAD = 1", prose(), "!BAD\n%%x\n", "  BAD\n  y = BAD"), "b.py": "BAD\n"}
    )
    found = [line.split()[:3] for line in lint("-q").out.splitlines()]
    assert found == [
        ["./a.ipynb:cell", "2:2:1:", "TRL901"],
        ["./a.ipynb:cell", "5:1:3:", "TRL901"],
        ["./a.ipynb:cell", "5:2:7:", "TRL901"],
        ["./b.py:1:1:", "TRL901", "BAD"],
    ]
    first, *_, last = json.loads(lint("--output-format", "json").out)
    assert (first["cell"], first["location"], first["noqa_row"]) == (2, {"row": 2, "column": 1}, 2)
    assert first["fix"]["edits"] == [
        {"cell": 2, "content": "GOOD", "location": {"row": 2, "column": 1}, "end_location": {"row": 2, "column": 4}}
    ]
    assert last["cell"] is None


def test_cells_are_one_program_and_a_notebook_is_an_entry_point(project: Maker, lint: Lint) -> None:
    draw = "import torch\nfrom model import build", "torch.save(build(), 'net.pt')"
    project(
        {
            "model.py": "import torch\n\n\ndef build():\n    return torch.nn.Linear(3, 1)\n",
            "unseeded.ipynb": notebook(*draw),
            "test_late.ipynb": notebook(*draw, "torch.manual_seed(0)"),
            "seeded.ipynb": notebook(draw[0], "torch.manual_seed(0)", draw[1]),
            "tests/data.ipynb": notebook(*draw),
        }
    )
    ran = lint("-q", "--verbose")
    assert [line.partition(" torch")[0].partition(" nn")[0] for line in ran.out.splitlines()] == [
        "./test_late.ipynb:cell 2:1:1: TRL104",
        "    test_late.ipynb:cell 2:1:12: calls build",
        "    model.py:5:12:",
        "./unseeded.ipynb:cell 2:1:1: TRL101",
        "    unseeded.ipynb:cell 2:1:12: calls build",
        "    model.py:5:12:",
    ]
    assert "cell 3:1)" in ran.out


def test_a_script_that_a_notebook_runs_may_seed(project: Maker, lint: Lint) -> None:
    cells = "%run tools/seed.py", "import torch\ntorch.save(torch.rand(3), 'x')"
    project(
        {
            "a.ipynb": notebook(*cells),
            "b.ipynb": notebook(cells[1]),
            "tools/seed.py": "import torch\n\ntorch.manual_seed(0)\n",
        }
    )
    assert [line.split(":")[0] for line in lint("-q", "--select", "TRL101").out.splitlines()] == ["./b.ipynb"]


COLAB = notebook(
    code("#@title Setup { display-mode: \"form\" }\n!pip install -q torch==2.1 'numpy<2'\n", cellView="form"),
    "from google.colab import drive\ndrive.mount('/content/drive')\n%cd /content/drive/MyDrive/",
    "%%shell\ngit clone https://example.org/x.git && cd x || exit 1",
    "import torch\nlr = 1e-3 #@param {type:\"number\"}\ngpu = !nvidia-smi\nprint('\\n'.join(gpu))",
    "torch.nn.Linear?",
    "%%time\nnet = torch.nn.Linear(2, 1)\nnet(torch.ones(1, 2)).backward()",
    accelerator="GPU",
    colab={"provenance": [], "gpuType": "T4"},
    kernelspec={"name": "python3", "display_name": "Python 3"},
    language_info={"name": "python"},
)
KAGGLE = notebook(
    code("# This Python 3 environment comes with many helpful analytics libraries\nimport os\n", _kg_hide_input=True),
    "for dirname, _, filenames in os.walk('/kaggle/input'):\n    for filename in filenames:\n        !ls -l {dirname}/{filename}",
    "import torch\nnet = torch.nn.Linear(2, 1)\n%time net(torch.ones(1, 2)).backward()",
    kernelspec={"language": "python", "display_name": "Python 3", "name": "python3"},
    language_info={"codemirror_mode": {"name": "ipython", "version": 3}, "name": "python", "version": "3.10.12"},
    kaggle={"accelerator": "nvidiaTeslaT4", "dataSources": []},
)


@pytest.mark.parametrize(("text", "place"), [(COLAB, "cell 6:2:1"), (KAGGLE, "cell 3:2:1")])
def test_exports_of_colab_and_kaggle(project: Maker, lint: Lint, text: str, place: str) -> None:
    project({"a.ipynb": text})
    (line,) = lint("-q", "--select", "TRL1").out.splitlines()
    assert line.startswith(f"./a.ipynb:{place}: TRL101 nn.Linear")


@toys
def test_suppressions(project: Maker, lint: Lint) -> None:
    project(
        {
            "a.ipynb": notebook(
                "!ls 'x\nBAD  # noqa: TRL901", "BAD  # torchrepro: ignore[TRL901]\nBAD", "s = '''\nBAD'''  # noqa"
            ),
            "b.ipynb": notebook(prose(), "%matplotlib inline", "# torchrepro: ignore-file[TRL901]\nimport x", "BAD"),
            "c.ipynb": notebook("x", "# torchrepro: ignore-file[TRL901]\nBAD"),
            "d.ipynb": notebook("x", "# flake8: noqa", "BAD"),
        }
    )
    assert [line.split(" TRL")[0] for line in lint("-q").out.splitlines()] == [
        "./a.ipynb:cell 2:2:1:",
        "./c.ipynb:cell 2:2:1:",
    ]


@toys
@pytest.mark.parametrize(
    ("cells", "metadata"),
    [
        (["BAD"], {"kernelspec": {"language": "julia", "name": "julia-1.9"}}),
        (["BAD"], {"language_info": {"name": "R"}}),
        (["%%bash\nBAD"], PYTHON),
        ([code("BAD", metadata={"vscode": {"languageId": "sql"}})], PYTHON),
        ([code("BAD", cell_type="raw"), prose("BAD")], PYTHON),
        (["%sql\nBAD"], {"application/vnd.databricks.v1+notebook": {}, **PYTHON}),
        ([], PYTHON),
    ],
)
def test_what_is_not_python_is_skipped(
    project: Maker, lint: Lint, cells: list[str | dict[str, Any]], metadata: dict[str, Any]
) -> None:
    project({"a.ipynb": notebook(*cells, **metadata)})
    assert lint() == Ran(0, "", "No findings in 1 file\n")


@toys
def test_the_format_of_old_notebooks(project: Maker, lint: Lint) -> None:
    cells = [
        {"cell_type": "code", "input": ["x = 1\n", "BAD"], "language": "python", "outputs": [], "prompt_number": 1},
        {"cell_type": "code", "input": "BAD", "language": "ruby", "outputs": []},
    ]
    folder = project(
        {"a.ipynb": json.dumps({"metadata": {"name": ""}, "nbformat": 3, "worksheets": [{"cells": cells}]})}
    )
    assert lint("-q", "--fix").out == ""
    assert json.loads((folder / "a.ipynb").read_text())["worksheets"][0]["cells"][0]["input"] == ["x = 1\n", "GOOD"]
    assert json.loads((folder / "a.ipynb").read_text())["worksheets"][0]["cells"][1]["input"] == "BAD"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "1:1", "not a notebook: invalid JSON (expecting value)"),
        ('{"cells": [\n  {"a": ]}', "2:9", "not a notebook: invalid JSON (expecting value)"),
        ('{"cells": [\n  "a', "2:3", "not a notebook: invalid JSON (unterminated string)"),
        ("[]", "1:1", "not a notebook: there is no list of cells"),
        ('{"cells": {}}', "1:1", "not a notebook: there is no list of cells"),
        ('{"worksheets": []}', "1:1", "not a notebook: there is no list of cells"),
        ('{"cells": [{"cell_type": "code"}]}', "1:1", "not a notebook: cell 1 has no source"),
        ('{"cells": [{"cell_type": "code", "source": [1]}]}', "1:1", "not a notebook: cell 1 has no source"),
        ("[" * 100_000, "1:1", "not a notebook: nested too deeply"),
        (notebook(prose(), "x = 1", "y = (\n1", "z = 2"), "cell 3:1:5", ""),
        (notebook("x = 1", "  if y:\n  z"), "cell 2:2:3", ""),
        (notebook("if x:\n  y", "else:\n  z"), "cell 2:1:1", ""),
        (notebook("x = 1 + \\", "2"), "cell 1:1:10", ""),
    ],
)
def test_a_broken_notebook_is_a_finding(project: Maker, lint: Lint, text: str, place: str, message: str) -> None:
    project({"a.ipynb": text})
    (line,) = lint("-q", "a.ipynb").out.splitlines()
    assert line.startswith(f"a.ipynb:{place}: TRL001 {message}")


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (("'''", "x = 1\n'''"), ["cell 1:1:1", "cell 2:2:1"]),
        (("x = (", "1)"), ["cell 1:1:5", "cell 2:1:2"]),
        (("x = (", "y = 1", "def f(:"), ["cell 1:1:5", "cell 3:1:7"]),
    ],
)
def test_each_broken_cell_is_a_finding(project: Maker, lint: Lint, cells: Sequence[str], told: list[str]) -> None:
    project({"a.ipynb": notebook(*cells)})
    lines = lint("-q", "a.ipynb").out.splitlines()
    assert [line.split(": TRL001 ")[0] for line in lines] == [f"a.ipynb:{place}" for place in told]
    assert all(line.endswith("; nothing else in this cell was analysed") for line in lines)


TRAINS = "import torch\nfrom torch.utils.data import DataLoader", "loader = DataLoader(data, shuffle=True)"
LOSS = "net = torch.nn.Linear(3, 1)\nnet(torch.ones(1, 3)).sum().backward()"


@pytest.mark.parametrize("cached", [False, True])
def test_the_other_cells_of_a_broken_notebook_are_analysed(project: Maker, lint: Lint, cached: bool) -> None:
    project({"a.ipynb": notebook(*TRAINS, "net.train(\nand so on", LOSS)})
    ran = [lint(*() if cached else ("--no-cache",)) for _ in range(1 + cached)][-1]
    assert [tuple(line.split()[1:3]) for line in ran.out.splitlines()] == [
        ("2:1:10:", "TRL302"),
        ("3:1:10:", "TRL001"),
        ("4:1:1:", "TRL101"),
    ]
    assert "1 of 1 program leads into code that could not be followed" in ran.err


@pytest.mark.parametrize(
    "broken", ["seed_everything(7", "trainer = Trainer(model=net", "torch.use_deterministic_algorithms(True"]
)
def test_a_broken_cell_that_may_seed_leaves_nothing_to_say(project: Maker, lint: Lint, broken: str) -> None:
    project({"a.ipynb": notebook(*TRAINS, broken, LOSS)})
    (line,) = lint("-q").out.splitlines()
    assert line.startswith("./a.ipynb:cell 3:")
    assert "TRL001" in line
    assert line.endswith("; nothing else in this file was analysed")


@toys
def test_a_fix_leaves_a_broken_cell_as_it_is(project: Maker, lint: Lint) -> None:
    folder = project({"a.ipynb": notebook("x = BAD", "BAD = (", "y = BAD")})
    assert "Fixed 2 findings" in lint("--fix").err
    cells = json.loads((folder / "a.ipynb").read_text())["cells"]
    assert ["".join(cell["source"]) for cell in cells] == ["x = GOOD", "BAD = (", "y = GOOD"]


def test_bytes_that_are_not_utf8(project: Maker, lint: Lint) -> None:
    project({"a.ipynb": b'{"cells": [\n"\xff"]}'})
    assert lint("-q", "a.ipynb").out == "a.ipynb:2:2: TRL001 cannot be decoded as utf-8\n"


ODD = """{
   "nbformat": 4, "metadata" : {"kernelspec": {"language": "python"}, "note": "caf\\u00e9 \\/ \\u2028"},
   "cells": [
      {"source": "x = '\\u00e9\\/é'\\nBAD = '\\u00fc'\\r\\ny = BAD", "cell_type": "code", "metadata": {}, "outputs": []},
      {
         "source": ["BAD"],
         "cell_type": "markdown"
      },
      {"cell_type": "code", "source": [ "a = '\\u00e9'\\n" ,
             "BAD = '\\u00e9é'"  ], "outputs": [{"text": ["BAD"]}], "source2": 1},
      {"cell_type": "code", "source": ["BAD"]}, {"cell_type": "code", "source": []}
   ]
}"""


@toys
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_a_fix_changes_the_cells_concerned_only(project: Maker, lint: Lint, newline: str, mark: bytes) -> None:
    data = mark + ODD.replace("\n", newline).encode()
    folder = project({"a.ipynb": data})
    assert lint("--fix").err == "Fixed 4 findings: 4 TRL901\nNo findings left in 1 file\n"
    expected = data
    for before, after in (
        (rb"\nBAD = '\u00fc'\r\ny = BAD", r"\nGOOD = 'ü'\r\ny = GOOD"),
        (rb"BAD = '\u00e9", "GOOD = 'é"),
    ):
        expected = expected.replace(before, after.encode())
    expected = expected.replace(b'"source": ["BAD"]}', b'"source": ["GOOD"]}')
    assert (folder / "a.ipynb").read_bytes() == expected


def test_a_file_in_ascii_stays_in_ascii() -> None:
    text = json.dumps(json.loads(notebook("x = 'é'\ny = 1")))
    source = read(text)
    new = with_edits(source, [Edit(Span(0, 0), "# ü\n")])
    assert encode(new, text.encode()).decode() == text.replace('["x', '["# \\u00fc\\n", "x')


@pytest.mark.parametrize("indent", [1, 2, 4, None])
@pytest.mark.parametrize("cell", [0, 1, 2])
def test_lines_are_added_and_taken_away_in_the_files_own_layout(indent: int | None, cell: int) -> None:
    texts = ["x = 1", "a = 1\nb = 2\nc = 3\n", "import é\ny = 2"]
    text = notebook(*texts, indent=indent)
    source = read(text)
    at = source.cells[cell].start
    longer = with_edits(source, [Edit(Span(at, at), "new = 'ü'\nnewer = 2\n")])
    wanted = [*texts]
    wanted[cell] = f"new = 'ü'\nnewer = 2\n{texts[cell]}"
    written = encode(longer, text.encode())
    assert written.decode() == notebook(*wanted, indent=indent)
    again = read(written.decode())
    assert again.text == longer.text
    shorter = with_edits(again, [Edit(Span(at, at + 20), "")])
    assert encode(shorter, written) == text.encode()


@toys
def test_diff_shows_cells(project: Maker, lint: Lint) -> None:
    project({"a.ipynb": notebook(prose(), "!ls\nBAD", "x", "BAD\n")})
    assert lint("--diff", "a.ipynb").out == (
        "--- a.ipynb:cell 2\n+++ a.ipynb:cell 2\n@@ -1,2 +1,2 @@\n !ls\n-BAD\n\\ No newline at end of file\n"
        "+GOOD\n\\ No newline at end of file\n--- a.ipynb:cell 4\n+++ a.ipynb:cell 4\n@@ -1 +1 @@\n-BAD\n+GOOD\n"
    )


@toys
def test_standard_input_may_be_a_notebook(project: Maker, lint: Lint) -> None:
    project({"pyproject.toml": ""})
    text = notebook("BAD")
    assert lint("-", "-q", "--stdin-filename", "a.ipynb", stdin=text.encode()).out.startswith("a.ipynb:cell 1:1:1:")
    fixed = lint("-", "-q", "--fix", "--stdin-filename", "a.ipynb", stdin=text.encode())
    assert fixed.out == text.replace("BAD", "GOOD")


@toys
def test_a_notebook_that_changed_meanwhile_is_left_alone(project: Maker) -> None:
    from torchrepro_lint.config.discovery import GivenFile
    from torchrepro_lint.engine.writing import FileChange, write

    folder = project({"a.ipynb": notebook("BAD")})
    before = read(notebook("BAD"))
    after = with_edits(before, [Edit(Span(0, 3), "GOOD")])
    (folder / "a.ipynb").write_text(notebook("BAD", "x"))
    refusal = write(FileChange(GivenFile("a.ipynb", str(folder / "a.ipynb")), before, after))
    assert refusal is not None
    assert "it changed in the meantime" in refusal
    assert (folder / "a.ipynb").read_text() == notebook("BAD", "x")


CELLS = ["import a", "%%time\nb = 1\n!ls\nc = 2", "%%bash\nls", "  d = 1", "e = 1"]


def fit(pattern: str, text: str) -> str | None:
    """Where a fix that replaces what a pattern finds in the program ends up: the cells after it; None if nowhere."""
    source = read(notebook(*CELLS))
    assert source.notebook is not None
    found = re.search(pattern, source.text)
    assert found is not None
    fix = fit_to_cells(source.notebook, Fix("t", (Edit(Span(*found.span()), text),), True))
    if fix is None:
        return None
    after = with_edits(source, fix.edits)
    cells = [after.text[cell.start : cell.end] for cell in after.cells]
    return " | ".join(new for old, new in zip(CELLS, cells, strict=True) if old != new)


@pytest.mark.parametrize(
    ("pattern", "text", "result"),
    [
        (r"(?<=import a)", "\nimport x", "import a\nimport x"),
        (r"(?<=import a)", "\nimport x\n\n", "import a\nimport x"),
        (r"import a\n", "import x\n", "import x"),
        (r"import a\n", "", ""),
        (r"(?=b = 1)", "x\n", "%%time\nx\nb = 1\n!ls\nc = 2"),
        (r"(?=c = 2)", "x\n", "%%time\nb = 1\n!ls\nx\nc = 2"),
        (r"(?=!ls)", "x\n", "%%time\nb = 1\nx\n!ls\nc = 2"),
        (r"!ls\n", "x\n", None),
        (r"(?=%%time)", "x\n", None),
        (r"(?=%%bash)", "x\n", None),
        (r"(?=e = 1)", "x\n", "x\ne = 1"),
        (r"1\n!ls\nc", "x", None),
        (r"(?s)a.*b = 1", "x", None),
        (r"(?=d = 1)", "y = 2; ", "  y = 2; d = 1"),
    ],
)
def test_a_fix_keeps_to_a_cell(pattern: str, text: str, result: str | None) -> None:
    assert fit(pattern, text) == result


def test_places_in_a_notebook() -> None:
    source = read(notebook(prose(), "a\nbé\n", "", "  c\n  d", "e"))
    lines = Lines(source.program, source.cells)
    assert [str(lines.place(source.text.index(word))) for word in "abcde"] == [
        *("cell 2:1:1", "cell 2:2:1", "cell 4:1:3", "cell 4:2:3", "cell 5:1:1")
    ]
    assert lines.place(len(source.text)) == Position(1, 2, 5)
    raw = notebook(prose(), "a\nbé\n", "", "  c\n  d", "e").splitlines()
    assert [raw[lines.file_row(source.text.index(word)) - 1].strip(' ",\\n') for word in "abcde"] == [
        "a",
        "bé",
        "c",
        "d",
        "e",
    ]


def test_rows_of_the_file_are_forgotten_where_a_fix_moves_them() -> None:
    source = read(notebook("a\nb", "c\nd", "e"))

    def rows(edit: Edit) -> list[int]:
        after = with_edits(source, [edit])
        lines = Lines(after.program, after.cells)
        return [lines.file_row(cell.start) for cell in after.cells]

    before = rows(Edit(Span(4, 5), "longer"))
    raw = notebook("a\nb", "c\nd", "e").splitlines()
    assert [raw[row - 1].strip(' ",\\n') for row in before] == ["a", "c", "e"]
    assert rows(Edit(Span(4, 5), "x\ny")) == [before[0], 1, 1]
