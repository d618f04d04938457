"""Where a project's cache lies, and files in it that are whole, this tool's own, or not there.

Whatever goes wrong with a cache is a miss: a full disk, a read-only directory, a damaged file, another process writing. What
is read was written by this user's copy of the tool: each file begins with a digest under a key. The key lies in the user's
cache directory, or beside a cache that ``--cache-dir`` puts outside the tree; never in the tree, where a clone could bring
both along. The tree is the project, the checkout that it lies in, and the directory that the tool is started in.

What a cached answer depends on beside the files of a project: this copy of the tool, Python, libcst.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sys
import tempfile
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from torchrepro_lint import __version__

VARIABLE = "TORCHREPRO_LINT_CACHE_DIR"
# All projects together; the ones that were not used for longest go first.
MOST_BYTES = 1 << 30
_KEY = "key"
SIGNED = 32


class Cache(NamedTuple):
    """The cache of one project: its directory, and the key that signs what is in it."""

    place: Path
    key: bytes

    def read(self, name: str) -> bytes | None:
        """What was written under a name; None where there is nothing, or nothing that this user wrote."""
        try:
            data = self.path(name).read_bytes()
        except OSError:
            return None
        return data[SIGNED:] if secrets.compare_digest(data[:SIGNED], self.sign(name, data[SIGNED:])) else None

    def path(self, name: str) -> Path:
        """The file under a name, which can be opened; raises ``OSError`` where it is none: a device would never end."""
        found = Path(self.place, name)
        if not found.is_file():
            raise FileNotFoundError(name)
        return found

    def write(self, name: str, data: bytes) -> None:
        """Write a file in one step, as far as that is possible."""
        self.replace(name, self.sign(name, data) + data)

    def replace(self, name: str, data: bytes) -> bool:
        """The same for data that is signed already; whether it was written."""
        try:
            self.place.mkdir(parents=True, exist_ok=True)
            _replace(Path(self.place, name), data)
        except OSError:
            return False
        return True

    def sign(self, name: str, data: bytes) -> bytes:
        """The digest under the key of what is stored under a name."""
        return blake2b(name.encode() + b"\0" + data, key=self.key, digest_size=SIGNED).digest()


def open_cache(root: str, asked: str | None = None) -> Cache | None:
    """The cache of the project at ``root``: below ``asked``, else below ``TORCHREPRO_LINT_CACHE_DIR``, else the user's.

    None where no key can be had, and where a link in the tree leads what would be written in it out of it.
    """
    top = directory(asked)
    place = top / blake2b(os.fsencode(os.path.realpath(root)), digest_size=10).hexdigest()
    own, trees = user_directory(), _trees(root)
    if top != own and any(_leads_out(place, tree) for tree in trees):
        return None
    key = _key(own if any(_is_below(top, tree) for tree in trees) else top)
    return Cache(place, key) if key else None


def directory(asked: str | None) -> Path:
    """Where the caches of all projects lie."""
    given = asked or os.environ.get(VARIABLE)
    return Path(given).absolute() if given else user_directory()


def user_directory() -> Path:
    """The tool's directory among the user's caches, by the custom of the system."""
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("torchrepro-lint", appauthor=False))


def clean(asked: str | None = None) -> int:
    """Remove the caches of all projects; how many there were. What is not a cache is left alone."""
    removed = 0
    for place in _places(directory(asked)):
        with contextlib.suppress(OSError):
            shutil.rmtree(place)
            removed += 1
    return removed


def trim(top: Path, most: int = MOST_BYTES) -> None:
    """Remove the caches that were not used for longest, until all together have at most that many bytes."""
    with contextlib.suppress(OSError):
        sizes = {place: sum(each.stat().st_size for each in place.iterdir()) for place in _places(top)}
        for place in sorted(sizes, key=lambda each: each.stat().st_mtime):
            if sum(sizes.values()) <= most:
                return
            shutil.rmtree(place)
            del sizes[place]


def _places(top: Path) -> list[Path]:
    """The caches of projects: directories named by 20 hexadecimal digits."""
    try:
        found = [each for each in top.iterdir() if each.is_dir() and not each.is_symlink()]
    except OSError:
        return []
    return sorted(each for each in found if len(each.name) == 20 and set(each.name) <= set("0123456789abcdef"))


def _trees(root: str) -> tuple[Path, ...]:
    """Where what came with a clone may lie: the project, the checkout around it, and where the tool was started."""
    checkouts = [each for each in (Path(root), *Path(root).parents) if Path(each, ".git").exists()]
    found = [Path(root), *checkouts[-1:]]
    with contextlib.suppress(OSError):  # the current directory may have gone
        found.append(Path.cwd())
    return tuple(found)


def _is_below(place: Path, tree: Path) -> bool:
    """Whether a place is in a tree, as it is written or as links have it."""
    return place.is_relative_to(tree) or _resolved(place).is_relative_to(_resolved(tree))


def _leads_out(place: Path, tree: Path) -> bool:
    """Whether a place that is written as one in a tree is another by a link in it."""
    return place.is_relative_to(tree) and not _resolved(place).is_relative_to(_resolved(tree))


def _resolved(place: Path) -> Path:
    """Where links lead; of those that lead in a circle, nowhere else."""
    return Path(os.path.realpath(place))


def _key(place: Path) -> bytes | None:
    """The key in a directory, made when it is first asked for; of two that are made at once, one stays."""
    path = place / _KEY
    with contextlib.suppress(OSError):
        if not path.exists():
            place.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=".", dir=place)  # readable by its owner alone
            with os.fdopen(handle, "wb") as file:
                file.write(secrets.token_bytes(SIGNED))
            with contextlib.suppress(FileExistsError):
                os.link(temporary, path)
            os.unlink(temporary)
        key = path.read_bytes() if path.is_file() else b""
        return key if len(key) == SIGNED else None
    return None


def _replace(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


@cache
def tool_stamp() -> str:
    """Differs between any two copies of the tool, interpreters or releases of libcst that may answer differently."""
    here = Path(__file__).parents[2]
    libcst = find_spec("libcst")
    folders = [found for found, _, _ in os.walk(here) if not found.endswith("__pycache__")]
    folders += [os.path.join(here.parent, "rules", "catalogue")]
    folders += (libcst.submodule_search_locations or []) if libcst else []
    words = [__version__, sys.version, *(line for folder in folders for line in _states(folder))]
    return blake2b("\n".join(words).encode(), digest_size=16).hexdigest()


def _states(folder: str) -> list[str]:
    """A line for each file of a folder: enough to tell an edited one, without reading it."""
    try:
        with os.scandir(folder) as entries:
            found = sorted((each.path, each.stat()) for each in entries if each.name.endswith((".py", ".toml")))
    except OSError:  # the tool may lie in an archive
        return []
    return [f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in found]
