"""Benchmarks: the costs of torchrepro-lint, measured beside the libraries it is built on. Start with ``python -m benchmarks``."""
