"""``python -m torchrepro_lint``."""

from __future__ import annotations

import gc


def main() -> None:
    """Run the command line; never returns."""
    from torchrepro_lint.cli import main as run

    try:
        run()
    finally:
        # The process ends here: Python need not look for cycles in what is left, which took an eighth of a long run.
        gc.freeze()


if __name__ == "__main__":
    main()
