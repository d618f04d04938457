"""What a project's files say about it: the releases it needs (lock files, pins, specifiers) and its commands.

Which releases of libraries a project runs, where rows of the tables hold for some releases only.

The torch version that a project will run, and what says so.

The target torch of a command that is about torch itself: what ``--torch-version`` asks for, else the project here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from torchrepro_lint.catalogue.loaders import Libraries
from torchrepro_lint.config.roots import Options, Root, Roots, unmarked
from torchrepro_lint.config.settings import Settings, version
from torchrepro_lint.source.errors import UsageError
from torchrepro_lint.source.files import documented_versions, listing, load, paper

if TYPE_CHECKING:
    from typing import TypeGuard


LOCKS = ("uv.lock", "poetry.lock", "pdm.lock")
_CONDA = re.compile(r"""^\s*-\s*["']?(?:[\w.-]+::)?(?P<name>[\w.-]+)\s*(?P<spec>[^"'#\s]*)""")
_TORCH = "torch"
# Python reads no number of more digits, wherever that limit is.
_LONGEST = 600


class Demand(NamedTuple):
    """One statement about a library. ``exact`` is the pinned version where it is a pin."""

    file: str
    specifiers: SpecifierSet
    exact: Version | None


def locked(root: Path, library: str = _TORCH) -> Iterator[Demand]:
    """The release of a library, torch's if none is named, in each lock file of a project; the newest of several."""
    for name in LOCKS:
        packages = _toml(root / name).get("package")
        tables = [one for one in packages if isinstance(one, dict)] if isinstance(packages, list) else []
        versions = [_version(one.get("version")) for one in tables if one.get("name") == library]
        known = [version for version in versions if version is not None]
        if known:
            yield Demand(name, SpecifierSet(f"=={max(known)}"), max(known))


def declared(root: Path, library: str = _TORCH) -> Iterator[Demand]:
    """What pyproject.toml, requirements*.txt and environment.yml ask for of a library, in this order."""
    for text in _pyproject(_toml(root / "pyproject.toml"), library):
        yield from _demand("pyproject.toml", text, library)
    for path in sorted([*root.glob("requirements*.txt"), *root.glob("requirements/*.txt")]):
        for line in _lines(path):
            yield from _demand(path.relative_to(root).as_posix(), line, library)
    for path in sorted([*root.glob("environment*.yml"), *root.glob("environment*.yaml")]):
        for line in _lines(path):
            if (match := _CONDA.match(line)) and _conda_name(match["name"]) == library:
                yield from _specified(path.name, _conda(match["spec"]))


def console_scripts(root: Path) -> tuple[str, ...]:
    """What pyproject.toml exposes as commands: ``package.module:function``."""
    data = _toml(root / "pyproject.toml")
    tables = [_table(_table(data, "project"), key) for key in ("scripts", "gui-scripts")]
    tables.append(_table(_table(_table(data, "tool"), "poetry"), "scripts"))
    return tuple(sorted({target for table in tables for target in table.values() if isinstance(target, str)}))


def project_name(root: Path) -> str:
    """What pyproject.toml calls the project; empty where it does not."""
    data = _toml(root / "pyproject.toml")
    names = (_table(data, "project").get("name"), _table(_table(data, "tool"), "poetry").get("name"))
    return next((name for name in names if isinstance(name, str)), "")


def _demand(file: str, text: str, library: str) -> Iterator[Demand]:
    """A requirement by PEP 508, where it is one of the library."""
    if library.partition("-")[0] not in text.lower():
        return
    try:
        requirement = Requirement(text.partition(" #")[0].strip())
    except InvalidRequirement:
        return
    if _same_name(requirement.name) == library:
        yield _pinned(file, requirement.specifier)


def _conda_name(name: str) -> str:
    return _TORCH if name == "pytorch" else _same_name(name)


def _same_name(name: str) -> str:
    """A name as packages are compared by it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _specified(file: str, text: str) -> Iterator[Demand]:
    try:
        yield _pinned(file, SpecifierSet(text))
    except InvalidSpecifier:
        return


def _pinned(file: str, specifiers: SpecifierSet) -> Demand:
    """``==2.1.2`` is a pin; ``==2.1.*`` pins the minor release, which the specifier says by itself."""
    exact = [_version(one.version) for one in specifiers if one.operator in ("==", "===")]
    return Demand(file, specifiers, next((version for version in exact if version is not None), None))


def _pyproject(data: dict[str, Any], library: str) -> Iterator[str]:
    project = _table(data, "project")
    yield from _strings(project.get("dependencies"))
    for table in (_table(project, "optional-dependencies"), _table(data, "dependency-groups")):
        for group in table.values():
            yield from _strings(group)
    poetry = _table(_table(data, "tool"), "poetry")
    groups = [_table(group, "dependencies") for group in _table(poetry, "group").values() if isinstance(group, dict)]
    for table in (_table(poetry, "dependencies"), *groups):
        wanted = table.get(library)
        text = wanted.get("version") if isinstance(wanted, dict) else wanted
        if _is_statement(text):
            yield f"{library}{_poetry(text)}"


def _poetry(text: str) -> str:
    """Poetry's constraints as specifiers: ``^1.8``, ``~1.8`` and a bare version have no such form of their own."""
    parts = []
    for part in (piece.strip() for piece in text.split(",")):
        bare = part.lstrip("^~= ")
        release = bare.split(".")
        if part in ("", "*"):
            continue
        if part.startswith("^") and release[0].isdecimal():
            parts.append(f">={bare},<{int(release[0]) + 1}")
        elif part.startswith("~") and not part.startswith("~="):
            parts.append(f"=={'.'.join(release[:2])}.*,>={bare}")
        else:
            parts.append(part if part[0] in "<>=!~" else f"=={part}")
    return ",".join(parts)


def _conda(text: str) -> str:
    """Conda's ``=1.8`` fits 1.8.1 too, and a build string may follow; the rest is as in a specifier."""
    if match := re.match(r"=(?!=)([\d.]+)(?:\.\*|=.*)?$", text):
        return f"=={match[1].rstrip('.')}.*"
    return re.sub(r"^(==[^=,]+)=.*$", r"\1", text)


def _toml(path: Path) -> dict[str, Any]:
    try:
        return load(paper(path))
    except (OSError, ValueError):
        return {}


def _lines(path: Path) -> list[str]:
    try:
        lines = listing(path).decode("utf-8-sig", "replace").splitlines()
    except OSError:
        return []
    return [line for line in lines if _is_statement(line)]


def _table(data: dict[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _strings(value: object) -> Iterable[str]:
    return [item for item in value if _is_statement(item)] if isinstance(value, list) else []


def _is_statement(value: object) -> TypeGuard[str]:
    """Whether a value is a text that may be a requirement or a version, none of whose numbers has too many digits."""
    return isinstance(value, str) and len(value) <= _LONGEST


def _version(text: object) -> Version | None:
    try:
        return Version(text) if _is_statement(text) else None
    except InvalidVersion:
        return None


# The libraries of which some rows of transforms.toml hold for some releases only; a run that answers from its record does not
# read the tables.
VERSIONED = ("albumentations",)


def libraries(root: Path) -> Libraries:
    """What a project asks for of ``VERSIONED``: the first of a lock file, an exact pin, any specifiers."""
    return tuple((name, found) for name in VERSIONED if (found := _asked(root, name)))


def _asked(root: Path, name: str) -> str:
    demands: list[Demand] = list(declared(root, name))
    for demand in (*locked(root, name), *demands):
        if demand.exact is not None:
            return f"=={demand.exact}"
    return next((str(demand.specifiers) for demand in demands if demand.specifiers), "")


_MINIMUM = "minimum"
_PATCHES = range(20)


class Target(NamedTuple):
    """``version`` is one that the catalogue has (``"2.1"``), ``decided_by`` the file or option that decided.

    ``asked`` is the version that was asked for where the catalogue lacks it and has a nearer one, else ``None``.
    """

    version: str
    decided_by: str
    asked: str | None = None


def find_target(root: Path, asked: str | None, known: Sequence[str]) -> Target:
    """The target of a project among the ``known`` releases (oldest first).

    First of: the setting; a lock file or an exact pin; the newest release that the specifiers admit; the newest one.
    ``"minimum"`` asks for the oldest release that the specifiers admit.
    """
    if asked == _MINIMUM:
        return _minimum(list(declared(root)) or list(locked(root)), known)
    if asked is not None:
        return _nearest(Version(asked), "the torch-version setting", known)
    demands = list(declared(root))
    for demand in (*locked(root), *demands):
        if demand.exact is not None:
            return _nearest(demand.exact, demand.file, known)
    for demand in demands:
        if demand.specifiers and (admitted := _admitted(demand, known)):
            return Target(admitted[-1], demand.file)
    return Target(known[-1], "the newest release known")


def _minimum(demands: list[Demand], known: Sequence[str]) -> Target:
    for demand in demands:
        if demand.specifiers and (admitted := _admitted(demand, known)):
            return Target(admitted[0], demand.file)
    return Target(known[-1], "the newest release known")


def _admitted(demand: Demand, known: Sequence[str]) -> list[str]:
    """The releases of which at least one patch fits."""
    return [
        release
        for release in known
        if any(demand.specifiers.contains(f"{release}.{patch}", prereleases=True) for patch in _PATCHES)
    ]


def _nearest(version: Version, decided_by: str, known: Sequence[str]) -> Target:
    wanted = f"{version.major}.{version.minor}"
    if wanted in known:
        return Target(wanted, decided_by)
    older = [release for release in known if Version(release) < version]
    return Target(older[-1] if older else known[0], decided_by, asked=wanted)


def options(torch_version: str | None) -> Options:
    """The settings' override by ``--torch-version``. Raises ``UsageError`` for what is no version."""
    if torch_version is None:
        return Options()
    try:
        version(torch_version)
    except ValueError as error:
        raise UsageError(f"--torch-version: {error}") from None

    def override(settings: Settings) -> Settings:
        return settings._replace(torch_version=torch_version)

    return Options(overrides=override)


def target_here(torch_version: str | None) -> Target:
    """The torch of the project around the current directory, or the one asked for."""
    return target_of(Roots(options(torch_version), unmarked(())).of(os.getcwd()))


def target_of(root: Root) -> Target:
    """The torch that a project will run."""
    return find_target(Path(root.path), root.settings.torch_version, documented_versions())


def warning(target: Target) -> str | None:
    """What to tell where another release stands in for the one asked for."""
    if target.asked is None:
        return None
    return f"torch {target.asked} ({target.decided_by}) is not in the catalogue; torch {target.version} is used instead"
