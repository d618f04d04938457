"""Options that every format is given beside the diagnostics, and paths relative to where its reader starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote


class View(NamedTuple):
    """How to write: in ``colour``, with call paths (``verbose``), for a reader that starts at ``base``.

    ``base`` is the absolute directory that relative paths in reports for other programs start from. ``width`` is that of the
    terminal in columns, 0 where the output goes elsewhere and is not wrapped.
    """

    colour: bool = False
    verbose: bool = False
    base: str = ""
    width: int = 0


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
    return ("file://" if name.startswith("/") else "") + quote(os.fsencode(name))
