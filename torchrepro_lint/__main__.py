"""``python -m torchrepro_lint``."""

from __future__ import annotations


def main() -> None:
    """Run the command line; never returns."""
    from torchrepro_lint.cli import main as run

    run()


if __name__ == "__main__":
    main()
