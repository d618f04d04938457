"""Qualified names: how symbols, names from outside the project and the objects that they stand for are written as strings.

====================================  ==================================================================================
``src/a.py:Net.forward``              a symbol of the project: its path and its qualified name in the file
``src/a.py:f.<locals>.x``             what is local to a function; a lambda is ``<lambda>``, a comprehension ``<comp>``
``src/a.py:``                         a module of the project
``:Net.forward``                      a root: the same within its file, before linking
``torch.nn.Linear``                   a name from outside the project, also a root
``?x``                                a root that nothing binds
``N()``                               an instance of the class ``N``, or the result of the outside function ``N``
``N[]``                               an element of the object ``N``
``N.<super>``                         the ``super`` of the class ``N``
``torch.rand().sum``                  an attribute of an outside object
====================================  ==================================================================================

The path may hold colons, the rest does not. Only this module knows how these strings are built; for all others they are opaque.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from torchrepro_lint import limits
from torchrepro_lint.source.patterns import lazy_pattern

# What the project defines: a module, function, class, variable or parameter.
Symbol: TypeAlias = str
# A name before linking: relative to its file where the file defines it.
Root: TypeAlias = str
# What an expression may stand for (points-to): a symbol or an outside name, an instance or an element of one, or an attribute of an
# outside object. Type inference has its own ``AbstractValue``.
Value: TypeAlias = str

# The module as a root in its file.
MODULE_ROOT = ":"

# The last identifiers of progress bars, which iterate over their first argument: of tqdm, rich, alive_progress, progressbar, fastprogress.
PROGRESS_BARS = frozenset({"tqdm", "tqdm_notebook", "track", "alive_it", "progressbar", "progress_bar", "master_bar"})

# The identifier of the ``super`` of a class.
SUPER = "<super>"

_LOCALS = ".<locals>."
_OBJECTS = ("()", "[]")
_DEEPEST = "[]" * limits.MAX_ELEMENT_DEPTH
_SUPER = f".{SUPER}"
_NO_DEFINITIONS = (*_OBJECTS, _SUPER)
_RESULT = lazy_pattern(r"\(\)(\[\])*\.")
# ``:f.<locals>.<comp>.x``, perhaps in nested comprehensions; at the top level ``:<locals>.<comp>.x``.
_COMPREHENSION_VARIABLE = lazy_pattern(r"(?P<function>.*?)(?:(?:^:|\.)<locals>\.<comp>\d*)+\.(?P<word>\w+)")
# Interned paths: many thousand answers hold the path of a qualified name.
_paths: dict[str, str] = {}


# --- what a name is ----------------------------------------------------------------------------------------------------


def is_progress_bar(name: Value) -> bool:
    """Whether a name from outside is a progress bar's, which iterates over its first argument."""
    return simple_name(name) in PROGRESS_BARS and not in_project(name)


def in_project(name: Value) -> bool:
    """Whether the project defines a name, or what an object was made by; all other names come from outside."""
    return ":" in name


def is_module(name: Value) -> bool:
    """Whether a name is a module of the project."""
    return name.endswith(":")


def is_local(name: Symbol | Root) -> bool:
    """Whether a symbol is local to a function, a lambda or a comprehension, or lies in something that is."""
    return "<locals>" in name


def is_nested(name: Symbol | Root) -> bool:
    """Whether a symbol lies in a function, or in a comprehension of a class: not what a comprehension of a module binds."""
    return _LOCALS in name


def is_top_level(root: Root) -> bool:
    """Whether a root is a variable, function or class of the module itself."""
    return "." not in root


def is_own(root: Root) -> bool:
    """Whether a root is what its file itself defines."""
    return root[0] == ":"


def is_relative(root: Root) -> bool:
    """Whether a root is a dotted name as a relative import writes it."""
    return root[:1] == "."


def is_absolute(root: Root) -> bool:
    """Whether a root is a dotted name as an absolute import writes it: not of its file, not relative, not unresolved."""
    return root[0] not in ":.?"


def is_method(function: Symbol) -> bool:
    """Whether a function's name has a class in it: ``a.py:Net.forward``, not ``a.py:main.<locals>.step``."""
    return "." in split_name(function)[2].rpartition("<locals>.")[2]


def is_lambda(name: Symbol | Root) -> bool:
    """Whether a function is a lambda."""
    return "<lambda>" in name.rpartition(".")[2]


def is_of_comprehension(name: Symbol | Root) -> bool:
    """Whether a symbol lies in a comprehension."""
    return "<comp>" in name


def is_self(root: Root) -> bool:
    """Whether a root is a local variable or parameter called ``self``."""
    return root.endswith(".<locals>.self")


def is_unresolved(root: Root) -> bool:
    """Whether nothing binds a root."""
    return root[:1] == "?"


