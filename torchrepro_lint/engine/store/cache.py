"""The signed cache directory of a project: each file in it is whole and written by this user's copy of the tool, or it
is a miss.

A full disk, a read-only directory, a damaged file or another process that writes are all misses. Each file begins with
a digest under a key. The key lies in the user's cache directory, or beside a cache that ``--cache-dir`` puts outside
the tree; never in the tree, where a clone could bring both along. The tree is the project, the checkout that it lies
in, and the directory that the tool is started in.

``tool_stamp`` identifies what cached answers depend on besides the project: this copy of the tool, Python and libcst.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable
from functools import cache, partial
from hashlib import blake2b
from hmac import compare_digest
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from torchrepro_lint import __version__
from torchrepro_lint.syntax.nodes import Record

CACHE_DIR_VARIABLE = "TORCHREPRO_LINT_CACHE_DIR"
# The limit for the caches of all projects; the least recently used are removed first.
MAX_BYTES = 1 << 30
_KEY = "key"
SIGNATURE_BYTES = 32


class Cache(Record, frozen=True):
    """The cache of one project: its directory, and the key that signs what is in it."""

    place: Path
    key: bytes

    def read(self, name: str) -> bytes | None:
        """The data stored under a name; None if there is none, or none with this user's signature."""
        try:
            data = self.path(name).read_bytes()
        except OSError:
            return None
        return (
            data[SIGNATURE_BYTES:]
            if compare_digest(data[:SIGNATURE_BYTES], self.sign(name, data[SIGNATURE_BYTES:]))
            else None
        )

    def path(self, name: str) -> Path:
        """The path of a stored file; raises ``OSError`` if it is not a regular file, since reading a device may never end."""
        found = Path(self.place, name)
        if not found.is_file():
            raise FileNotFoundError(name)
        return found

    def write(self, name: str, data: bytes) -> None:
        """Sign data and write it atomically; errors are ignored."""
        self.replace(name, self.sign(name, data) + data)

    def replace(self, name: str, data: bytes) -> bool:
        """Write data atomically that is signed already; whether it was written."""
        try:
            self.place.mkdir(parents=True, exist_ok=True)
            _replace(Path(self.place, name), data)
        except OSError:
            return False
        return True

    def sign(self, name: str, data: bytes) -> bytes:
        """The signature of data under a name: a keyed digest."""
        return blake2b(name.encode() + b"\0" + data, key=self.key, digest_size=SIGNATURE_BYTES).digest()


def open_cache(root: str, asked: str | None = None) -> Cache | None:
    """The cache of the project at ``root``: below ``asked``, else below ``TORCHREPRO_LINT_CACHE_DIR``, else the user's.

    None if there is no key, or if a link in the tree leads from the cache directory out of the tree.
    """
    top = directory(asked)
    place = project_cache(root, asked)
    own, trees = user_directory(), _untrusted_trees(root)
    if top != own and any(_links_out_of(place, tree) for tree in trees):
        return None
    key = _key(own if any(_is_below(top, tree) for tree in trees) else top)
    return Cache(place, key) if key else None


def project_cache(root: str, asked: str | None = None) -> Path:
    """The directory of the cache of the project at ``root``, whether or not there is one."""
    return directory(asked) / blake2b(os.fsencode(os.path.realpath(root)), digest_size=10).hexdigest()


def directory(asked: str | None) -> Path:
    """The directory of the caches of all projects."""
    given = asked or os.environ.get(CACHE_DIR_VARIABLE)
    return Path(given).absolute() if given else user_directory()


def user_directory() -> Path:
    """The tool's directory among the user's caches, as the platform defines it."""
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("torchrepro-lint", appauthor=False))


def remove(caches: Iterable[Path]) -> int:
    """Remove the caches of projects; returns how many there were."""
    from shutil import rmtree  # it loads much that few runs need

    removed = 0
    for place in caches:
        with contextlib.suppress(OSError):
            rmtree(place)
            removed += 1
    return removed


