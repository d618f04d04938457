"""What is read of YAML, JSON and TOML files: the texts that may name a class, as other readers have them, and all keys."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from torchrepro_lint.config.configurations import read_configurations
from torchrepro_lint.config.discovery import plan
from torchrepro_lint.config.roots import ConfigOptions

Project = Callable[[Mapping[str, str | bytes]], Path]

DOCUMENTS = {
    "nested": """\
# The model that is trained.
defaults:
  - _self_
  - model: net
  - override /optimizer: adam

model:
  _target_: nets.Net  # with a comment
  net: {_target_: nets.Inner, width: 4}
  layers:
  - type: First
    kind: conv
  - type: "Second"
callbacks:
    - _target_: a.One
      inner:
        class_path: a.Inner
    - _target_: 'a.Two'
last: end
""",
    "flat": "_target_: nets.Net\nwidth: 4\n",
    "lists": "target: x.Y\nnames:\n  - a\n  - b\nmore: [c, d]\n",
    "deep": "type: A\na:\n  b:\n    c:\n      target: m.n\n  d: e\nf: g\n",
}


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_yaml_is_read_as_a_whole_reader_does(document: str, project: Project) -> None:
    yaml = pytest.importorskip("yaml")
    assert texts(project, {"a.yaml": document}) == [
        ("a.yaml", *each) for each in sorted(leaves(yaml.safe_load(document)))
    ]


def test_json_and_toml(project: Project) -> None:
    value = {"model": {"target": "nets.Net", "layers": [{"type": "A"}, {"type": "B"}], "width": 4, "text": "two words"}}
    found = texts(project, {"a.json": json.dumps(value), "b.toml": 'type = "x"\n[model]\ntarget = "nets.Net"\n'})
    expected = [("a.json", *each) for each in sorted(leaves(value))]
    assert found == [*expected, ("b.toml", "model.target", "nets.Net"), ("b.toml", "type", "x")]


@pytest.mark.parametrize(
    "data", [b"{", b"\xff\xfe", b"target: [", b"[" * 100_000, b'{"target": ' * 5_000, b"target: x" * 20_000]
)
def test_what_cannot_be_read_names_nothing(data: bytes, project: Project) -> None:
    files = {"a.json": b"target" + data, "b.toml": b"target" + data, "c.json": data}
    assert texts(project, files) == []
    texts(project, {"d.yaml": data})


def test_an_excluded_file_names_nothing(project: Project) -> None:
    assert texts(project, {".venv/a.yaml": "_target_: a.B", "conf/a.yaml": "_target_: a.B"}) == [
        ("conf/a.yaml", "_target_", "a.B")
    ]


def test_the_keys_of_other_values_are_kept(project: Project) -> None:
    text = "seed: 3\ntrainer:\n  devices: [1]\n  epochs: 4\n  benchmark: false\n  name: two words\n"
    assert values(project, {"a.yaml": text, "b.yaml": "epochs: 4\nbenchmark: true\n"}) == [
        ("a.yaml", "seed", "3"),
        ("a.yaml", "trainer.benchmark", "false"),
        ("a.yaml", "trainer.devices", ""),
        ("a.yaml", "trainer.epochs", ""),
        ("a.yaml", "trainer.name", ""),
    ]


def texts(project: Project, files: Mapping[str, str | bytes]) -> list[tuple[str, str, str]]:
    """The texts of configuration files of a project that may be names, each with its file and its keys, sorted."""
    return [each for each in values(project, files) if each[2]]


def values(project: Project, files: Mapping[str, str | bytes]) -> list[tuple[str, str, str]]:
    """What is kept of configuration files of a project, each with its file and its keys, sorted."""
    root = project({"torchrepro-lint.toml": "", "main.py": "", **files})
    (tree,) = plan([str(root)], ConfigOptions(None, False, lambda settings: settings)).trees
    return sorted((each.path, ".".join(keys), text) for each in read_configurations(tree) for keys, text in each.texts)


def leaves(value: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """The texts in a value that may be names, but for those of lists on one line."""
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z_]\w*(\.\w+)*", value) and keys[0] != "more":
        yield ".".join(keys), value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield from leaves(each, (*keys, str(key)))