# --- objects -----------------------------------------------------------------------------------------------------------


def instance_value(name: Value) -> Value:
    """An instance of a class; for a name from outside the result of calling it, and for a generator function its iterator."""
    return f"{name}()"


def is_instance(value: Value) -> bool:
    """Whether a value is an instance of a class, or the result of a call."""
    return value.endswith("()")


def class_of(value: Value) -> Value:
    """The class of an instance, or the outside function that returned it; anything else is returned as it is."""
    return value.removesuffix("()")


def project_classes(values: Iterable[Value]) -> Iterator[Symbol]:
    """The classes of those values that are instances of classes of the project."""
    return (value[:-2] for value in values if ":" in value and value.endswith("()"))


def element_value(value: Value) -> Value:
    """An element of an object: of a list, of a dictionary, of what an iterator yields; the same again at the greatest depth."""
    return value if value.endswith(_DEEPEST) else f"{value}[]"


def is_element(value: Value) -> bool:
    """Whether a value is an element of an object."""
    return value.endswith("[]")


def is_object(value: Value) -> bool:
    """Whether a value is an instance, the result of a call, or an element: what has a name is a definition instead."""
    return value.endswith(_OBJECTS)


def ray_attribute(name: Value, word: str) -> tuple[Value, ...]:
    """What Ray gives a function or class: ``play.remote(board)`` runs it elsewhere, ``play.options(num_cpus=1)`` gives it back."""
    return (name,) if word == "remote" else ("ray.remote().options",) if word == "options" else ()


def super_value(name: Value) -> Value:
    """The ``super`` of a class: its methods are those of its bases."""
    return f"{name}{_SUPER}"


def super_call(word: str) -> str:
    """The identifier by which ``super().word`` is called, which no other callee has."""
    return f"{SUPER}.{word}"


def is_super(value: Value) -> bool:
    """Whether a value is the ``super`` of a class."""
    return value.endswith(_SUPER)


def class_below(value: Value) -> Value:
    """The class whose ``super`` a value is; anything else is returned as it is."""
    return value.removesuffix(_SUPER)


def is_definition(value: Value) -> bool:
    """Whether a value may be a symbol itself: no object and no ``super``."""
    return not value.endswith(_NO_DEFINITIONS)


def passes_call(value: Value) -> bool:
    """Whether a call stands anywhere in a value: ``torch.rand()``, ``torch.rand().sum``."""
    return "()" in value


def unbound_method(value: Value) -> Value:
    """A method of an outside object as it is read from its class: ``torch.nn.Module.forward`` for ``torch.nn.Module().forward``."""
    return value.replace("().", ".")


def split_call(value: Value) -> tuple[Value, bool, str]:
    """The callee of the first call in a value, whether there is one, and what is read from its result: ``.sum`` of
    ``torch.rand().sum``.
    """
    callee, called, rest = value.partition("()")
    return callee, bool(called), rest


def constructed_class(name: Value) -> Value:
    """The class that a constructor constructs: ``torch.nn.Linear`` of that name, and of its ``().__init__``."""
    return name.removesuffix(".__init__").removesuffix("()")


def without_calls(name: Value) -> Value:
    """A dotted name without calls and subscripts, as the tables name methods of instances: ``a.b.f`` for ``a.b()[].f``.

    A name that calls a package stays, since no table has it: ``torch().seed`` is not ``torch.seed``.
    """
    made, called, _ = name.partition("()")
    return _RESULT.sub(".", name) if called and "." in made else name


def split_method(value: Value) -> tuple[Value, str]:
    """A method of a call's result, as the callee and what is read from its result: ``torch.rand`` and ``sum``; any other value
    stays whole.
    """
    callee, _, method = value.partition("().")
    return callee, method


def is_inherited_constructor(value: Value) -> bool:
    """Whether a value is the constructor of a class from outside, as method resolution finds it: ``torch.nn.Linear().__init__``."""
    return value.endswith("().__init__")


def without_parentheses(name: Value) -> Value:
    """A value without the parentheses of its calls: ``a.b.f`` for ``a.b().f()``."""
    return name.replace("()", "")


def without_elements(name: Value) -> Value:
    """A value without the brackets of its elements: ``a.b().f`` for ``a.b()[].f``."""
    return name.replace("[]", "")


def without_brackets(name: Value) -> Value:
    """A value without the brackets of its calls and elements: ``a.b.f`` for ``a.b()[].f()``."""
    return name.replace("()", "").replace("[]", "")


# --- parts -------------------------------------------------------------------------------------------------------------


def module_symbol(path: str) -> Symbol:
    """The module of a file."""
    return f"{path}:"