def trim(top: Path, most: int = MAX_BYTES) -> None:
    """Evict the least recently used caches, until all together have at most ``most`` bytes."""
    from shutil import rmtree

    with contextlib.suppress(OSError):
        sizes = {place: sum(each.stat().st_size for each in place.iterdir()) for place in project_caches(top)}
        for place in sorted(sizes, key=lambda each: each.stat().st_mtime):
            if sum(sizes.values()) <= most:
                return
            rmtree(place)
            del sizes[place]


def project_caches(top: Path) -> list[Path]:
    """The caches of projects: directories named by 20 hexadecimal digits."""
    try:
        found = [each for each in top.iterdir() if each.is_dir() and not each.is_symlink()]
    except OSError:
        return []
    return sorted(each for each in found if len(each.name) == 20 and set(each.name) <= set("0123456789abcdef"))


def _untrusted_trees(root: str) -> tuple[Path, ...]:
    """The trees that may hold files of a clone: the project, the checkout around it, and the current directory."""
    checkouts = [each for each in (Path(root), *Path(root).parents) if Path(each, ".git").exists()]
    found = [Path(root), *checkouts[-1:]]
    with contextlib.suppress(OSError):  # the current directory may have gone
        found.append(Path.cwd())
    return tuple(found)


def _is_below(place: Path, tree: Path) -> bool:
    """Whether a path is in a tree, as written or after resolving links."""
    return place.is_relative_to(tree) or _resolved(place).is_relative_to(_resolved(tree))


def _links_out_of(place: Path, tree: Path) -> bool:
    """Whether a path that is written as one in a tree leads out of it by a link."""
    return place.is_relative_to(tree) and not _resolved(place).is_relative_to(_resolved(tree))


def _resolved(place: Path) -> Path:
    """The path with links resolved; a circular link stays as it is."""
    return Path(os.path.realpath(place))


def _key(place: Path) -> bytes | None:
    """The key in a directory, created at first use; if two processes create one at once, one key wins."""
    path = place / _KEY
    with contextlib.suppress(OSError):
        if not path.exists():
            place.mkdir(parents=True, exist_ok=True)
            with _new_file(place) as file:
                file.write(os.urandom(SIGNATURE_BYTES))
            with contextlib.suppress(FileExistsError):
                os.link(file.name, path)
            os.unlink(file.name)
        key = path.read_bytes() if path.is_file() else b""
        return key if len(key) == SIGNATURE_BYTES else None
    return None


def _replace(path: Path, data: bytes) -> None:
    file = _new_file(path.parent)
    try:
        with file:
            file.write(data)
        os.replace(file.name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(file.name)
        raise


def _new_file(place: Path) -> IO[bytes]:
    """A new file in a directory, with a name of its own, that only its owner may read."""
    return open(place / f".{os.urandom(8).hex()}", "xb", opener=partial(os.open, mode=0o600))


@cache
def tool_stamp() -> str:
    """A version stamp of cached data: it differs between copies of the tool, interpreters and releases of libcst."""
    here = Path(__file__).parents[2]
    libcst = find_spec("libcst")
    folders = [found for found, _, _ in os.walk(here) if not found.endswith("__pycache__")]
    folders += [os.path.join(here.parent, "rules", "catalogue")]
    folders += (libcst.submodule_search_locations or []) if libcst else []
    words = [__version__, sys.version, *(line for folder in folders for line in _states(folder))]
    return blake2b("\n".join(words).encode(), digest_size=16).hexdigest()


def _states(folder: str) -> list[str]:
    """A line with size and time for each file of a folder, which an edit changes."""
    try:
        with os.scandir(folder) as entries:
            found = sorted((each.path, each.stat()) for each in entries if each.name.endswith((".py", ".toml")))
    except OSError:  # the tool may lie in an archive
        return []
    return [f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in found]
