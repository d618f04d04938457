"""``python -m tools.catalogue``: write, or check, the catalogue file of a torch release, and compile all files of the catalogue.

``--compile`` alone compiles: after an edit of a table by hand. A table whose compiled form is out of date is parsed at each start.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

from packaging.version import Version

from tools.catalogue import index, listing, remote, render
from tools.catalogue.grammar import UnknownLineError
from torchrepro_lint.source.files import COMPILED

_MEMBER = "torch/__init__.py"
_OUTPUT = Path("rules/catalogue")


class Source(NamedTuple):
    """The text of ``torch/__init__.py`` and its public version."""

    version: str
    text: str


_Make: TypeAlias = Callable[[], Source]


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0; 1 when ``--check`` finds a difference; 2 when a source can't be read or understood."""
    options = _parser().parse_args(arguments)
    status = 0
    if options.compile:
        return _compiled(options)
    for make in _sources(options):
        try:
            source = make()
            text = generate(source)
        except (UnknownLineError, LookupError, OSError) as error:
            sys.stderr.write(f"error: {error}\n")
            return 2
        path = options.output / f"torch-{render.minor(source.version)}.toml"
        if options.check:
            status |= _differs(path, text)
        else:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path}\n")
    return status | _compiled(options)


def generate(source: Source) -> str:
    """The catalogue file of a source. Raises ``UnknownLineError`` with the line that is not understood."""
    try:
        documented = listing.docstring(source.text)
        rows = listing.parse_list(documented)
    except UnknownLineError as error:
        raise UnknownLineError(f"torch {source.version}: {error}") from error
    function = next(name for name in listing.FUNCTIONS if f"def {name}(" in source.text)
    return render.render(source.version, function, rows)


def installed() -> Source:
    """The installed torch, which is not imported. Raises ``LookupError`` when there is none."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise LookupError("torch is not installed; name a release with --torch or a wheel with --wheel")
    version = importlib.metadata.version("torch").partition("+")[0]
    return Source(version, Path(spec.origin).read_text(encoding="utf-8"))


def released(release: str) -> Source:
    """A release by version, read out of its smallest wheel on the package index."""
    wheel = index.smallest_wheel(release)
    return Source(wheel.version, remote.read_member(wheel.url, _MEMBER).decode())


def wheel(path: Path) -> Source:
    """A wheel file."""
    match = re.match(r"torch-(\d+\.\d+\.\d+)", path.name)
    if match is None:
        raise LookupError(f"{path}: the name of a torch wheel starts with torch-<version>")
    with zipfile.ZipFile(path) as archive:
        return Source(match[1], archive.read(_MEMBER).decode())


def file(path: Path) -> Source:
    """A ``torch/__init__.py`` with ``version.py`` beside it."""
    version = re.search(r"__version__ = ['\"](\d+\.\d+\.\d+)", path.with_name("version.py").read_text(encoding="utf-8"))
    if version is None:
        raise LookupError(f"{path.with_name('version.py')} names no version")
    return Source(version[1], path.read_text(encoding="utf-8"))


def _sources(options: argparse.Namespace) -> list[_Make]:
    if options.wheel:
        return [lambda: wheel(options.wheel)]
    if options.source:
        return [lambda: file(options.source)]
    return [_release(release) for release in options.torch or _committed(options)] or [installed]


def _committed(options: argparse.Namespace) -> list[str]:
    """With ``--all``, the releases whose files are in the output folder, oldest first."""
    found = (re.search(r'^torch = "(.+)"$', path.read_text(encoding="utf-8"), re.MULTILINE) for path in _files(options))
    return sorted((match[1] for match in found if match), key=Version)


def _files(options: argparse.Namespace) -> list[Path]:
    return sorted(options.output.glob("torch-*.toml")) if options.all else []


def _release(release: str) -> _Make:
    return lambda: released(release)


def _compiled(options: argparse.Namespace) -> int:
    """Write or check the compiled form of what is in the output folder."""
    path = options.output / COMPILED
    data = render.compile_tables({file.name: file.read_bytes() for file in options.output.glob("*.toml")})
    if options.check:
        return _differs(path, data.decode())
    path.write_bytes(data)
    sys.stdout.write(f"{path}\n")
    return 0


def _differs(path: Path, text: str) -> int:
    same = path.is_file() and path.read_bytes() == text.encode()
    if not same:
        sys.stderr.write(f"{path} differs from what is generated\n")
    return 0 if same else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.catalogue", description=__doc__)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--torch", nargs="+", default=[], metavar="VERSION", help="releases, 2.13.0 or 2.13")
    source.add_argument("--all", action="store_true", help="the releases that the folder has, from their wheels")
    source.add_argument("--wheel", type=Path, metavar="FILE", help="a torch wheel")
    source.add_argument("--source", type=Path, metavar="FILE", help="a torch/__init__.py, version.py beside it")
    source.add_argument("--compile", action="store_true", help=f"write {COMPILED} alone")
    parser.add_argument("--check", action="store_true", help="compare with what is there, write nothing")
    parser.add_argument("-o", "--output", type=Path, default=_OUTPUT, metavar="DIR", help=f"default: {_OUTPUT}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
