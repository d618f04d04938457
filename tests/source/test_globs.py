"""Globs mean what they mean to git and pathspec, and match in at most text length times wildcards steps."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path

import pytest
from pathspec import GitIgnoreSpec

from matching import steps
from torchrepro_lint.source.patterns import parse_gitignore_line, sequence_with_gaps, wildcard_expression

SEGMENTS = (
    *("a", "b", "ab", "*", "**", "**", "a*", "*b", "*a*", "a*b*", "?", "?b", "[ab]", "[!a]b", "\\a", "\\*", "a?*"),
    *("*a*b*a", "b**a", "[a-b]*"),
)
NAMES = ("a", "b", "ab", "ba", "aab", "abab", "bb", "*")
# Of these pathspec has a way of its own in each release.
EVERYTHING = re.compile(r"!?/?(\*\*/)*\*\*?/?")


def lines(amount: int, chance: random.Random) -> list[str]:
    """Lines of a .gitignore, whose segments are small and have few letters, so that many fit."""

    def line() -> str:
        path = "/".join(chance.choice(SEGMENTS) for _ in range(chance.randint(1, 4)))
        return "!" * (chance.random() < 0.1) + "/" * (chance.random() < 0.2) + path + "/" * (chance.random() < 0.2)

    return [line() for _ in range(amount)]


def paths(amount: int, chance: random.Random) -> list[str]:
    return ["/".join(chance.choice(NAMES) for _ in range(chance.randint(1, 5))) for _ in range(amount)]


def folder_of(match: re.Match[str] | None) -> bool | None:
    """Whether a folder was matched that more may be told of, ``None`` where nothing was."""
    return match and bool(match.groupdict().get("ps_d"))


def test_a_line_means_what_it_means_to_pathspec() -> None:
    chance = random.Random(0)
    fitted = 0
    for line in lines(4000, chance):
        theirs, ours = GitIgnoreSpec.from_lines([line]).patterns[0], parse_gitignore_line(line)
        assert (theirs.include, bool(theirs.regex)) == (ours and ours.excludes, bool(ours)), line
        if ours is None or theirs.regex is None or EVERYTHING.fullmatch(line):
            continue
        # There a slash is a letter that is not among those between brackets.
        expression = re.compile(theirs.regex.pattern.replace("[^", "[^/"))
        for path in paths(8, chance):
            for each in (path, f"{path}/"):
                found, expected = re.match(ours.expression, each), expression.search(each)
                assert bool(found) == bool(expected), (line, each)
                assert folder_of(found) == folder_of(expected), (line, each)
                fitted += found is not None
    assert fitted > 5000


@pytest.mark.parametrize("line", ["*", "**", "/*", "/**", "**/*", "*/", "**/", "/**/", "**/*/"])
def test_everything_is_a_folder_where_it_is_one(line: str) -> None:
    """So that, as git has it, a ``!*/`` after it lets what is in folders be told of."""
    read = parse_gitignore_line(line)
    assert read is not None
    folders_alone = line.endswith("/")
    assert folder_of(re.match(read.expression, "a")) is (None if folders_alone else False)
    assert folder_of(re.match(read.expression, "a/")) is True
    assert folder_of(re.match(read.expression, "a/b/")) is True


@pytest.mark.skipif(not shutil.which("git"), reason="asks git")
def test_a_line_means_what_it_means_to_git(tmp_path: Path) -> None:
    """Each line has a folder of its own, so that git is asked once."""
    chance = random.Random(1)
    odd = ["[[:alpha:]]*", "[]a]", "[!]a]", "[a-]", "[\\]]b", "[[:digit:]b]", "a\\ ", "a\\", "[", "a//b", "***"]
    told = dict(enumerate(line for line in [*odd, *lines(300, chance)] if not line.startswith("!")))
    for number, line in told.items():
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}/.gitignore").write_text(f"{line}\n", encoding="utf-8")
    asked = [(number, path) for number in told for path in [*NAMES, "]b", "a ", *paths(20, chance)]]
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    ran = subprocess.run(
        ["git", "-C", str(tmp_path), "-c", "core.excludesFile=", "check-ignore", "--stdin", "-z"],
        input="".join(f"{number}/{path}\0" for number, path in asked),
        capture_output=True,
        text=True,
        check=False,
    )
    ignored = set(ran.stdout.split("\0"))
    assert 1000 < len(ignored) < len(asked) / 2
    for number, path in asked:
        if told[number].endswith("**/"):  # to git it means folders alone, to pathspec what lies in them
            continue
        assert fits(told[number], path) == (f"{number}/{path}" in ignored), (told[number], path)


def fits(line: str, path: str) -> bool:
    try:
        read = parse_gitignore_line(line)
    except ValueError:
        return False
    return read is not None and bool(re.match(read.expression, path))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", None),
        ("  ", None),
        ("# a", None),
        ("/", None),
        ("!/", None),
        ("!", "nothing follows the exclamation mark"),
        ("a\\", "nothing follows the backslash at its end"),
        ("a\\\t\\", "nothing follows the backslash at its end"),
        ("[", "a bracket is not closed"),
        ("x/[]", "a bracket is not closed"),
        ("[a\\]", "a bracket is not closed"),
        ("[[:alpha:]", "a bracket is not closed"),
        ("[z-a].py", "the range z-a is empty"),
        ("[[:letter:]]", "there is no class [:letter:]"),
    ],
)
def test_what_is_no_pattern(line: str, expected: str | None) -> None:
    if expected is None:
        assert parse_gitignore_line(line) is None
        return
    with pytest.raises(ValueError, match=re.escape(expected)):
        parse_gitignore_line(line)


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("*a*a*a*a*a*a*a*ab", "a"),
        ("*a*a*a*a*a*a*a*ab", "a/"),
        ("?*?*?*?*?*?*b", "a"),
        ("[ab]*[ab]*[ab]*[ab]*x", "ab"),
        ("**/**/**/**/b", "a/"),
        ("**/a/**/a/**/a/**/a/**/b", "a/"),
        ("**/*a*/**/*a*/**/*a*/**/*a*b*/x", "aa/"),
        ("*/*/*/*/*/b", "a/"),
        ("a*/**", "a"),
        ("**********b", "a"),
    ],
)
def test_a_line_takes_steps_in_proportion(line: str, path: str) -> None:
    read = parse_gitignore_line(line)
    assert read is not None
    few, many = (steps(re.compile(read.expression), path * length, search=False) for length in (20, 40))
    assert many < 2.2 * few
    assert few < 10 * len(line) * len(path) * 20


def test_pieces_come_in_order() -> None:
    expression = re.compile(sequence_with_gaps(["a", "bc", "", "b", "c"], r"\w*", count()))
    assert expression.fullmatch("a_bc_b_c")
    assert expression.fullmatch("abcbc")
    assert not expression.fullmatch("a_bc_c")
    assert not expression.fullmatch("abc")


@pytest.mark.parametrize("gap", [r"\w*", r"[\w.]+", ".*"])
@pytest.mark.parametrize("text", ["transformers.*For*.*", "*For*For*For*", "For*For*For*For"])
def test_a_text_with_stars_takes_steps_in_proportion(text: str, gap: str) -> None:
    expression = re.compile(wildcard_expression(text, gap, count()))
    few, many = (
        steps(expression, f"transformers.{'For.' * length}()", search=False, whole=True) for length in (10, 20)
    )
    assert many < 2.2 * few


def test_a_name_of_many_parts_that_are_not_known_takes_no_time(project: Callable[[Mapping[str, str]], Path]) -> None:
    """The name of the method was tried with all the ways of all the words that are not known."""
    method, name = "a" * 60, "a".join(f"{{words[{number}]}}" for number in range(20))
    call = f'torch.load(getattr(self, f"aaaa{name}b")()[0])'
    known = 'torch.load(getattr(self, f"{words[0]}_there_{words[1]}_file{words[2]}")()[0])'
    source = f"""import os

import torch


class Samples(torch.utils.data.Dataset):
    def __init__(self, words):
        self.first = {call}
        self.other = {known}

    def {method}(self):
        return os.listdir("sounds")

    def find_there_sound_files(self):
        return os.listdir("sounds")
"""
    ran = subprocess.run(
        [sys.executable, "-m", "torchrepro_lint", "--no-cache", "--select", "TRL503", str(project({"a.py": source}))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert [line.split(":")[1] for line in ran.stdout.splitlines()] == ["12", "15"]
