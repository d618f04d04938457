"""Configuration files of a project: the names of classes and functions in its YAML, JSON and TOML files, the seeds and the switches.

A file is read only where it may name a class, has a seed or options of a trainer. Other values that it has are left out, but not their keys. Of JSON and TOML everything is read; of YAML what people write in configurations:
block mappings and lists by their indentation, and mappings in braces on one line. Anchors, tags and texts of several lines are not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from torchrepro_lint.config.discovery import ProjectTree
from torchrepro_lint.source.files import Configuration, load_toml, read_configuration
from torchrepro_lint.source.patterns import lazy_pattern

# What stands for no value, as YAML and JSON write it.
NOTHING = "null"
# So many files are read, and so many texts of each are kept.
_MAX_FILES = 500
_MAX_TEXTS = 1000
_SWITCHES = frozenset({"true", "True", "false", "False"})
# A text that may name a class.
_NAME = lazy_pattern(r"[A-Za-z_]\w*(?:\.\w+)*")
_NAMES_A_CLASS = lazy_pattern(rb"\b(?:_target_|class_path|target|type|class|defaults)[\"']?\s*[:=]")
# The words by which Lightning's trainer gets its options.
_HAS_TRAINER = lazy_pattern(rb"\b(?:max_epochs|max_steps|accelerator|gpus)[\"']?\s*[:=]")
_HAS_SEED = lazy_pattern(rb"(?i)seed\w*[\"']?\s*[:=]")
# ``- key: value``, ``- value``; a key may be quoted.
_LINE = lazy_pattern(
    r"(?P<indent> *(?:- +)*)(?:(?P<quote>[\"']?)(?P<key>[\w./@-]+(?: /?[\w/@-]+)?)(?P=quote):(?: +|$))?(?P<value>.*)"
)
_INLINE = lazy_pattern(r"(?<![\w.])([\"']?)([\w.]+)\1\s*:\s*([\"']?)([\w.]+)\3\s*(?=[,}])")
_COMMENT = lazy_pattern(r"(?:^|\s)#.*")


def read_configurations(tree: ProjectTree) -> tuple[Configuration, ...]:
    """The configuration files of a project that name something, or have a seed or options of a trainer, sorted by path."""
    read: list[Configuration] = []
    for path in tree.configurations[:_MAX_FILES]:
        data = _data(tree.place(path))
        names = _NAMES_A_CLASS.search(data) is not None
        trainer = _HAS_TRAINER.search(data) is not None
        if names or trainer or _HAS_SEED.search(data):
            found = (each for each in _texts(path, data) if each[0])
            every = [(keys, text if _is_kept(keys, text, names=names) else "") for keys, text in found]
            kept = every if len(every) <= _MAX_TEXTS else [each for each in every if each[1]]
            if trainer or any(text and text not in _SWITCHES for _, text in kept):
                read.append(Configuration(path, tuple(kept[:_MAX_TEXTS])))
    return tuple(read)


def _is_kept(keys: tuple[str, ...], text: str, *, names: bool) -> bool:
    """Whether a text may be a seed or a switch, or name something in a file that names classes."""
    return text in _SWITCHES or _has_seed(keys) or (names and _NAME.fullmatch(text) is not None)


def _has_seed(keys: tuple[str, ...]) -> bool:
    return any("seed" in key.lower() for key in keys)


def _data(place: str) -> bytes:
    """The bytes of a file; none of one that cannot be read, or is too large for something that people write."""
    try:
        return read_configuration(place)
    except OSError:
        return b""


def _texts(path: str, data: bytes) -> list[tuple[tuple[str, ...], str]]:
    """The scalars of a file as texts, each under its keys; nothing is null."""
    try:
        if path.endswith((".yaml", ".yml")):
            return [*_of_yaml(data.decode("utf-8-sig"))]
        return [*_of_value(json.loads(data) if path.endswith(".json") else load_toml(data), ())]
    except (ValueError, RecursionError):
        return []


def _of_value(value: Any, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, str):
        yield keys, value
    elif isinstance(value, int | None):
        yield keys, json.dumps(value)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _of_value(each, (*keys, str(key)))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _of_value(each, (*keys, str(number)))


def _of_yaml(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The scalars of block mappings and lists, each under its keys; an element of a list is under its number."""
    above: list[tuple[int, str]] = []
    for written in text.splitlines():
        line = _COMMENT.sub("", written).rstrip()
        if not line or line.startswith(("---", "%", "...")):
            continue
        found = _LINE.match(line)
        assert found is not None
        at = len(found["indent"]) - len(found["indent"].lstrip(" "))
        for dash in re.finditer("-", found["indent"]):
            _enter(above, dash.start(), "-")
            at = dash.end() + 1
        keys = _keys(above, at)
        if found["key"]:
            _enter(above, len(found["indent"]), found["key"])
            keys = (*keys, found["key"])
        value = found["value"].strip()
        if value.startswith("{"):
            yield from (((*keys, each[2]), each[4]) for each in _INLINE.finditer(value))
        elif value or _has_seed(keys[-1:]):
            yield keys, value.strip("\"'") or NOTHING


def _keys(above: list[tuple[int, str]], at: int) -> tuple[str, ...]:
    return tuple(key for column, key in above if column < at)


def _enter(above: list[tuple[int, str]], column: int, key: str) -> None:
    """Begin a key, or the next element of a list, which ends all that is as far to the right."""
    number = 0
    while above and (above[-1][0] > column or (above[-1][0] == column and (key != "-" or above[-1][1].isdigit()))):
        _, last = above.pop()
        number = int(last) + 1 if last.isdigit() else 0
    above.append((column, str(number) if key == "-" else key))
