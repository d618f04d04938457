"""A release in one command: ``python -m tools.release 0.2.0``.

It needs a clean tree. The version goes into the package, the extension for VS Code and the examples of the documentation, the
unreleased part of the changelog gets the version and the date, and the result is committed and tagged. ``--dry-run`` shows the
changes and writes nothing; ``--push`` pushes branch and tag, on which the workflow ``release.yml`` publishes. ``--notes`` prints the
changelog of the version that is checked out, for that workflow.
"""

from __future__ import annotations

import argparse
import difflib
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path

TOP = Path(__file__).parents[1]
_PACKAGE = "torchrepro_lint/__init__.py"
_CHANGELOG = "CHANGELOG.md"
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)((?:a|b|rc)\d+)?")
_OWN = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
_UNRELEASED = re.compile(r"^## (?:\S+, )?unreleased$", re.MULTILINE | re.IGNORECASE)
# What the documentation shows of a release: the action or a requirement, a hook, the file of the extension.
_SHOWN = (
    re.compile(r"(?<=torchrepro/torchrepro-lint@)()[\w.<>-]*[\w>]()"),
    re.compile(r"(repo: https://github\.com/torchrepro/torchrepro-lint\n\s+rev: )[^\s#]+()"),
    re.compile(r"(torchrepro-lint-)v?\d[\w.]*(\.vsix)"),
)


class ReleaseError(Exception):
    """Why there is no release, in one line."""


def main() -> None:
    """Release, or say in one line why not."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("version", help="the new version, 0.2.0 or 0.2.0rc1")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--dry-run", action="store_true", help="show what would change, and write nothing")
    way.add_argument("--push", action="store_true", help="push the branch and the tag, too")
    way.add_argument("--notes", action="store_true", help="print the changelog of this version, which is checked out")
    options = parser.parse_args()
    try:
        if options.notes:
            sys.stdout.write(notes(options.version))
        else:
            release(options.version, options.dry_run, options.push)
    except ReleaseError as error:
        sys.exit(f"no release: {error}")


def release(version: str, dry_run: bool, push: bool) -> None:
    """Commit and tag a release; raises ``ReleaseError``."""
    changed = changes(version)
    pushing = ("push", "--atomic", "origin", "HEAD", f"refs/tags/v{version}")
    if dry_run:
        sys.stdout.writelines(_diff(changed))
        return
    for path, text in changed.items():
        (TOP / path).write_text(text, encoding="utf-8")
    _git("commit", "--quiet", "--message", f"Release {version}", "--", *changed)
    _git("tag", "--annotate", f"v{version}", "--message", f"torchrepro-lint {version}")
    if push:
        _git(*pushing)
    else:
        sys.stdout.write(f"committed and tagged v{version}; to publish it: git {' '.join(pushing)}\n")


def changes(version: str) -> dict[str, str]:
    """The new texts of the files that a release changes, by path; raises ``ReleaseError`` where there can be none."""
    _require(_VERSION.fullmatch(version) is not None, f"{version} is no version like 0.2.0 or 0.2.0rc1")
    _require(not _git("status", "--porcelain"), "the tree has changes; commit them first")
    _require(not _git("tag", "--list", f"v{version}"), f"the tag v{version} is there already")
    _require(_order(version) >= _order(_own_version()), f"{version} is older than {_own_version()}")
    found = {
        _PACKAGE: _OWN.sub(f'__version__ = "{version}"', _text(_PACKAGE)),
        _CHANGELOG: _dated(_text(_CHANGELOG), version),
        **dict(_extension(version)),
    }
    for path in _git("ls-files", "--", "*.md").splitlines():
        if path != _CHANGELOG:
            found[path] = _shown(_text(path), version)
    return {path: text for path, text in found.items() if text != _text(path)}


def notes(version: str) -> str:
    """The part of the changelog on a version; raises ``ReleaseError`` unless it is the one that is checked out."""
    _require(_own_version() == version, f"the version is {_own_version()}, not {version}")
    part = re.search(
        rf"^## {re.escape(version)}, \d{{4}}-\d\d-\d\d\n+(.*?)(?=^## |\Z)", _text(_CHANGELOG), re.MULTILINE | re.DOTALL
    )
    _require(part is not None, f"{_CHANGELOG} has no part on {version} with a date")
    assert part is not None
    return f"{part[1].strip()}\n"


def _dated(changelog: str, version: str) -> str:
    parts = _UNRELEASED.split(changelog)
    _require(len(parts) == 2, f"{_CHANGELOG} needs one heading like '## Unreleased', and has {len(parts) - 1}")
    _require(not re.match(r"\s*(## |\Z)", parts[1]), f"nothing is said under the heading of {_CHANGELOG}")
    today = datetime.now(timezone.utc).date().isoformat()
    return f"## {version}, {today}".join(parts)


def _extension(version: str) -> Iterator[tuple[str, str]]:
    """The manifests of the extension for VS Code, whose market has no versions like 0.2.0rc1."""
    if not re.fullmatch(r"[\d.]+", version):
        return
    for path, count in (("editors/vscode/package.json", 1), ("editors/vscode/package-lock.json", 2)):
        if (TOP / path).exists():
            yield (
                path,
                re.sub(r'^(\s*"version": )"[^"]+"', rf'\g<1>"{version}"', _text(path), count=count, flags=re.MULTILINE),
            )


def _shown(text: str, version: str) -> str:
    for pattern in _SHOWN:
        tag = version if pattern.pattern.endswith(r"vsix)") else f"v{version}"
        text = pattern.sub(rf"\g<1>{tag}\g<2>", text)
    return text


def _own_version() -> str:
    found = _OWN.search(_text(_PACKAGE))
    assert found is not None, f"{_PACKAGE} says no version"
    return found[1]


def _order(version: str) -> tuple[int, int, int, str]:
    """The sort key of a version; a pre-release comes before its release."""
    found = _VERSION.fullmatch(version)
    assert found is not None, version
    return int(found[1]), int(found[2]), int(found[3]), found[4] or "~"


def _diff(changed: Mapping[str, str]) -> Iterator[str]:
    for path, text in changed.items():
        before, after = (each.splitlines(keepends=True) for each in (_text(path), text))
        yield from difflib.unified_diff(before, after, f"a/{path}", f"b/{path}", n=1)


def _require(holds: bool, why: str) -> None:
    if not holds:
        raise ReleaseError(why)


def _text(path: str) -> str:
    return (TOP / path).read_text(encoding="utf-8")


def _git(*words: str) -> str:
    command = ("git", *words)
    ran = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)  # noqa: S603  no shell
    _require(not ran.returncode, f"git {words[0]}: {' '.join(ran.stderr.split())}")
    return ran.stdout


if __name__ == "__main__":
    main()
