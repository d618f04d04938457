"""Broken and hostile input by chance: ``python -m tests.fuzz --minutes 10`` tries it, ``tests/test_fuzz.py`` a little of it."""
