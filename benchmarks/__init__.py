"""What torchrepro-lint costs, measured side by side with what it is built on. Start it with ``python -m benchmarks``."""
