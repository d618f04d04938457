"""IPython syntax that Python lacks, neutralised in place."""

from __future__ import annotations

import ast
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from torchrepro_lint.source.notebooks import is_indented, neutralised

UNKNOWN = "\u01c3"
COMMANDS = [
    "!pip install torch",
    "!!ls",
    "! nvidia-smi",
    "!echo don't \"worry {x}",
    "%matplotlib inline",
    "%%time",
    "%cd /content/drive/My Drive",
    "%load_ext autoreload",
    "%autoreload 2",
    "%env CUDA_VISIBLE_DEVICES=0",
    "%pip install -q transformers[torch]>=4",
    "torch?",
    "torch.nn.Linear??",
    "?torch",
    "??torch.nn",
    "%timeit?",
    "*int*?",
    "print(1)?",
    "/display net",
    ",f a b",
    "%who_ls str",
    "pip install torch",
    "pip -q install 'torch>=2'",
    "conda install -y pytorch -c pytorch",
    "cd data",
    "ls -l ~/data",
    "matplotlib inline",
    "load_ext tensorboard",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_in_its_own_line_is_a_comment(command: str) -> None:
    text = f"x = 1\n{command}\ny = 2"
    assert re.fullmatch(r"x = 1\n# *\ny = 2", neutralised(text))
    check(text)


@pytest.mark.parametrize("command", [command for command in COMMANDS if not command.startswith("%%")])
def test_a_command_in_a_block_is_a_statement(command: str) -> None:
    text = f"if x:\n    {command}\nelse:\n\t{command}"
    assert re.fullmatch(rf"if x:\n    {UNKNOWN} *\nelse:\n\t{UNKNOWN} *", neutralised(text))
    check(text)


@pytest.mark.parametrize("command", ["!ls *.py", "%who_ls str", "!!ls", "%timeit -o f()", "!cat 'a\nb = 1"])
def test_what_a_command_returns_is_unknown(command: str) -> None:
    first, _, rest = f"a, *b = {command}".partition("\n")
    text = f"{first}\n{rest}"
    assert neutralised(text).rstrip() == f"a, *b = {UNKNOWN}".ljust(len(first)) + f"\n{rest}".rstrip() or rest == ""
    check(text)


@pytest.mark.parametrize(
    ("line", "statement"),
    [
        ("%time loss.backward()", "loss.backward()"),
        ("%time x = f(a % b)", "x = f(a % b)"),
        ("%timeit -n 10 -r3 f(x)", "f(x)"),
        ("%timeit -o -n10 f(x)", "f(x)"),
        ("%prun -s cumtime train()", "train()"),
        ("%memit train()", "train()"),
    ],
)
def test_a_statement_that_is_timed_is_seen_at_its_place(line: str, statement: str) -> None:
    python = neutralised(f"    {line}")
    assert python.index(statement) == f"    {line}".index(statement)
    assert python.startswith(f"    {UNKNOWN};")
    assert python[5 : -len(statement)].strip(" ;") == ""


@pytest.mark.parametrize(
    ("line", "statement"),
    [
        ("%run seed.py", "import seed"),
        ("%run -i tools/seed_all.py ", "import tools.seed_all"),
        ('%run "seed.py"', "import seed"),
        ("%run ../seed.py", "#"),
        ("%run seed.py --fast", "#"),
        ("%run other.ipynb", "#"),
        ("%run 1-seed.py", "#"),
    ],
)
def test_a_script_that_is_run_is_imported(line: str, statement: str) -> None:
    assert neutralised(f"x\n{line}\ny") == f"x\n{statement.ljust(len(line))}\ny"


@pytest.mark.parametrize(
    "line", ["%time", "%timeit -n 3", "%time !ls", "%time %run x.py", "%timeit for x in", "%time_it f()"]
)
def test_a_timing_without_a_python_statement_is_nothing(line: str) -> None:
    assert neutralised(line).strip() == "#"


@pytest.mark.parametrize(
    "text",
    [
        "x = (a\n% b)",
        "x = a \\\n% b",
        's = """\n%time\n!ls\nwhat?\n"""',
        "x = [1,\n!= 2]" if False else "x = a != b",
        "x = 'what?'",
        "x = 1  # why?",
        "# !pip install\n# %time",
        "f(a=b % c)",
        "print('100%')",
        "x %= 3",
        "assert x != '?', '!'",
        "y = f'{x!r}'",
        "a: int = 3 % 2",
        "ls -l",
        "cd /content/data",
        "cat in ls",
        "env is None",
        "pip = 1",
        "cp (a, b)",
        "uv if cd else ls",
        "x = [\ncd -y\n]",
    ],
)
def test_python_stays(text: str) -> None:
    assert neutralised(text) == text


def test_a_command_goes_on_behind_a_backslash() -> None:
    text = "!pip install \\\n  torch \\\n  numpy\nx = 1\nfor y in z:\n  !ls \\\n\t-l\n  f = !ls \\\n  -l\ny"
    python = check(text)
    assert python.replace(" ", "").replace("\t", "").split("\n") == [
        *("#", "", "", "x=1", "foryinz:", UNKNOWN, "", f"f={UNKNOWN}", "", "y")
    ]


@pytest.mark.parametrize(
    "magic", ["%%time", "%%timeit -n 3", "%%capture out --no-stderr", "%%prun", "%% time", "\n\n%%time"]
)
def test_a_cell_that_runs_python_is_python(magic: str) -> None:
    text = f"{magic}\nx = 1\n!ls"
    python = check(text)
    assert python.endswith("\nx = 1\n#  ")
    assert python[: -len("\nx = 1\n#  ")].strip() == "#"


@pytest.mark.parametrize(
    "magic", ["bash", "sh", "html", "javascript", "writefile a.py", "R", "script perl", "cython", "!", "sql", "shell"]
)
def test_a_cell_in_another_language_is_blank(magic: str) -> None:
    text = f"%%{magic}\nfor f in *; do\r\n  echo 'hi\ndone"
    assert neutralised(text).strip() == ""
    check(text)


def test_the_languages_of_databricks() -> None:
    assert neutralised("%sql\nSELECT 'a", databricks=True).strip() == ""
    assert neutralised("%run ./setup\nx = 1", databricks=True).startswith("#")
    assert neutralised("%sql select 1\nx = 1").endswith("\nx = 1")


@pytest.mark.parametrize(
    ("text", "answer"),
    [("  x = 1\n  y", True), ("x\n  y", False), ("# a\n\n  x", True), ("  # a\nx", False), ("", False), ("   ", False)],
)
def test_an_indented_cell(text: str, answer: bool) -> None:
    assert is_indented(neutralised(text)) is answer


LINES = st.lists(
    st.sampled_from(
        [
            *COMMANDS,
            "x = 1",
            "if x:",
            "  y = !ls",
            "  %time f(x)",
            "'''",
            '"a',
            "f(",
            ")",
            "z \\",
            "",
            "  ",
            "\tw?",
            "é = 'ü'",
        ]
    ),
    max_size=8,
)


@given(LINES, st.sampled_from(["\n", "\r\n"]))
@example(["%%bash", "x"], "\n")
def test_offsets_stay(lines: list[str], newline: str) -> None:
    text = newline.join(lines)
    python = neutralised(text)
    assert len(python) == len(text)
    assert [at for at, letter in enumerate(python) if letter in "\r\n"] == [
        at for at, letter in enumerate(text) if letter in "\r\n"
    ]
    assert neutralised(python) == python or "?" in python or '"' in text or "'''" in text


@given(st.text(alphabet="xf =!%?#'\"\\()[]\n\r", max_size=40))
def test_any_text_keeps_its_length_and_lines(text: str) -> None:
    python = neutralised(text)
    assert len(python) == len(text)
    assert python.splitlines(keepends=True) == [
        python[sum(map(len, before)) :][: len(line)]
        for lines in [text.splitlines(keepends=True)]
        for before, line in ((lines[:index], line) for index, line in enumerate(lines))
    ]


def check(text: str) -> str:
    """The neutral text, which Python parses, with every character that is left at its place."""
    python = neutralised(text)
    assert len(python) == len(text)
    ast.parse(python)
    assert all(new in (old, " ", "#", UNKNOWN, ";") for old, new in zip(text, python, strict=True))
    return python
