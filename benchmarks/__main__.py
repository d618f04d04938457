"""``python -m benchmarks``: all measurements as tables: this tool beside others, targets, and growth with size.

It takes the better part of an hour; ``python -m benchmarks.comparing`` and ``python -m benchmarks.growth`` are its parts.
"""

from __future__ import annotations

import argparse

from benchmarks import comparing, growth
from benchmarks.measuring import stages
from benchmarks.packages import joined


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    comparing.add_options(parser)
    growth.add_options(parser)
    options = parser.parse_args()
    comparing.compare(options)
    laps = stages(options.directory or joined(), min(options.repeats, 3))
    print("\nStages of a run in one process (CPU s):", ", ".join(f"{name} {spent:.2f}" for name, spent in laps.items()))
    print()
    growth.grow(options.sizes, options.growth_repeats)


if __name__ == "__main__":
    main()