def imported_root(module: str, word: str) -> Root:
    """What ``from module import word`` binds, the module as it is written there: ``.`` and ``utils`` give ``.utils``."""
    return f"{module}{word}" if module.endswith(".") else f"{module}.{word}"


def path_of(name: Symbol) -> str:
    """The path of a symbol; a name from outside the project is returned as it is."""
    if ":" not in name:
        return name
    path = name[: name.rfind(":")]
    return _paths.setdefault(path, path)


def split_name(name: Value) -> tuple[str, str, str]:
    """A symbol as its path, a colon and its qualified name in the file; a name from outside stays whole."""
    if ":" not in name:
        return name, "", ""
    path, colon, own = name.rpartition(":")
    return _paths.setdefault(path, path), colon, own


def root_of(name: Symbol) -> Root:
    """The root that a symbol is in its file: ``:Net.forward``."""
    return name[name.rfind(":") :]


def qualname_of(name: Symbol | Root) -> str:
    """The qualified name in its file, as Python's ``__qualname__``: ``Net.forward``; a name from outside as it is."""
    return name.rpartition(":")[2]


def readable_name(name: Symbol | Root) -> str:
    """The qualified name in its file as people write it: ``f.g`` for ``a.py:f.<locals>.g``; empty for a module."""
    return name.rpartition(":")[2].replace(".<locals>", "")


def simple_name(name: Value | Root) -> str:
    """The last identifier: ``forward`` of ``a.py:Net.forward``, ``x`` of ``:f.<locals>.x``, ``:x`` and ``?x``, ``rand`` of
    ``torch.rand``; with the brackets of an object. Empty for a module of the project.
    """
    word = name.rpartition(".")[2]
    return word.rpartition(":")[2] if ":" in word else word.lstrip("?")


def split_last(name: Value) -> tuple[str, str]:
    """What stands before the last dot, and the last identifier: ``torch.nn`` and ``Linear``; ``a.py:Net`` and ``forward``."""
    qualifier, _, word = name.rpartition(".")
    return qualifier, word


def last_word(dotted: str) -> str:
    """The last word of a dotted text that an import, a table or a configuration has, or of a name from outside.

    What a file itself defines keeps its colon, so that it equals no word of a name from outside: ``:log`` is no ``math.log``.
    """
    return dotted.rpartition(".")[2]


def qualifier_of(name: Value) -> str:
    """What stands before the last dot: the class of a method, the module of an outside name; else empty."""
    return name.rpartition(".")[0]


def top_package(name: Value) -> str:
    """The top-level package of a dotted name: ``torch`` of ``torch.nn.Linear``; empty for a relative one."""
    return name.partition(".")[0]


def local_symbol(function: Symbol | Root, word: str) -> str:
    """A local variable or a parameter of a function."""
    return f"{function}.<locals>.{word}"


def comprehension_prefix(scope: str, word: str) -> str:
    """What the names begin with that a comprehension binds; ``scope`` is what those of the scope around it begin with."""
    return f"{scope if scope.endswith('<locals>.') else f'{scope}<locals>.'}{word}."


def locals_prefix(function: Symbol | Root) -> str:
    """What the names of everything local to a function begin with."""
    return f"{function}.<locals>."


def split_local(name: Symbol | Root) -> tuple[str, str]:
    """The innermost function around a symbol, and its name there; the function is empty where no function is around it."""
    function, _, word = name.rpartition(_LOCALS)
    return function, word


def split_comprehension(name: Root) -> tuple[Root, str] | None:
    """The function around the comprehensions that bind a variable, empty at the top level, and its name there; else None."""
    found = _COMPREHENSION_VARIABLE.fullmatch(name)
    return (found["function"], found["word"]) if found else None


def enclosing_function(name: Symbol | Root) -> str:
    """The innermost function around a symbol; empty where there is none."""
    return name.rpartition(_LOCALS)[0]


def outermost_function(name: Symbol | Root) -> str:
    """The outermost function around a symbol, or the symbol itself where there is none."""
    return name.partition(_LOCALS)[0]


# --- interning of names, which thousands of nodes share ---------------------------------------------------------------

# The most tuples that are interned at a time: about as many as half a million lines have.
_MAX_INTERNED = 1 << 18

_words: dict[tuple[str, ...], tuple[str, ...]] = {}
# ``interned_names`` for tuples that are known already: a plain look-up for callers that ask half a million times.
known_names = _words.get


def interned_names(of: tuple[str, ...]) -> tuple[str, ...]:
    """Interning of a tuple of names: equal tuples are one object."""
    known = _words.get(of)
    if known is None:
        if len(_words) >= _MAX_INTERNED:
            _words.clear()
        known = _words[of] = of
    return known


def clear_interned() -> None:
    """Empty the table of interned tuples, once all files are read; the files keep the tuples that they share."""
    _words.clear()
