"""Memory bounds: evicted, shared and paged-out answers change no finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from one_file import facts_of
from page_examples import examples
from torchrepro_lint.config.discovery import plan
from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.dataflow.types import inference
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.dataflow.uses import DefUse
from torchrepro_lint.domain.programs import effects_in
from torchrepro_lint.engine import partition
from torchrepro_lint.engine.checker import Checker, CheckResult
from torchrepro_lint.engine.parsed_file import ParsedFile, parse_bytes
from torchrepro_lint.engine.partition import Partition
from torchrepro_lint.engine.read_project import ReadOptions, read_tree
from torchrepro_lint.engine.run import prepare
from torchrepro_lint.query.memo_tables import LruTable
from torchrepro_lint.resolve import definitions
from torchrepro_lint.resolve import symbols as class_hierarchy
from torchrepro_lint.resolve.computed_names import ComputedNames
from torchrepro_lint.syntax import qualified_names, serialization
from torchrepro_lint.syntax.nodes import Ref
from torchrepro_lint.trace.traces import Traces

Maker = Callable[[Mapping[str, str | bytes]], Path]

_ROOT = Path(__file__).parents[2]
_PAGES = sorted([*(_ROOT / "rules").glob("TRL[1-9]*.md"), *(_ROOT / "tests/rules").glob("TRL[1-9]*.md")])
# What holds no more than so much: by module and name.
BOUNDS = {
    (definitions, "_CACHED_BODIES"): 1,
    (class_hierarchy, "_CACHED_CLASSES"): 1,
    (inference, "_CACHED_FILES"): 0,
    (qualified_names, "_MAX_INTERNED"): 1,
}
# Queries with LRU eviction.
BOUNDED = (Traces.calls, Traces._called, effects_in, DefUse.spots, ComputedNames.may_load)


@pytest.fixture(params=[pytest.param(8, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)])
def everything(project: Maker, request: pytest.FixtureRequest) -> Path:
    """One in so many examples of all pages, each a package of one project, which a script makes one part."""
    every = [(page, example) for page in _PAGES for example in examples(page)]
    return project(
        {"whole.py": "import importlib\nimport sys\n\nimportlib.import_module(sys.argv[1])\n"}
        | {
            f"{page.parent.name}_{page.stem}_{example.line}/{path}": text
            for page, example in every[:: request.param]
            for path, text in example.files.items()
            if path.endswith(".py")
        }
    )


def _tree(place: Path, jobs: int = 1) -> tuple[Checker, dict[str, ParsedFile]]:
    (found,) = plan([str(place)], ConfigOptions()).trees
    return prepare(found, honour_comments=True)[0], read_tree(found, options=ReadOptions(jobs)).files


def _checked(place: Path) -> dict[str, CheckResult]:
    checker, files = _tree(place)
    return partition.check_tree(checker, Partition(checker, files))


def _definition(query: Callable[..., object]) -> Any:
    return query.definition  # type: ignore[attr-defined]


def test_what_is_let_go_of_is_found_again(everything: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = _checked(everything)
    assert sum(len(each.findings) for each in usual.values()) > 100
    for (module, name), most in BOUNDS.items():
        assert getattr(module, name) > most
        monkeypatch.setattr(module, name, most)
    for query in BOUNDED:
        assert _definition(query).lru > 1
        monkeypatch.setattr(_definition(query), "lru", 1)
    assert _checked(everything) == usual


def test_the_calls_of_few_files_are_held(everything: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_definition(Traces.calls), "lru", 5)
    checker, files = _tree(everything)
    project = Partition(checker, files).of("whole.py")
    for path in files:
        project.calls(path)
    assert len(files) > 100
    assert 5 <= sum(project.database.table_of(Traces.calls).find((path,)) is not None for path in files) < 10


def test_who_calls_what_has_all_calls_and_holds_none(everything: Path) -> None:
    checker, files = _tree(everything)
    project = Partition(checker, files).of("whole.py")
    known = project.all_calls()
    assert project.database.known(Traces.calls) is None
    for path in files:
        for site in project.calls(path):
            for name in (each for each in site.names if ":" in each):
                assert path in known.files_calling(name)
                assert site in [each for file, each in project.sites_of(name) if file == path]


def test_what_values_are_is_forgotten_between_files(everything: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "_CACHED_FILES", 5)
    checker, files = _tree(everything)
    known = type_inference(Partition(checker, files).of("whole.py"))
    for number, path in enumerate(files, 1):
        known.flows(path)
        known.rest()
        assert len(known._flows.entries()) == number % 6


def test_of_answers_those_asked_for_last_are_remembered() -> None:
    recent = LruTable[int, str](3)
    for number in range(20):
        recent[number] = str(number)
        assert recent.get(0) == "0", "asked for each time"
        assert all(recent.get(each) == str(each) for each in range(max(number - 1, 0), number + 1))
    assert sum(recent.get(each) is not None for each in range(20)) < 6
    recent.pop(0)
    recent.pop(100)
    assert recent.get(0) is None


def test_what_files_have_alike_is_one_object_wherever_they_were_read() -> None:
    one, other = (facts_of(f"import torch\n\n{space}torch.manual_seed(x)\n") for space in ("", "\n"))
    sent = serialization.unpickled(serialization.pickled(other))
    assert sent == other
    refs = [each.body[1].value.func for each in (one, other, sent)]  # type: ignore[union-attr]
    assert all(type(each) is Ref for each in refs)
    assert len({id(each.roots) for each in refs}) == len({id(each.path) for each in refs}) == 1
    assert sent.body[1].end is other.body[1].end


def test_offsets_of_a_long_text_are_one_object_each(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "#" * serialization.SHARED_LIMIT + "\nprint(x)\n"
    for facts in (facts_of(text), serialization.unpickled(serialization.pickled(facts_of(text)))):
        call = facts.body[0].value
        assert (call.start, call.end) == (serialization.SHARED_LIMIT + 1, serialization.SHARED_LIMIT + 9)
    call = facts_of(text).body[0].value  # type: ignore[union-attr]
    assert call.func.base_end is call.func.end
    assert call.start is call.func.start


@pytest.mark.parametrize(
    "data", [b"x = 1\n", b"\xef\xbb\xbfx = '\xc3\xa4'\r\n", b"# coding: latin-1\nx = '\xe4'\n", b""]
)
def test_a_text_that_is_put_away_is_as_it_was(data: bytes) -> None:
    reading, other = parse_bytes(data), parse_bytes(data)
    reading.page_out()
    reading.page_out()
    assert reading.source == other.source
    assert (reading.text, reading.lines.text, reading.written.text) == (
        other.text,
        other.lines.text,
        other.written.text,
    )


def test_half_of_a_surrogate_pair_is_put_away_and_comes_back() -> None:
    reading = parse_bytes(b"# coding: utf-7\nx = '+2AA-'\n")
    before = reading.source
    reading.page_out()
    assert reading.source == before
