"""Bounded reading of files, change detection by signature and digest, and TOML.

A checkout may hold anything: no file is read beyond the limit for its kind, and no pipe or device is waited for. A file has changed if
the size, times or inode that the file system reports differ, or else its bytes do. TOML is the standard library's, or its
forerunner's below Python 3.11, without the inputs on which either takes forever. ``rules/`` of a checkout is ``_rules`` in an installed wheel.
The tables of the catalogue are compiled to JSON, since Python's parser of TOML takes as long for them as everything else for a small file.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torchrepro_lint import limits
from torchrepro_lint.source.errors import OUT_OF_MEMORY
from torchrepro_lint.source.patterns import lazy_pattern

_PACKAGE = Path(__file__).parents[1]
# A file modified within this time (in nanoseconds) may be modified again without a change of its signature.
_RACY = 2_000_000_000

# Module names that projects use and no library has.
OWN_MODULES = frozenset(
    {"utils", "util", "utilities", "helper", "helpers", "common", "misc", "tools", "functions", "ops", "const"}
    | {"constants", "architectures"}
    | {"model", "models", "module", "modules", "net", "nets", "network", "networks", "layer", "layers"}
    | {"data", "dataset", "dataloader", "dataloaders", "data_loader", "data_utils", "preprocess", "preprocessing"}
    | {"loss", "losses", "metric", "metrics", "criterion", "train", "trainer", "test", "evaluation", "solver"}
    | {"config", "configs", "option", "options", "opts", "args", "arguments", "params", "hparams", "agent", "agents"}
)


class FileSignature(NamedTuple):
    """The signature of a file in the file system, by which a change is noticed without reading it; times in nanoseconds."""

    size: int
    modified: int
    changed: int
    inode: int


def file_signature(path: str | Path) -> FileSignature:
    """The signature of a file. Raises ``OSError``, also for what is no regular file: a pipe or a device may never end."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        is_folder = stat.S_ISDIR(found.st_mode)
        raise OSError(errno.EINVAL, os.strerror(errno.EISDIR) if is_folder else "Not a regular file", str(path))
    return FileSignature(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def unchanged(seen: FileSignature, known: Sequence[int], made: int) -> bool:
    """Whether a file certainly has not changed since its signature was ``known``, which was before the time ``made``."""
    return tuple(known) == seen and made - max(seen.modified, seen.changed) >= _RACY


def digest(data: bytes, notebook: bool = False) -> str:
    """The digest of a file's bytes; the same bytes have another digest as a notebook."""
    return blake2b(data, digest_size=16, person=b"notebook" if notebook else b"").hexdigest()


class Configuration(NamedTuple):
    """A configuration file of a program, by its path from the root: the texts in it that may be names, seeds or switches,
    each under its keys; other values are empty.
    """

    path: str
    texts: tuple[tuple[tuple[str, ...], str], ...]


def composed_texts(files: Mapping[str, Configuration], path: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The texts of one of the files under their keys, with those of the files that its defaults list names, as hydra composes them."""
    yield from _composed(files, path, posixpath.dirname(path), (), 0)


def _composed(
    files: Mapping[str, Configuration], path: str, top: str, package: tuple[str, ...], depth: int
) -> Iterator[tuple[tuple[str, ...], str]]:
    known = files.get(path)
    for keys, text in known.texts if known is not None and depth <= limits.MAX_CONFIGURATION_DEPTH else ():
        if keys[0] != "defaults":
            yield (*package, *keys), text
        elif len(keys) in (2, 3) and text not in ("_self_", "null"):
            group, at, name = (keys[2].removeprefix("override ") if len(keys) == 3 else "").partition("@")
            folder = top if group.startswith("/") else posixpath.dirname(path)
            stem = posixpath.normpath(posixpath.join(folder, group.strip("/"), text))
            inside = tuple(name.split(".")) if at else tuple(part for part in group.strip("/").split("/") if part)
            outer = () if group.startswith("/") else package
            for each in filter(files.get, spellings(stem)):
                own = any(inside and keys[:1] == inside[:1] for keys, _ in files[each].texts)
                for within in ((), inside) if own else (inside,):  # before hydra 1.0 a file names its group
                    yield from _composed(files, each, top, (*outer, *within), depth + 1)


def spellings(stem: str) -> tuple[str, ...]:
    """The YAML files that a name of hydra's may stand for."""
    return (stem,) if stem.endswith((".yaml", ".yml")) else (f"{stem}.yaml", f"{stem}.yml")


# The suffixes of programs, and of files from which a program may take the names of its classes.
PROGRAMS = (".py", ".ipynb")
CONFIGURATIONS = (".yaml", ".yml", ".json", ".toml")
# The largest text that is analysed; its tree may take two hundred times as many bytes of memory.
MAX_ANALYSED_CHARACTERS = 10_000_000
# A character takes at most four bytes, and there may be a byte order mark. A notebook holds pictures, too.
MAX_PROGRAM = 4 * MAX_ANALYSED_CHARACTERS + 3
MAX_NOTEBOOK = 200_000_000
# Files that tools write about a project: lock files of thousands of packages have half of that.
MAX_MANIFEST = 10_000_000
# Files that people write: each pattern becomes a regular expression, each requirement is parsed.
_MAX_SETTINGS = 1_000_000
_MAX_REQUIREMENTS = 2_000_000
_MAX_GITIGNORE = 200_000
MAX_CONFIGURATION = 100_000
# Files that the user names and this tool wrote: a baseline, a report.
_MAX_NAMED_FILE = 100_000_000
# Some files are longer than the file system says, such as those of /proc.
_MIN_READ = 65_536
# A few regular files would block, such as the log of the kernel.
_OPENED = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class TooLarge(OSError):  # noqa: N818  the file is not at fault
    """A file has more bytes than are read of such a file."""

    def __init__(self, path: str | Path, most: int) -> None:
        super().__init__(errno.EFBIG, f"more than {most:,} bytes", str(path))


def read_program(path: str | Path) -> bytes:
    """The bytes of a file that may be linted, a program or a notebook. Raises ``OSError``, see ``read_bounded``."""
    return read_bounded(path, MAX_NOTEBOOK if is_notebook(str(path)) else MAX_PROGRAM)


def read_named_file(path: str | Path, most: int = _MAX_NAMED_FILE) -> bytes:
    """The bytes of a file that the user names; it may be a pipe, which is waited for. Raises ``OSError``."""
    if os.path.isfile(path):
        return read_bounded(path, most)
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise TooLarge(path, most)
    return data


def read_bounded(path: str | Path, most: int) -> bytes:
    """The bytes of a regular file. Raises ``OSError`` for any other, and for one that would block; ``TooLarge``, before it is
    read, for one of more than ``most`` bytes.
    """
    size = file_signature(path).size
    if size > most:
        raise TooLarge(path, most)
    handle = os.open(path, _OPENED)
    try:
        pieces, left = [], most + 1  # it may grow meanwhile
        while left and (piece := os.read(handle, min(left, max(size + 1, _MIN_READ)))):
            pieces.append(piece)
            left -= len(piece)
    finally:
        os.close(handle)
    if not left:
        raise TooLarge(path, most)
    return b"".join(pieces)


# The bytes of a file of each kind; they raise ``OSError``. The settings are a file that the user may name.
read_gitignore = partial(read_bounded, most=_MAX_GITIGNORE)
read_manifest = partial(read_bounded, most=MAX_MANIFEST)
read_configuration = partial(read_bounded, most=MAX_CONFIGURATION)
read_requirements = partial(read_bounded, most=_MAX_REQUIREMENTS)
read_settings = partial(read_named_file, most=_MAX_SETTINGS)


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


# A dotted key takes time quadratic in the number of its parts. People write at most five.
_MAX_KEY_PARTS = 100
# Tokens that begin a string or a comment, join the parts of a key, or separate keys.
_MARK = lazy_pattern(r"\"{3}|'{3}|[\"'#.\n=\[\]{},]")
# For each opening token, its end and escapes. In a multi-line string, quotes just before the closing ones belong to it.
_ENDS = {
    '"""': lazy_pattern(r"\\(?s:.)|\"{3,5}"),
    "'''": lazy_pattern(r"'{3,5}"),
    '"': lazy_pattern(r"\\.|[\"\n]"),
    "'": lazy_pattern(r"['\n]"),
    "#": lazy_pattern(r"\n"),
}


def load_toml(data: bytes) -> dict[str, Any]:
    """The tables of a TOML file. Raises ``ValueError`` as ``parse_toml`` does, also for bytes that are not UTF-8."""
    return parse_toml(data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n"))


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text. Raises ``ValueError``, also for too deep nesting and for too long numbers and keys."""
    if _has_long_key(text):
        raise ValueError(f"a key of more than {_MAX_KEY_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except MemoryError:
        raise ValueError(OUT_OF_MEMORY) from None
    except ValueError as error:  # Python gives advice with numbers of too many digits
        raise ValueError(str(error).partition("; use sys.")[0]) from None


def _has_long_key(text: str) -> bool:
    """Whether a key has too many parts: that many dots in a row outside strings and comments (a value has one at most)."""
    if all(line.count(".") < _MAX_KEY_PARTS for line in text.split("\n")):
        return False
    at = dots = 0
    while mark := _MARK.search(text, at):
        at = mark.end()
        if mark[0] in _ENDS:
            at = _end(text, at, mark[0])
        if mark[0] == ".":
            dots += 1
        elif mark[0] not in ("'", '"'):
            dots = 0
        if dots >= _MAX_KEY_PARTS:
            return True
    return False


def _end(text: str, at: int, opening: str) -> int:
    """The end of a string or comment with this opening; the end of the text where it is unclosed."""
    found = (each for each in _ENDS[opening].finditer(text, at) if not each[0].startswith("\\"))
    return next((each.end() for each in found), len(text))


if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from importlib.resources.abc import Traversable
    else:
        from importlib.abc import Traversable


def rules_dir() -> Traversable:
    """The directory of the rule pages, with ``catalogue/`` inside; the tool may lie in an archive."""
    for shipped in (_PACKAGE / "_rules", _PACKAGE.parent / "rules"):
        if shipped.is_dir():
            return shipped
    from importlib.resources import files  # loads a dozen modules

    return files("torchrepro_lint") / "_rules"


# All tables of the catalogue, as JSON: for each the digest of its TOML, and what that says.
COMPILED = "compiled.json"


def read_table(name: str) -> dict[str, Any]:
    """A TOML file of the catalogue, ``effective.toml``: as compiled, where that was made from these bytes, else parsed."""
    folder = rules_dir() / "catalogue"
    data = (folder / name).read_bytes()
    entry = _compiled(str(folder)).get(name)
    if entry is None or entry.digest != digest(data):
        return load_toml(data)
    return entry.table()


class _CompiledTable(NamedTuple):
    """A table of the catalogue as the generator compiled it from bytes with this digest."""

    digest: str
    json: bytes

    def table(self) -> dict[str, Any]:
        """The table; each call makes a new one."""
        import msgspec

        found: dict[str, Any] = msgspec.json.decode(self.json)
        return found


@lru_cache(maxsize=1)
def _compiled(_folder: str) -> dict[str, _CompiledTable]:
    """The compiled tables of the catalogue, whose folder this is, by their names; none where the file is missing."""
    import msgspec

    try:
        data = (rules_dir() / "catalogue" / COMPILED).read_bytes()
    except OSError:
        return {}
    entries = msgspec.json.decode(data, type=dict[str, tuple[str, msgspec.Raw]])
    return {name: _CompiledTable(made_from, bytes(table)) for name, (made_from, table) in entries.items()}


def documented_versions() -> tuple[str, ...]:
    """The minor releases with a file in the catalogue, oldest first: ``1.7``, ``1.8``, …"""
    names = (entry.name for entry in (rules_dir() / "catalogue").iterdir())
    minors = (name[len("torch-") : -len(".toml")] for name in names if name.startswith("torch-"))
    return tuple(sorted(minors, key=release))


@lru_cache(maxsize=256)
def release(version: str) -> tuple[int, int]:
    """The minor release of a version, for comparison: (2, 13) of ``2.13.0+cpu``."""
    major, minor = version.partition("+")[0].split(".")[:2]
    return int(major), int("".join(character for character in minor if character.isdigit()))


def top_folders(paths: Collection[str]) -> dict[str, str]:
    """For each file the outermost folder around it that directly contains Python files; the root counts only for files
    directly in it.
    """
    folders = {posixpath.dirname(path) for path in paths} - {""}
    return {path: next((each for each in reversed([*parent_folders(path)]) if each in folders), "") for path in paths}


def join_path(folder: str, word: str) -> str:
    """A path below a folder; the root is empty."""
    return f"{folder}/{word}" if folder else word


def parent_folders(path: str) -> Iterator[str]:
    """The folders above a path, nearest first; the root, empty, is the last."""
    while path:
        path = posixpath.dirname(path)
        yield path


def is_notebook(path: str) -> bool:
    """Whether a file is a notebook, by its name."""
    return path.endswith(".ipynb")


def stems_of(files: Iterable[str]) -> dict[str, str]:
    """The file of each module by its path without suffix; an empty text for a folder without ``__init__.py``."""
    found = dict.fromkeys((folder for path in files for folder in parent_folders(path) if folder), "")
    found |= {path.removesuffix(".py"): path for path in files}
    found |= {posixpath.dirname(path): path for path in files if posixpath.basename(path) == "__init__.py"}
    return found
