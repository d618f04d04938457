"""TOML: one line on each error, and keys that would exhaust memory are refused before parsing."""

from __future__ import annotations

import pytest

from torchrepro_lint.source import files
from torchrepro_lint.source.files import load_toml, parse_toml

MANY = 100_000
LONG = {
    "plain": "a." * MANY + "b = 1",
    "spaced": "a . " * MANY + "b = 1",
    "quoted": '"a.".' * MANY + "b = 1",
    "literal": "'#'." * MANY + "b = 1",
    "a table": f"[{'a.' * MANY}b]",
    "an array of tables": f"[[{'a.' * MANY}b]]",
    "inline": f"x = {{{'a.' * MANY}b = 1}}",
    "after a string": f'x = """\na"""""\n{"a." * MANY}b = 1',
    "after a string of one line": f"x = 'a\\'\n{'a.' * MANY}b = 1",
    "after a comment": f'# """\n{"a." * MANY}b = 1',
    "after a string in a table": f'x = {{a = """a"""", {"a." * MANY}b = 1}}',
}
DOTS = "." * 1000
SOUND = {
    "in a text": f'x = "{DOTS}"',
    "behind a quote": f'x = "\\"{DOTS}"',
    "in a literal": f"x = '\\{DOTS}'",
    "in a text of several lines": f'x = """\n" {DOTS} "" \\""" {DOTS}\n{DOTS}"""',
    "in a literal of several lines": f"x = '''\n' {DOTS} '' {DOTS}\n{DOTS}'''",
    "in a comment": f"x = 1 # {DOTS}",
    "in a key": f'"{DOTS}" = 1',
    "in numbers": f"x = [{'1.5, ' * 1000}]",
    "in keys side by side": "x = {" + ", ".join(f"a{n}.b.c = 1" for n in range(500)) + "}",
}


@pytest.mark.parametrize("kind", LONG)
def test_a_key_of_many_parts_is_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files.tomllib, "loads", None)
    with pytest.raises(ValueError, match="a key of more than 100 parts"):
        parse_toml(LONG[kind] + "\n")


@pytest.mark.parametrize("kind", SOUND)
def test_dots_elsewhere_are_none_of_a_key(kind: str) -> None:
    assert parse_toml(SOUND[kind] + "\n")
    assert parse_toml(f"{SOUND[kind]}\n{'a.' * 99}b = 1\n")


@pytest.mark.parametrize(
    "text", [f"x = {'9' * 5000}", f"x = [{'9' * 5000}]", "[" * 100_000, "x = " + "[" * 100_000, "x"]
)
def test_whatever_is_wrong_is_a_value_error_of_one_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as caught:
        parse_toml(text)
    assert "sys." not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_file_has_any_line_ends_and_a_mark(end: str) -> None:
    assert load_toml(f"\ufeffx = 1{end}y = 2{end}".encode()) == {"x": 1, "y": 2}
