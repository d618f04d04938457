"""Named tuples that do not evaluate their annotations.

``typing.NamedTuple`` compiles the annotation of each field, which nothing here reads: of two hundred classes that takes a tenth of the
time in which the program is imported. A class is written as with ``typing.NamedTuple``, and type checkers take it for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414  type checkers know it by its own name
else:
    from collections import namedtuple

    class _NamedTupleMeta(type):
        """Makes a named tuple of the body of a class."""

        def __new__(cls, name, bases, body):  # noqa: ARG004  the only base is the one below
            fields = body.get("__annotations__", {})
            defaults = [body[field] for field in fields if field in body]
            if [field in body for field in fields] != [False] * (len(fields) - len(defaults)) + [True] * len(defaults):
                raise TypeError(f"{name}: a field without a default follows one with a default")
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])  # noqa: PYI024
            made.__annotations__ = dict(fields)
            for key, value in body.items():
                if key not in fields and key not in _OWN:
                    setattr(made, key, value)
            made.__orig_bases__ = (NamedTuple,)
            return made

    # What a class has of its own, whatever its body says.
    _OWN = frozenset({"__annotations__", "__module__", "__dict__", "__weakref__"})

    class _NamedTupleBase:
        """What stands between the brackets of a class; its place is taken by ``tuple``."""

        def __mro_entries__(self, bases):
            return (_Base,)

    _Base = type.__new__(_NamedTupleMeta, "NamedTuple", (), {})
    NamedTuple = _NamedTupleBase()
