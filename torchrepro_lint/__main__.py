"""``python -m torchrepro_lint``."""

from __future__ import annotations

import gc
import sys

from torchrepro_lint.interrupts import end_on_sigterm


def main() -> None:
    """Run the command line; never returns. Ctrl-C ends it with status 130, SIGTERM with 143."""
    if sys.argv[1:2] != ["server"]:  # an editor's server ends by itself
        end_on_sigterm()
        if "--watch" not in sys.argv:
            # Facts hold no cycles and stay to the end: looking for garbage among them took an eighth of a long run.
            gc.disable()
    try:
        from torchrepro_lint.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        # The process ends here: Python need not look for cycles in what is left either.
        gc.freeze()


if __name__ == "__main__":
    main()
