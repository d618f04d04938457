"""flake8 plugin: an adapter that reports what the command line would report of a file among flake8's own findings.

flake8 is not a dependency; it loads this module by its entry point, and applies ``# noqa`` and per-file-ignores itself.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchrepro_lint import __version__
from torchrepro_lint.source.errors import escaped, escaped_message
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import with_paths

if TYPE_CHECKING:
    from torchrepro_lint.config.settings import RuleOverrides
    from torchrepro_lint.engine.session import Session

_CODE = lazy_pattern(r"TRL\d{3}")
_STANDARD_INPUT = ("-", "stdin")
Violation = tuple[int, int, str, type["Plugin"]]


class Plugin:
    """The checker that flake8 instantiates for each file."""

    name = "torchrepro-lint"
    version = __version__
    _session: Session | None = None
    _overrides: RuleOverrides
    _config: Path | None = None
    _isolated = False
    _stdin = "stdin"

    def __init__(self, tree: ast.AST, filename: str, lines: Sequence[str]) -> None:  # noqa: ARG002  flake8 asks for it
        self._filename = filename
        self._lines = lines

    @staticmethod
    def add_options(manager: Any) -> None:
        """Register options, all with the prefix ``torchrepro``, for the command line and flake8's settings files."""
        for name, more in _OPTIONS.items():
            manager.add_option(f"--torchrepro-{name}", **more)

    @classmethod
    def parse_options(cls, options: argparse.Namespace) -> None:
        """Read the options; rules that flake8 itself selects run even where they are off by default."""
        from torchrepro_lint.config.settings import RuleOverrides

        told = [*(options.select or ()), *(options.extend_select or ())]
        extended = (*(options.torchrepro_extend_select or ()), *(code for code in told if _CODE.fullmatch(code)))
        cls._overrides = RuleOverrides(
            select=tuple(options.torchrepro_select) if options.torchrepro_select else None,
            extend_select=extended,
            ignore=tuple(options.torchrepro_ignore or ()),
            min_severity=options.torchrepro_min_severity,
            torch_version=options.torchrepro_torch_version,
            device=options.torchrepro_device,
        )
        cls._config = Path(options.torchrepro_config) if options.torchrepro_config else None
        cls._isolated = options.torchrepro_isolated and not cls._config
        cls._stdin = options.stdin_display_name or "stdin"
        cls._session = None

    def run(self) -> Iterator[Violation]:
        """The violations of the file: rows from 1, columns from 0, to which flake8 adds one."""
        piped = self._filename in (*_STANDARD_INPUT, self._stdin)
        data = "".join(self._lines).encode("utf-8", "surrogateescape") if piped else None
        answer = self._shared_session().findings(self._filename, data)
        if answer is None:
            return
        from torchrepro_lint.interfaces.report.view import shown_paths  # most files have no findings

        for error in answer.errors:
            sys.stderr.write(f"torchrepro-lint: {escaped(self._filename)}: {escaped(error)}\n")
        for one in answer.findings:
            row, column, _ = answer.lines.position(one.span.start)
            message = with_paths(one.message, shown_paths(self._filename, os.path.abspath(self._filename), answer.root))
            yield row, column - 1, f"{one.code} {escaped_message(message)}", type(self)

    @classmethod
    def _shared_session(cls) -> Session:
        """The one session for all files of a process."""
        if cls._session is None:
            from torchrepro_lint.config.roots import ConfigOptions
            from torchrepro_lint.engine.session import Session

            cls._session = Session(ConfigOptions(cls._config, cls._isolated, cls._overrides.apply_to))
        return cls._session


def _version(value: str) -> str:
    from torchrepro_lint.config.settings import parse_torch_version

    try:
        return parse_torch_version(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


_LIST = {"comma_separated_list": True, "parse_from_config": True, "metavar": "A,B,…"}
_WORD = {"parse_from_config": True}
_OPTIONS: dict[str, dict[str, Any]] = {
    "select": {**_LIST, "help": "Rules to run instead of the selected ones: codes, prefixes, names, ALL."},
    "extend-select": {**_LIST, "help": "Rules to run as well."},
    "ignore": {**_LIST, "help": "Rules not to run."},
    "min-severity": {**_WORD, "choices": ("note", "warning", "error"), "help": "Leave out what matters less."},
    "torch-version": {
        **_WORD,
        "type": _version,
        "metavar": "X.Y",
        "help": 'The torch that the code will run with, or "minimum".',
    },
    "device": {**_WORD, "choices": ("auto", "cuda", "mps", "cpu"), "help": "The device it will run on."},
    "config": {**_WORD, "normalize_paths": True, "help": "The settings file to use; overrules isolated."},
    "isolated": {**_WORD, "action": "store_true", "default": False, "help": "Ignore all settings files."},
}
