"""Real text to make inputs from: Python's own library, our examples, and what is named."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

TOP = Path(__file__).parents[2]
_FENCE = re.compile(r"^```python[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LARGEST = 400_000


class Corpus(NamedTuple):
    """Files of any sort, programs that use torch, and programs that hypothesmith has made."""

    files: tuple[Path, ...]
    programs: tuple[str, ...]
    made: tuple[str, ...] = ()

    def program(self, chance: Random) -> str:
        """A program of ours, or some lines of a file that begin with a whole statement."""
        return chance.choice(self.programs) if chance.random() < 0.5 else self.excerpt(chance)

    def excerpt(self, chance: Random) -> str:
        """Some lines of a file; now and then all of it."""
        text = chance.choice(self.files).read_bytes().decode("utf-8", "replace")
        lines = text.splitlines(keepends=True)
        starts = [number for number, line in enumerate(lines) if line[:1].strip() and line[0] not in ")]}#"]
        if len(lines) < 40 or len(starts) < 3 or (len(lines) < 800 and chance.random() < 0.004):
            return text
        first = chance.randrange(len(starts))
        wanted = starts[first] + chance.randint(2, 40)
        last = next((number for number in starts[first + 1 :] if number >= wanted), len(lines))
        return "".join(lines[starts[first] : min(last, starts[first] + 100)])


LIBRARY = Path(sysconfig.get_path("stdlib"))
OURS = TOP / "torchrepro_lint"


def read_corpus(folders: Iterable[Path], grown: int = 0) -> Corpus:
    """What is below the folders, and our examples; ``grown`` programs of hypothesmith's, where it is installed."""
    files = [path for folder in folders for path in sorted(folder.rglob("*.py")) if _fit(path)]
    return Corpus(tuple(files), tuple(_programs()), _grown(grown))


def _fit(path: Path) -> bool:
    below = path.relative_to(LIBRARY).parts if path.is_relative_to(LIBRARY) else ()
    return "site-packages" not in below and path.is_file() and 0 < path.stat().st_size < _LARGEST


def _programs() -> Iterator[str]:
    for page in sorted((*TOP.glob("rules/*.md"), *TOP.glob("tests/rules/*.md"))):
        yield from _FENCE.findall(page.read_text(encoding="utf-8"))
    for folder in ("examples", "tests/reproducibility/programs"):
        for path in sorted((TOP / folder).rglob("*.py")):
            yield path.read_text(encoding="utf-8")


def _grown(count: int) -> tuple[str, ...]:
    try:
        import hypothesmith
    except ImportError:
        return ()
    from hypothesis import HealthCheck, given, seed, settings

    found: list[str] = []

    @seed(13)
    @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(hypothesmith.from_grammar())
    def take(text: str) -> None:
        found.append(text)

    if count:
        take()
    return tuple(found)
