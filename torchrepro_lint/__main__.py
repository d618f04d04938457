"""The process entry point: ``torchrepro-lint`` and ``python -m torchrepro_lint``.

Sets up signals, garbage collection and closed streams, then calls the command line. Modules are imported inside
``main``, since Ctrl-C may come while they are imported.
"""

from __future__ import annotations

import gc
import sys

_INTERRUPTED = 130


def main() -> None:
    """Run the command line; never returns. Ctrl-C ends it with status 130, SIGTERM with 143."""
    try:
        _run()
    except (Exception, KeyboardInterrupt) as error:
        status = status_of(error)
        if status is None:
            raise
        sys.exit(status)
    finally:
        # The process ends here, so Python need not look for cycles in what is left. DuckDB's types are in some, and would
        # complain that they are left.
        if "duckdb" not in sys.modules:
            gc.freeze()


def status_of(error: BaseException | None) -> int | str | None:
    """The exit status that an exception, or one of its causes, asks for; None where none asks for an exit.

    Python 3.11 and older turn Ctrl-C during the creation of a class into a ``RuntimeError``.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return _INTERRUPTED
        if isinstance(error, SystemExit):
            return error.code
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None


def _run() -> None:
    if sys.argv[1:2] != ["server"]:  # the language server ends by the protocol
        _end_on_sigterm()
        if "--watch" not in sys.argv:
            # Syntax trees hold no cycles and stay to the end: collecting garbage took an eighth of a long run.
            gc.disable()
    from torchrepro_lint.interfaces.cli.app import main as run

    if None in (sys.stdin, sys.stdout, sys.stderr):
        from torchrepro_lint.interfaces.cli.terminal import open_closed_streams

        open_closed_streams()
    run()


def _end_on_sigterm() -> None:
    """Turn SIGTERM into an exit with status 143 that runs clean-up code; where it is ignored it stays ignored."""
    import signal

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _exit)


def _exit(number: int, _frame: object) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
