"""``python -m torchrepro_lint``."""

from __future__ import annotations

import gc
import sys

from torchrepro_lint.interfaces.cli.terminal import status_of


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
        # The process ends here: Python need not look for cycles in what is left either.
        gc.freeze()


def _run() -> None:
    from torchrepro_lint.engine.writing import end_on_sigterm

    if sys.argv[1:2] != ["server"]:  # an editor's server ends by itself
        end_on_sigterm()
        if "--watch" not in sys.argv:
            # Facts hold no cycles and stay to the end: looking for garbage among them took an eighth of a long run.
            gc.disable()
    from torchrepro_lint.interfaces.cli.app import main as run

    if None in (sys.stdin, sys.stdout, sys.stderr):
        from torchrepro_lint.interfaces.cli.terminal import open_closed

        open_closed()
    run()


if __name__ == "__main__":
    main()
