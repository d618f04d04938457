"""What an exception says of the end of a process. Nothing is imported here: Ctrl-C may come while modules are."""

from __future__ import annotations

_INTERRUPTED = 130


def status_of(error: BaseException | None) -> int | str | None:
    """The exit status that an exception asks for, or one that it was made of; None where no end was asked for.

    Python 3.11 and older make a ``RuntimeError`` of Ctrl-C that comes while a class is made.
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
