"""The target torch release and the library requirements of a project, read from lock files, pyproject.toml and
requirement files.

Also the console scripts that a project declares. A torch release that the catalogue lacks is replaced by the nearest
one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from torchrepro_lint.config.roots import ProjectRoot, RootFinder, config_options, fallback_root
from torchrepro_lint.config.settings import RuleOverrides
from torchrepro_lint.source.files import documented_versions, load_toml, read_manifest, read_requirements
from torchrepro_lint.source.patterns import lazy_pattern

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    from torchrepro_lint.catalogue.libraries import LibraryVersions


LOCKS = ("uv.lock", "poetry.lock", "pdm.lock")
_CONDA = lazy_pattern(r"""^\s*-\s*["']?(?:[\w.-]+::)?(?P<name>[\w.-]+)\s*(?P<spec>[^"'#\s]*)""")
# A line that ``conda list --export`` prints into a requirements.txt.
_EXPORTED = lazy_pattern(r"\s*(?P<name>[\w.-]+)=(?P<version>[\w.+!]+)=[\w.]+\s*")
_NAME = lazy_pattern(r"\s*([A-Za-z0-9][\w.-]*)")
_TORCH = "torch"
# A root with one of these says itself what it needs.
_MANIFESTS = ("pyproject.toml", *LOCKS, "setup.py", "setup.cfg", "requirements*.txt", "environment*.y*ml")
# ``train = package.module:main`` in the list of console scripts of setup.cfg or setup.py.
_SCRIPT = lazy_pattern(r"""(?:^|["'])\s*[\w.-]+\s*=\s*([A-Za-z_][\w.]*:[A-Za-z_][\w.]*)\s*(?:$|["'\[])""", re.MULTILINE)
# Longer texts are ignored: Python limits the digits of a number.
_MAX_LENGTH = 600


class VersionRequirement(NamedTuple):
    """The requirement of a library in one file; ``exact`` is the version if it is pinned."""

    file: str
    specifiers: SpecifierSet
    exact: Version | None


def locked_versions(root: Path, library: str = _TORCH) -> Iterator[VersionRequirement]:
    """The release of a library in each lock file of a project; the newest of several."""
    for name in LOCKS:
        packages = _toml(root / name).get("package")
        tables = [one for one in packages if isinstance(one, dict)] if isinstance(packages, list) else []
        versions = [_parsed_version(one.get("version")) for one in tables if one.get("name") == library]
        known = [version for version in versions if version is not None]
        if known:
            from packaging.specifiers import SpecifierSet

            yield VersionRequirement(name, SpecifierSet(f"=={max(known)}"), max(known))


def declared_requirements(root: Path, library: str = _TORCH) -> Iterator[VersionRequirement]:
    """The requirements of a library in pyproject.toml, requirements*.txt and environment.yml, in this order; where the root has none of
    these files, in those of the packages in it.
    """
    for text in _pyproject(_toml(root / "pyproject.toml"), library):
        yield from _requirement("pyproject.toml", text, library)
    for path in _files(root, "requirements*.txt", "requirements/*.txt"):
        file = path.relative_to(root).as_posix()
        for line in _lines(path):
            if (match := _EXPORTED.fullmatch(line)) and _conda_name(match["name"]) == library:
                yield from _from_specifier(file, f"=={match['version']}")
            yield from _requirement(file, line, library)
    for path in _files(root, "environment*.yml", "environment*.yaml"):
        for line in _lines(path):
            if (match := _CONDA.match(line)) and _conda_name(match["name"]) == library:
                yield from _from_specifier(path.name, _conda(match["spec"]))


def _files(root: Path, *patterns: str) -> list[Path]:
    """The files of a root that match a pattern, sorted; of the packages in it where it declares nothing itself."""
    own = any(True for each in (*_MANIFESTS, *patterns) for _ in root.glob(each))
    folders = [root] if own else [each.parent for each in sorted(root.glob("*/__init__.py"))]
    return sorted(found for folder in folders for each in patterns for found in folder.glob(each))


def console_scripts(root: Path) -> tuple[str, ...]:
    """The console scripts in pyproject.toml, setup.cfg and setup.py: ``package.module:function``."""
    data = _toml(root / "pyproject.toml")
    tables = [_table(_table(data, "project"), key) for key in ("scripts", "gui-scripts")]
    tables.append(_table(_table(_table(data, "tool"), "poetry"), "scripts"))
    found = {target for table in tables for target in table.values() if isinstance(target, str)}
    for name in ("setup.cfg", "setup.py"):
        lines = (line for line in _lines(root / name) if not line.lstrip().startswith("#"))
        _, _, declared = "\n".join(lines).partition("console_scripts")
        found.update(match[1] for match in _SCRIPT.finditer(declared))
    return tuple(sorted(found))


def project_name(root: Path) -> str:
    """The project's name in pyproject.toml, or an empty text."""
    data = _toml(root / "pyproject.toml")
    names = (_table(data, "project").get("name"), _table(_table(data, "tool"), "poetry").get("name"))
    return next((name for name in names if isinstance(name, str)), "")


def _requirement(file: str, text: str, library: str) -> Iterator[VersionRequirement]:
    """A requirement in the syntax of PEP 508, if it is for the library."""
    name = _NAME.match(text)
    if name is None or _normalized_name(name[1].rstrip("-_.")) != library:
        return
    from packaging.requirements import InvalidRequirement, Requirement  # many projects state no requirement of it

    try:
        requirement = Requirement(text.partition(" #")[0].strip())
    except InvalidRequirement:
        return
    if _normalized_name(requirement.name) == library:
        yield _with_pin(file, requirement.specifier)


def _conda_name(name: str) -> str:
    return _TORCH if name == "pytorch" else _normalized_name(name)


def _normalized_name(name: str) -> str:
    """A package name, normalised for comparison (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _from_specifier(file: str, text: str) -> Iterator[VersionRequirement]:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        yield _with_pin(file, SpecifierSet(text))
    except InvalidSpecifier:
        return


def _with_pin(file: str, specifiers: SpecifierSet) -> VersionRequirement:
    """``==2.1.2`` is a pin; ``==2.1.*`` is an ordinary specifier."""
    exact = [_parsed_version(one.version) for one in specifiers if one.operator in ("==", "===")]
    return VersionRequirement(file, specifiers, next((version for version in exact if version is not None), None))


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
    """Translate Poetry's constraints, such as ``^1.8``, ``~1.8`` and a bare version, to specifiers."""
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
    """Translate conda's constraints: ``=1.8`` admits 1.8.1 too, and a build string may follow."""
    if match := re.match(r"=(?!=)([\d.]+)(?:\.\*|=.*)?$", text):
        return f"=={match[1].rstrip('.')}.*"
    return re.sub(r"^(==[^=,]+)=.*$", r"\1", text)


def _toml(path: Path) -> dict[str, Any]:
    try:
        return load_toml(read_manifest(path))
    except (OSError, ValueError):
        return {}


def _lines(path: Path) -> list[str]:
    try:
        lines = read_requirements(path).decode("utf-8-sig", "replace").splitlines()
    except OSError:
        return []
    return [line for line in lines if _is_statement(line)]


def _table(data: dict[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _strings(value: object) -> Iterable[str]:
    return [item for item in value if _is_statement(item)] if isinstance(value, list) else []


def _is_statement(value: object) -> TypeGuard[str]:
    """Whether a value is a text short enough to be parsed as a requirement or version."""
    return isinstance(value, str) and len(value) <= _MAX_LENGTH


def _parsed_version(text: object) -> Version | None:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(text) if _is_statement(text) else None
    except InvalidVersion:
        return None


# The libraries with rows in transforms.toml or generators.toml that hold for some releases only. They are named here so that a run that is answered
# from its record need not read the tables.
VERSIONED_LIBRARIES = ("albumentations", "hyperopt", "scikit-image")


def required_libraries(root: Path) -> LibraryVersions:
    """The required versions of ``VERSIONED_LIBRARIES``: from a lock file, else an exact pin, else any specifiers."""
    return tuple((name, found) for name in VERSIONED_LIBRARIES if (found := _required_version(root, name)))


def _required_version(root: Path, name: str) -> str:
    requirements: list[VersionRequirement] = list(declared_requirements(root, name))
    for requirement in (*locked_versions(root, name), *requirements):
        if requirement.exact is not None:
            return f"=={requirement.exact}"
    return next((str(requirement.specifiers) for requirement in requirements if requirement.specifiers), "")


_MINIMUM = "minimum"
# Releases of a year and a half, from the first that needs no workspace variable for cuBLAS (2.10).
_RECENT = 6
_PATCHES = range(20)


class Target(NamedTuple):
    """The target torch release: ``version`` is in the catalogue (``"2.1"``), ``decided_by`` is the file or option that decided.

    ``asked`` is the requested version if the catalogue lacks it and ``version`` replaces it, else ``None``. ``admitted`` are
    all releases that the project may run with: what its specifiers admit, or without any the ``_RECENT`` newest, and then
    the target is not ``declared``.
    """

    version: str
    decided_by: str
    asked: str | None = None
    admitted: tuple[str, ...] = ()
    declared: bool = True


def find_target(
    root: Path, asked: str | None, known: Sequence[str], asked_by: str = "the torch-version setting"
) -> Target:
    """The target of a project among the ``known`` releases (oldest first).

    First of: the setting, or what else ``asked_by`` names; a lock file or an exact pin; the newest release that the specifiers admit; the newest one.
    ``"minimum"`` asks for the oldest release that the specifiers admit.
    """
    if asked == _MINIMUM:
        return _minimum_target(list(declared_requirements(root)) or list(locked_versions(root)), known)
    if asked is not None:
        from packaging.version import Version

        return _nearest_target(Version(asked), asked_by, known)
    requirements = list(declared_requirements(root))
    for requirement in (*locked_versions(root), *requirements):
        if requirement.exact is not None:
            return _nearest_target(requirement.exact, requirement.file, known)
    for requirement in requirements:
        if requirement.specifiers and (admitted := _admitted_releases(requirement, known)):
            return Target(admitted[-1], requirement.file, admitted=tuple(admitted))
    return Target(known[-1], "the newest release known", admitted=tuple(known[-_RECENT:]), declared=False)


def _minimum_target(requirements: list[VersionRequirement], known: Sequence[str]) -> Target:
    for requirement in requirements:
        if requirement.specifiers and (admitted := _admitted_releases(requirement, known)):
            return Target(admitted[0], requirement.file)
    return Target(known[-1], "the newest release known")


def _admitted_releases(requirement: VersionRequirement, known: Sequence[str]) -> list[str]:
    """The releases with at least one admitted patch release."""
    return [
        release
        for release in known
        if any(requirement.specifiers.contains(f"{release}.{patch}", prereleases=True) for patch in _PATCHES)
    ]


def _nearest_target(version: Version, decided_by: str, known: Sequence[str]) -> Target:
    from packaging.version import Version

    wanted = f"{version.major}.{version.minor}"
    if wanted in known:
        return Target(wanted, decided_by)
    older = [release for release in known if Version(release) < version]
    return Target(older[-1] if older else known[0], decided_by, asked=wanted)


def target_here(torch_version: str | None) -> Target:
    """The target torch of the project around the current directory, or the one asked for."""
    return target_of(
        RootFinder(config_options(RuleOverrides(torch_version=torch_version)), fallback_root(())).of(os.getcwd())
    )


def target_of(root: ProjectRoot) -> Target:
    """The target torch of a project."""
    return find_target(Path(root.path), root.settings.torch_version, documented_versions(), root.version_from)


def substitution_warning(target: Target) -> str | None:
    """A note for the user if another release replaces the one asked for."""
    if target.asked is None:
        return None
    return f"torch {target.asked} ({target.decided_by}) is not known; torch {target.version} is assumed instead"
