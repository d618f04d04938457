"""Options that every format is given beside the diagnostics, and paths as its reader sees them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from torchrepro_lint.engine.diagnostic import Diagnostic, UnfollowedProgram
from torchrepro_lint.source.errors import escaped_path
from torchrepro_lint.source.text import with_paths


class View(NamedTuple):
    """How to write: in ``colour``, with call paths (``verbose``), for a reader that starts at ``base``.

    ``base`` is the absolute directory that relative paths in reports for other programs start from. ``width`` is that of the
    terminal in columns, 0 where the output goes elsewhere and is not wrapped. Of ``programs`` that start in the linted files some
    are ``unfollowed``: formats that hold more than findings show them.
    """

    colour: bool = False
    verbose: bool = False
    base: str = ""
    width: int = 0
    programs: int = 0
    unfollowed: tuple[UnfollowedProgram, ...] = ()


def base_directory(output_format: str, environment: Mapping[str, str]) -> str:
    """The directory where the reader of a format starts: the checkout of a known CI, else the working directory."""
    told = {"github": "GITHUB_WORKSPACE", "sarif": "GITHUB_WORKSPACE", "gitlab": "CI_PROJECT_DIR"}.get(output_format)
    here = os.getcwd()
    top = os.path.abspath(environment.get(told, "") or here) if told else here
    return top if here == top or here.startswith(os.path.join(top, "")) else here


def relative(path: str, base: str) -> str:
    """The path of a file relative to the base, with slashes; the absolute path of a file outside."""
    below = os.path.relpath(path, base) if path.startswith(os.path.join(base, "")) else path
    return below.replace(os.sep, "/")


def uri(path: str, base: str) -> str:
    """The same as a URI reference; bytes that do not decode are kept."""
    name = relative(path, base)
    from urllib.parse import quote  # few formats have links

    return ("file://" if name.startswith("/") else "") + quote(os.fsencode(name))


# The formats whose paths start from the base, whatever the working directory is.
_FROM_BASE = frozenset({"github", "gitlab", "sarif"})


def with_shown_paths(diagnostics: Iterable[Diagnostic], output_format: str, base: str) -> tuple[Diagnostic, ...]:
    """Diagnostics whose texts name other files in the same way as the format shows the diagnostic's own path."""
    if output_format == "full":
        diagnostics = (one._replace(display=without_dot(one.display)) for one in diagnostics)
    return tuple(_with_shown_paths(one, base if output_format in _FROM_BASE else "") for one in diagnostics)


def with_shown_places(
    programs: Iterable[UnfollowedProgram], output_format: str, base: str
) -> tuple[UnfollowedProgram, ...]:
    """The same for programs that are not followed."""
    return tuple(
        one._replace(message=with_paths(one.message, _shown(one, base if output_format in _FROM_BASE else "")))
        for one in programs
    )


def without_dot(path: str) -> str:
    """A path without the ``./`` that flake8 would print; one whose next character is a colon keeps it."""
    return path[2:] if path.startswith("./") and path[2:3] not in ("", "/", ":") else path


def _with_shown_paths(one: Diagnostic, base: str) -> Diagnostic:
    shown = _shown(one, base)
    return one._replace(
        message=with_paths(one.message, shown),
        unfixed=with_paths(one.unfixed, shown),
        fix=one.fix and one.fix._replace(title=with_paths(one.fix.title, shown)),
        steps=tuple(step._replace(text=with_paths(step.text, shown)) for step in one.steps),
    )


def _shown(one: Diagnostic | UnfollowedProgram, base: str) -> Callable[[str], str]:
    return _paths_from(base, one.root) if base else shown_paths(one.display, one.filename, one.root)


def shown_paths(display: str, filename: str, root: str) -> Callable[[str], str]:
    """How files of the project at ``root`` are shown, by their paths from there, where ``filename`` is shown as ``display``:
    relative to the same directory, in the same spelling.
    """
    own, real = display.split(os.sep), filename.split(os.sep)
    same = 0
    while same < min(len(own), len(real)) and own[-1 - same] == real[-1 - same]:
        same += 1
    tail = len(os.sep.join(own[len(own) - same :]))
    before, above = display[: len(display) - tail], filename[: len(filename) - tail]

    def shown(path: str) -> str:
        absolute = _absolute(root, path)
        if same and absolute.startswith(above):
            return escaped_path(before + absolute[len(above) :])
        return escaped_path(os.path.relpath(absolute))

    return shown


def _paths_from(base: str, root: str) -> Callable[[str], str]:
    return lambda path: relative(_absolute(root, path), base)


def _absolute(root: str, path: str) -> str:
    return os.path.join(root, *path.split("/"))
