"""What an expression may stand for, as names: through variables, attributes, calls, and the classes of a project.

A call's result is its name with ``()`` (``torch.Generator()``, ``src/model.py:Net()``), an element is ``[]``. Where
several values are possible all are named; what can't be known gives no name at all.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from itertools import product

from torchrepro_lint.query.fixpoint import Memo
from torchrepro_lint.query.memo_tables import Kept, Recent
from torchrepro_lint.resolve.call_graph import Callers
from torchrepro_lint.resolve.cli_options import Options
from torchrepro_lint.resolve.imports import Modules
from torchrepro_lint.resolve.registries import Registry, passed
from torchrepro_lint.resolve.search_path import places_of
from torchrepro_lint.resolve.symbols import Definitions, EventCache, Parameter
from torchrepro_lint.syntax.definitions import position
from torchrepro_lint.syntax.nodes import (
    Attribute,
    Call,
    Class,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Facts,
    Function,
    Lambda,
    Leave,
    Operation,
    Param,
    Ref,
    Subscript,
    is_on_class,
    parted,
    path_of,
    takes_object,
)
from torchrepro_lint.syntax.summary import is_property
from torchrepro_lint.syntax.visitor import instance_assignments, statements

# What runs the module that it is given as it is.
MODULE_WRAPPERS = frozenset(
    {
        "torch.compile",
        "torch.jit.script",
        "torch.nn.DataParallel",
        "torch.nn.parallel.DataParallel",
        "torch.nn.parallel.DistributedDataParallel",
        "torch.nn.parallel.data_parallel.DataParallel",
        "torch.nn.parallel.distributed.DistributedDataParallel",
        "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
    }
)
# Calls whose result stands for their first argument.
_TRANSPARENT = MODULE_WRAPPERS | frozenset(
    {
        "functools.partial",
        "copy.copy",
        "copy.deepcopy",
        "builtins.iter",
        "builtins.next",
        "tqdm.tqdm",
        "tqdm.auto.tqdm",
        "tqdm.std.tqdm",
        "tqdm.notebook.tqdm",
    }
)

# Methods that return the object they are called on.
_FLUENT = frozenset(
    {"to", "cuda", "cpu", "eval", "train", "float", "half", "double", "bfloat16", "requires_grad_", "share_memory"}
    | {"manual_seed"}
)


# A value is followed through so many variables and calls; what is left then stands for itself.
_MOST_STEPS = 100
# A variable that is given more values than that may be anything.
_MOST_VALUES = 100
# Modules that are passed to be looked into tell what is meant where they have no more names than that.
_MOST_NAMES = 100
# Of so many classes it stays what their methods assign.
_MOST_CLASSES = 1_000
# So many classes above one are known, nearest first.
_MOST_ANCESTORS = 200

# So often a change is followed from answer to answer.
_MOST_ROUNDS = 10

# What stands for no name.
_NAMELESS = frozenset({Constant, Collection, Comprehension})

_RESULTS = ("()", "[]", ".<super>")

# The word for an attribute of an outside module that is looked up by a name which is not known.
ANYTHING = "anything"


class Names:
    """Answers for all modules of a project; answers are remembered for the life of the project."""

    def __init__(self, modules: Modules, torch: str) -> None:
        self.modules = modules
        self._torch = torch
        self._definitions = Definitions(modules.files, modules.reads)
        self._attributes: Recent[str, dict[str, list[tuple[str, str, Expression]]]] = Recent(
            None if modules.reads.firm else _MOST_CLASSES
        )
        self._memo = Memo(modules.reads)
        # Answers that owe nothing to a cut.
        self._ancestries: Kept[str, tuple[str, ...]] = Kept(modules.reads)
        # Likewise, worked out apart.
        self.above: Kept[str, tuple[str, ...]] = Kept(modules.reads)
        self._behind: Kept[tuple[str, object, bool], tuple[tuple[str, Expression], ...]] = Kept(modules.reads)

    # --- changes ---------------------------------------------------------------------------------------------------

    def replace(self, path: str, facts: Facts) -> int | None:
        """Take over what a changed file says; returns the bits of what has changed, None where it may concern all files.

        For names that keep what they were worked out from. Remembered answers that the change does not touch stay.
        """
        old = self.modules.files[path]
        if not _concerns_few(path, old, facts):
            return None
        if old.summary.decorators != facts.summary.decorators and self._tables():
            return None
        heirs, decorated = vars(self).pop("_heirs", None), self.registry.put_aside()
        changed = self._forget(path, old, facts)
        with self.modules.reads.apart():
            same = (heirs is None or heirs == self._heirs) and (decorated is None or self.registry.is_still(decorated))
            return self._reconsidered(changed) if same else None

    def _reconsidered(self, changed: int) -> int | None:
        """What has changed, with the firm answers that are others now; None where that comes to no end."""
        for _ in range(_MOST_ROUNDS):
            more = self._memo.reconsider()
            if not more:
                return changed
            changed |= more
            self._drop(more)
        return None

    def settle(self) -> None:
        """Work out what ``replace`` compares."""
        _ = self._heirs, self.registry.tables

    def _tables(self) -> bool:
        """Whether decorators fill tables."""
        return any(self.modules.summary(path).tables for path in self.modules.files)

    def _forget(self, path: str, old: Facts, facts: Facts) -> int:
        reads, before, after = self.modules.reads, old.summary, facts.summary
        changed = reads.bits[path]
        callers, options = self.calls_of, self.options  # made of what was there before
        for kind in ("calls", "values", "keywords"):
            for word in {*getattr(before, kind)} ^ {*getattr(after, kind)}:
                changed |= reads.word(kind, word)
        for kind in ("partials", "through", "imports", "exports", "entered"):
            if getattr(before, kind) != getattr(after, kind):
                changed |= reads.word(kind, "")
        self.events.forget(path, old)
        self.modules.replace(path, facts)
        self._definitions.forget(path)
        callers.replace(path, before, after)
        options.forget(path)
        for owner in [owner for owner in self._attributes if owner.startswith(f"{path}:")]:
            self._attributes.pop(owner)
        self._drop(changed)
        return changed

    def _drop(self, changed: int) -> None:
        for kept in (self.modules, self._memo, self._ancestries, self.above, self._behind, self.calls_of):
            kept.drop(changed)
        self.registry.drop(changed)

    # --- look-ups ----------------------------------------------------------------------------------------------------

    def functions(self, name: str) -> tuple[Function, ...]:
        """The definitions of a function of the project; none where it is no such name."""
        return self._definitions.functions(name)

    def classes(self, name: str) -> tuple[Class, ...]:
        """The definitions of a class of the project."""
        return self._definitions.classes(name)

    def outlines(self, name: str) -> bool:
        """Whether a name is known to be a function or class of the project without a look into its file."""
        return self._definitions.outlines(name)

    def all_classes(self) -> Iterator[str]:
        """The names of all classes of the project."""
        for path in sorted(self.modules.files):
            yield from dict.fromkeys(path + each for each, _ in self.modules.summary(path).classes)

    def assigned(self, variable: str) -> tuple[tuple[str, Expression], ...]:
        """What a variable of the project is assigned, as ``Facts.assigned`` has it."""
        return self._definitions.assigned(variable) or ()

    def parameter(self, name: str) -> Parameter | None:
        """The parameter that a variable of the project (``path:f.<locals>.x``) is; None for another."""
        return self._definitions.parameter(name)

    def passed(self, name: str) -> list[tuple[str, Expression]]:
        """What the calls of the project pass for a parameter, the default where they leave it out; see ``values``."""
        found = self.parameter(name)
        return list(self._passed(path_of(name), *found)) if found is not None else []

    def ancestry(self, name: str) -> tuple[str, ...]:
        """A class and its bases, nearest first: the project's, then those from outside (dotted)."""
        if self._memo.secluded:
            return self._find_ancestry(name)
        return self._ancestries.if_definite(name, lambda: self._memo.definite(lambda: self._find_ancestry(name)))

    def _find_ancestry(self, name: str) -> tuple[str, ...]:
        if not self._definitions.bases(name):
            return (name,)
        order: dict[str, None] = {}
        queue = deque([name])
        while queue and len(order) < _MOST_ANCESTORS:
            current = queue.popleft()
            if current in order:
                continue
            order[current] = None
            path = path_of(current)
            for base in self._definitions.bases(current):
                queue += self.names(path, base)
        return tuple(sorted(order, key=lambda each: ":" not in each))

    def heirs(self, name: str) -> list[str]:
        """The short names of the classes of the project that inherit from a class of it."""
        return sorted({each.rpartition(".")[2].rpartition(":")[2] for each in self.heirs_of(name)})

    def heirs_of(self, name: str) -> list[str]:
        """The classes of the project that inherit from a class of it."""
        return [] if self.secluded else self._heirs.get(name, [])

    @cached_property
    def _heirs(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        self.modules.reads.recall("above")
        with self.apart():
            for each in self.all_classes():
                for base in self.above.of(each, lambda each=each: self._find_ancestry(each)[1:]):  # type: ignore[misc]
                    found.setdefault(base, []).append(each)
        return found

    def apart(self) -> AbstractContextManager[None]:
        """For what is worked out once, whatever is being asked; see ``memo``."""
        return self._memo.apart()

    @property
    def secluded(self) -> bool:
        """Whether such work is going on: heirs and tables then say nothing."""
        return self._memo.secluded

    def methods(self, owner: str, word: str) -> tuple[str, ...]:
        """The function that ``owner().word`` runs: one of the project, else dotted names of outside bases.

        ``Net.<super>`` as the owner starts above ``Net``.
        """
        outside = []
        above = owner.endswith(".<super>")
        for each in self.ancestry(owner.removesuffix(".<super>"))[above:]:
            if ":" not in each:
                outside.append(f"{each}().{word}")
            for definition in self.classes(each):
                methods = dict(definition.methods)
                if word in methods:
                    return (path_of(each) + methods[word],)
        return tuple(outside)

    # --- expressions -------------------------------------------------------------------------------------------------

    def names(self, path: str, expression: Expression) -> tuple[str, ...]:
        """The names that an expression of a file may stand for, sorted."""
        kind = type(expression)
        if kind in _NAMELESS:
            return ()
        if kind is not Ref:
            return self._memo.solve((path, id(expression)), lambda: self._names(path, expression))
        roots, words = expression.roots, expression.path  # type: ignore[union-attr]  # narrowed by exact type
        if len(roots) == 1:
            root = roots[0]
            if root[0] not in ":.?":
                if self.modules.is_outside(path, root):
                    return (".".join((root, *words)),)
            elif root[0] == ":" and not words:
                return self._values(path + root)
        # What says the same stands for the same, wherever it is in the file.
        return self._memo.solve((path, roots, words), lambda: self._referred(path, roots, words))

    def outlined(self, path: str, roots: tuple[str, ...], words: tuple[str, ...]) -> tuple[str, ...] | None:
        """``names`` of a reference, as far as what every file is asked anyway tells; None where it takes a look inside."""
        found: set[str] = set()
        for root in roots:
            for name in self.modules.resolve(path, root):
                _, colon, rest = parted(name)
                if colon and (words or (rest and not self._definitions.outlines(name))):
                    return None
                found.add(".".join((name, *words)))
        return tuple(sorted(found)) if roots else None

    def _names(self, path: str, expression: Expression) -> Iterable[str]:
        self.modules.reads.see(path)  # what is remembered by identity goes with its file
        match expression:
            case Ref(roots=roots, path=words):
                return self._referred(path, roots, words)
            case Attribute(value=value, name=word):
                return [found for name in self.names(path, value) for found in self._follow(name, (word,))]
            case Call():
                return self._results(path, expression)
            case Subscript(value=value, indices=index):
                return self._elements(path, value, index)
            case Operation(op="if", operands=(_, *operands)) | Operation(op="or" | "and", operands=operands):
                return [name for operand in operands for name in self.names(path, operand)]
            case Operation(op="await" | "*", operands=(value,)) | Operation(op=":=", operands=(_, value)):
                return self.names(path, value)
            case Lambda(function=function):
                return (path + function,)
        return ()

    def _referred(self, path: str, roots: tuple[str, ...], words: tuple[str, ...]) -> list[str]:
        self.modules.reads.see(path)
        return [
            found for root in roots for name in self.modules.resolve(path, root) for found in self._follow(name, words)
        ]

    def _follow(self, name: str, words: tuple[str, ...]) -> tuple[str, ...]:
        """The values of a name, with attributes read from them one after the other."""
        found = self._values(name)
        for word in words:
            found = tuple(sorted({target for each in found for target in self._attribute(each, word)}))
        return found

    def _values(self, name: str) -> tuple[str, ...]:
        """What a name stands for: itself, or for a variable or parameter what it is given."""
        path, colon, rest = parted(name)
        if not colon or not rest or name.endswith(_RESULTS) or self._definitions.defines(name):
            return (name,)
        return self._memo.solve(name, lambda: self._variable(path, name))

    def _variable(self, path: str, name: str) -> Iterator[str]:
        parameter, assigned = self._definitions.parameter(name), self._definitions.assigned(name)
        if parameter:
            yield from self._parameter(path, *parameter)
        for how, value in (assigned or ()) if len(assigned or ()) <= _MOST_VALUES else ():
            if how in ("=", "with"):
                yield from self.names(path, value)
            elif how == "[]":
                row = self._of_row(path, name, value) if isinstance(value, Subscript) else ()
                yield from (each for file, item in row for each in self.names(file, item))
                yield from () if row else self._elements(path, value, ())
            elif how == ":":
                yield from self._annotated(path, value)
        if parameter is None and assigned is None:
            yield from self._dangling(name)

    def _of_row(self, path: str, name: str, value: Subscript) -> list[tuple[str, Expression]]:
        """What a variable gets of the rows that a table holds: ``config, net = KINDS[args.kind]``."""
        place = self._place(path, name[len(path) :], value)
        if place is None or len(value.indices) != 1:
            return []
        found: list[tuple[str, Expression]] = []
        for file, table in self.displays(path, value.value):
            rows = table.items[1::2] if table.kind == "dict" else ()
            words = self._texts(path, value.indices[0])
            keyed = zip(table.items[::2], rows, strict=False)
            picked = [row for key, row in keyed if isinstance(key, Constant) and key.value in words]
            for row in picked or rows:
                item = row.items[place] if isinstance(row, Collection) and place < len(row.items) else None
                found += [(file, item)] if item is not None else []
        return found

    def _place(self, path: str, root: str, value: Expression) -> int | None:
        """The position of a variable where a value is taken apart."""
        functions = self.functions(path + root.rpartition(".<locals>.")[0])
        bodies = [each.body for each in functions] or [self.modules.files[path].body]
        return next((at for body in bodies if (at := position(body, root, value)) is not None), None)

    def _dangling(self, name: str) -> Iterator[str]:
        """``a.py:x.y.z`` that an import left together: the longest known beginning, then attributes."""
        head, _, tail = name.rpartition(".")
        if head and "<locals>" not in tail and parted(head)[2]:
            yield from self._follow(head, (tail,))

    def _parameter(self, path: str, function: Function, param: Param, position: int) -> Iterator[str]:
        if position == 0 and takes_object(function) and not param.kind.startswith("*"):
            yield f"{path}{function.owner}" if is_on_class(function) else f"{path}{function.owner}()"
            return
        if param.annotation is not None:
            yield from self._annotated(path, param.annotation)
        if param.default is not None:
            yield from self.names(path, param.default)

    def _annotated(self, path: str, annotation: Expression) -> Iterator[str]:
        """An instance of what an annotation names; of a union or ``Optional``, of each."""
        match annotation:
            case Operation(op="|", operands=operands):
                for operand in operands:
                    yield from self._annotated(path, operand)
            case Subscript(value=value, indices=index):
                if set(self.names(path, value)) & {"typing.Optional", "typing.Union", "typing.Annotated"}:
                    for each in index:
                        yield from self._annotated(path, each)
            case _:
                for name in self.names(path, annotation):
                    if not name.endswith(("()", "[]")) and not self.functions(name):
                        yield f"{name}()"

    def _attribute(self, name: str, word: str) -> tuple[str, ...]:
        path, colon, rest = parted(name)
        if not colon:
            return (f"{name}.{word}",)
        if not rest:
            return self._each_value(self.modules.attribute(path, word) or ())
        if name.endswith("()"):
            return self._of_instance(name[:-2], word)
        if self.classes(name):
            inner = (
                self._each_value((f"{name}.{word}",))
                if self._definitions.assigned(f"{name}.{word}") is not None
                else ()
            )
            return inner or tuple(each.replace("().", ".", 1) for each in self.methods(name, word))
        return ()

    def _each_value(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted({value for name in names for value in self._values(name)}))

    def _of_instance(self, owner: str, word: str) -> tuple[str, ...]:
        """A method, or what ``self.word`` is assigned anywhere in the class and its bases."""
        if owner.endswith(".<super>"):
            return self.methods(owner, word)
        found: set[str] = set()
        assigned = False
        for each in self.ancestry(owner):
            if ":" not in each:
                continue
            path = path_of(each)
            for how, _, value in self.instance_attributes(each).get(word, ()):
                assigned = True
                found.update(self.names(path, value) if how == "=" else ())
            if self._definitions.assigned(f"{each}.{word}") is not None:
                assigned = True
                found.update(self._values(f"{each}.{word}"))
        if assigned:
            return tuple(sorted(found))
        methods = self.methods(owner, word)
        if any(self.is_property(method) for method in methods):
            return tuple(sorted({value for method in methods for value in self._returns(method)}))
        return methods

    def is_property(self, name: str) -> bool:
        """Whether a method of the project is run by reading it."""
        return any(is_property(function) for function in self.functions(name))

    @cached_property
    def property_words(self) -> frozenset[str]:
        """The short names of all properties of the project."""
        return frozenset(word for facts in self.modules.files.values() for word in facts.summary.properties)

    def instance_attributes(self, owner: str) -> Mapping[str, Sequence[tuple[str, str, Expression]]]:
        """What the methods of a class assign to ``self``: word → (how, method, value)."""
        self.modules.reads.see(path_of(owner))
        known: dict[str, list[tuple[str, str, Expression]]] | None = self._attributes.get(owner)
        if known is None:
            known = self._attributes[owner] = {}
            path = path_of(owner)
            for definition in self.classes(owner):
                for _, method in definition.methods:
                    for function in self.functions(path + method):
                        for word, how, value in instance_assignments(function):
                            known.setdefault(word, []).append((how, path + method, value))
        return known

    def _results(self, path: str, call: Call) -> Iterator[str]:
        """What a call may return."""
        if isinstance(call.func, Ref) and call.func.path[-1:] == ("get",) and call.args:
            table = call.func._replace(path=call.func.path[:-1])
            for file, display in self.displays(path, table):
                yield from self._items(file, display, path, call.args[0].value)
            yield from self._registered(path, table, call.args[0].value)
        for name in self.names(path, call.func):
            yield from self._result(path, call, name)

    def _result(self, path: str, call: Call, name: str) -> Iterator[str]:
        """What a call may return where what is called has this name."""
        if call.args and (name in _TRANSPARENT or self._only_wraps(name)):
            yield from self.names(path, call.args[0].value)
        elif self.classes(name) or name.endswith(".<super>"):
            yield f"{name}()"
        elif self.functions(name):
            yield from (f"{name}()",) if self.is_generator(name) else self._returns(name)
        elif name == "builtins.getattr" and len(call.args) > 1:
            yield from self._looked_up(path, self._holders(path, call.args[0].value), call.args[1].value)
        elif name == "importlib.import_module" and call.args:
            yield from self._imported(path, call.args[0].value)
        elif ":" not in name:
            fluent = name.rpartition(".")[2] in _FLUENT and "()" in name
            yield from self.receiver(path, call.func) if fluent else (f"{name}()",)
        elif name.endswith("()"):
            for method in self._call_methods(name[:-2]):
                yield from self._returns(method)

    def receiver(self, path: str, func: Expression) -> Iterator[str]:
        """What the method ``func`` is read from; for a function of a module, the module."""
        match func:
            case Ref(roots=roots, path=words) if words:
                for root in roots:
                    for name in self.modules.resolve(path, root):
                        yield from self._follow(name, words[:-1])
            case Attribute(value=value):
                yield from self.names(path, value)

    def _only_wraps(self, name: str) -> bool:
        """Whether a class of the project inherits how it runs a module from one that stands for that module."""
        if not self.classes(name) or _TRANSPARENT.isdisjoint(self.ancestry(name)):
            return False
        return not self._call_methods(name)

    def _holders(self, path: str, value: Expression) -> tuple[str, ...]:
        """What a name is looked up in; of a parameter, the modules that are passed for it, unless they have very many names."""
        if owners := self.names(path, value):
            return owners
        passed = {name for file, each in self.values(path, value) for name in self.names(file, each)}
        modules = sorted(name for name in passed if name.endswith(":"))
        few = sum(len(self.modules.files[name[:-1]].exports) for name in modules) <= _MOST_NAMES
        return tuple(modules) if few else ()

    def _looked_up(self, path: str, owners: tuple[str, ...], key: Expression) -> Iterator[str]:
        """``getattr(module, key)`` and ``module.__dict__[key]``: what a literal key, or the option's default or choices,
        names; else everything in the module.
        """
        words = self._texts(path, key)
        for owner in owners:
            home, colon, rest = parted(owner)
            if words:
                yield from (found for word in words for found in self._attribute(owner, word))
            elif not colon:
                yield f"{owner}.{ANYTHING}"
            elif not rest:
                yield from self.defined_in(home)

    def defined_in(self, path: str) -> Iterator[str]:
        """The functions and classes that a module has, its own and imported ones."""
        for file in self.modules.starred(path):
            for _, names in self.modules.files[file].exports:
                for name in names:
                    yield from (found for found in self.modules.resolve(file, name) if self._definitions.defines(found))

    def _imported(self, path: str, key: Expression) -> Iterator[str]:
        for word in self._texts(path, key):
            if all(part.isidentifier() for part in word.lstrip(".").split(".")):
                yield from self.modules.resolve(path, word)

    def _texts(self, path: str, key: Expression) -> tuple[str, ...]:
        """The texts that an expression may be, where literals or an option's literals tell."""
        if isinstance(key, Constant):
            return (key.value,) if isinstance(key.value, str) else ()
        return self._memo.solve(("texts", path, id(key)), lambda: self._find_texts(path, key, 0))

    def _find_texts(self, path: str, key: Expression, depth: int) -> set[str]:
        self.modules.reads.see(path)  # what is remembered by identity goes with its file
        found: set[str] = set()
        for file, value in self.values(path, key):
            literals: tuple[Constant, ...] = (value,) if isinstance(value, Constant) else ()
            for option in self.options.of(file, value):
                literals += option.literals
            found.update(each.value for each in literals if isinstance(each.value, str))
            if isinstance(value, Operation) and value.op in ("f", "+") and len(value.operands) < 6 and depth < 2:
                parts = [sorted(self._find_texts(file, operand, depth + 1)) for operand in value.operands]
                found.update("".join(each) for each in product(*parts))
        return found

    @cached_property
    def options(self) -> Options:
        """The command-line options that the project declares."""
        with self.modules.reads.apart():
            return Options(self.modules.files)

    def _call_methods(self, owner: str) -> tuple[str, ...]:
        """What calling an instance runs: ``__call__``, or a module's ``forward``."""
        for word in ("__call__", "forward"):
            own = tuple(name for name in self.methods(owner, word) if self.functions(name))
            if own:
                return own
        return ()

    def call_methods(self, instance: str) -> tuple[str, ...]:
        """The functions of the project that calling ``path:Class()`` runs."""
        return self._call_methods(instance[:-2])

    def names_of(self, path: str, reference: Ref) -> tuple[str, ...]:
        """``names`` of a reference that is made up for the question, and so must not be remembered by identity."""
        return tuple(sorted(set(self._names(path, reference))))

    def is_generator(self, name: str) -> bool:
        """Whether a function of the project runs only as its result is iterated or entered."""
        return any(function.generator for function in self.functions(name))

    def follow(self, name: str, words: tuple[str, ...]) -> tuple[str, ...]:
        """What attributes read one after the other from a name may stand for."""
        return tuple(sorted(set(self._follow(name, words))))

    def owner(self, function: str) -> str:
        """The class of the project that a function is a method of; empty for another."""
        path = path_of(function)
        return next((f"{path}{each.owner}" for each in self.functions(function) if each.owner), "")

    def through_calls(self, path: str, reference: Ref) -> tuple[str, ...]:
        """What a variable, or an attribute of one, may stand for by what the calls of the project pass for parameters."""
        found: set[str] = set()
        for file, value in self.values(path, reference._replace(path=())):
            names = self.names(file, value)
            if all(name.endswith("[]") for name in names):
                wrapped = value.args[0].value if isinstance(value, Call) and value.args else value
                names = self.taken_apart(file, wrapped) or names
            for name in names:
                found.update(self._follow(name, reference.path))
        if not found and len(reference.path) == 1:
            for file, value in self.values(path, reference):
                found.update(self.names(file, value) if value is not reference else ())
        if len(reference.path) == 1 and not any(":" in name for name in found):
            found.update(self._passed_for_field(path, reference))
        return tuple(sorted(found))

    def _passed_for_field(self, path: str, reference: Ref) -> Iterator[str]:
        """What ``options.make`` may stand for by what dataclasses are given where they are called."""
        holder = reference._replace(path=())
        for name in sorted({*self.names(path, holder), *self.through_calls(path, holder)}):
            owner = name[:-2] if name.endswith("()") and self.classes(name[:-2]) else ""
            for each in (owner, *self.heirs_of(owner)) if owner else ():
                for file, value in passed(self, each, reference.path[0]):
                    yield from self.names(file, value)

    def taken_apart(self, path: str, value: Expression) -> tuple[str, ...]:
        """The objects of the project that a variable gets of what a function returns: ``net, step = build()``."""
        roots = value.roots if isinstance(value, Ref) and not value.path else ()
        found: set[str] = set()
        for root in roots:
            assigned = self._definitions.assigned(path + root) or ()
            values = [value for how, value in assigned if how == "[]" and isinstance(value, Call)]
            if values:
                found.update(self._memo.solve(("apart", path, root), lambda r=root, v=values: self._parts(path, r, v)))  # type: ignore[misc]
        return tuple(sorted(found))

    def _parts(self, path: str, root: str, values: Iterable[Call]) -> Iterator[str]:
        for value in values:
            if not any(self.functions(name) for name in self.names(path, value.func)):
                continue
            place = self._place(path, root, value)
            for file, found in self.made(path, value) if place is not None else ():
                if isinstance(found, Collection) and place is not None and place < len(found.items):
                    item = found.items[place]
                    names = self.names(file, item) if item is not None else ()
                    yield from (each for each in names if ":" in each and self.classes(each.removesuffix("()")))

    def public_methods(self, name: str) -> Iterator[str]:
        """The methods of a class, or of an object of it, that a command line offers, with its constructor."""
        for definition in self.classes(name.removesuffix("()")):
            path = path_of(name)
            yield from (path + method for word, method in definition.methods if word == "__init__" or word[0] != "_")

    def methods_like(self, owner: str, words: re.Pattern[str]) -> Iterator[str]:
        """The methods of a class, and of its bases in the project, whose words fit, the class's own first."""
        seen: set[str] = set()
        for each in self.ancestry(owner):
            for definition in self.classes(each):
                path = path_of(each)
                for word, name in definition.methods:
                    if words.fullmatch(word) and word not in seen:
                        yield path + name
                seen.update(word for word, _ in definition.methods)

    def returns(self, name: str) -> tuple[str, ...]:
        """What a function of the project may return."""
        return self._returns(name)

    def _returns(self, name: str) -> tuple[str, ...]:
        """What a function of the project returns; a generator gives its elements no names."""
        return self._memo.solve(("returns", name), lambda: self._returned(name))

    def _returned(self, name: str) -> Iterator[str]:
        path = path_of(name)
        if not self.is_generator(name):
            for value in self.return_expressions(name):
                yield from self.names(path, value)

    def _elements(self, path: str, value: Expression, index: tuple[Expression, ...]) -> Iterator[str]:
        """An element of a display (the one that a literal key picks, else any), or ``name[]``."""
        if isinstance(value, Ref) and value.path[-1:] == ("__dict__",) and len(index) == 1:
            owner = value._replace(path=value.path[:-1])
            yield from self._looked_up(path, self.names_of(path, owner), index[0])
            return
        key = index[0] if len(index) == 1 else None
        for file, found in self.values(path, value):
            if isinstance(found, Collection):
                yield from self._items(file, found, path, key)
            elif isinstance(found, Comprehension):
                for element in found.elements[-1:]:
                    yield from self.names(file, element)
        yield from self._registered(path, value, key)
        for name in self.names(path, value):
            yield f"{name}[]"

    def _registered(self, path: str, value: Expression, key: Expression | None) -> Iterator[str]:
        """What decorators have put into a table of the project, under a key where that is known."""
        for name in self._registries(path, value):
            if self.registry.fills(name):
                yield from self.registry.entries(name, () if key is None else self._texts(path, key))

    def _registries(self, path: str, value: Expression) -> Iterator[str]:
        """The variables that an expression names, as far as they may be filled by decorators."""
        if isinstance(value, Ref):
            for root in value.roots:
                for name in self.modules.resolve(path, root):
                    for target in (f"{name}.{'.'.join(value.path)}", f"{name}{'.'.join(value.path)}"):
                        yield target.rstrip(".")

    @cached_property
    def registry(self) -> Registry:
        """What decorators of the project put into its tables."""
        return Registry(self)

    def _items(self, path: str, display: Collection, home: str, index: Expression | None) -> Iterator[str]:
        """What a display of a file gives for an index, which is an expression of ``home``."""
        key = index.value if isinstance(index, Constant) else None
        if display.kind != "dict":
            items = [item for item in display.items if item is not None]
            if type(key) is int and -len(items) <= key < len(items):
                items = [items[key]]
        else:
            pairs = list(zip(display.items[::2], display.items[1::2], strict=True))
            known = () if index is None or key is not None else self._texts(home, index)
            keys = known if key is None else (key,)
            picked = [v for k, v in pairs if isinstance(k, Constant) and k.value in keys]
            items = [v for v in (picked or [v for _, v in pairs]) if v is not None]
        for item in items:
            yield from self.names(path, item)

    def displays(self, path: str, value: Expression) -> Iterator[tuple[str, Collection]]:
        """The literal displays that an expression may be, with their files: itself, or what its variable is assigned."""
        for file, found in self.values(path, value):
            if isinstance(found, Collection):
                yield file, found

    def values(self, path: str, expression: Expression) -> Iterable[tuple[str, Expression]]:
        """The expressions that an expression stands for, with their files: a variable's values, else itself.

        A parameter that nothing is passed for stands for itself, and so does whatever is not followed.
        """
        return self._worked_out(path, expression, calls=False)

    def made(self, path: str, expression: Expression) -> Iterable[tuple[str, Expression]]:
        """``values``, and for a call of a function of the project what that function returns."""
        return self._worked_out(path, expression, calls=True)

    def _worked_out(self, path: str, expression: Expression, *, calls: bool) -> Iterable[tuple[str, Expression]]:
        if not isinstance(expression, (Ref, Call) if calls else Ref):
            return ((path, expression),)
        if self._memo.busy:
            return self._work_out(path, expression, calls=calls)
        # References are made up for questions, too, so they are known by what they say; calls stay as long as the facts.
        what = (expression.roots, expression.path) if isinstance(expression, Ref) else id(expression)
        found = self._behind.of((path, what, calls), lambda: self._elsewhere(path, expression, calls=calls))
        return found or ((path, expression),)

    def _elsewhere(self, path: str, expression: Expression, *, calls: bool) -> tuple[tuple[str, Expression], ...]:
        """What an expression stands for; nothing where that is itself."""
        self.modules.reads.see(path)
        found = tuple(self._work_out(path, expression, calls=calls))
        return () if len(found) == 1 and found[0][1] is expression else found

    def _work_out(self, path: str, expression: Expression, *, calls: bool) -> Iterator[tuple[str, Expression]]:
        """Each variable and each call is followed once, however many ways lead to it."""
        queue = [(path, expression)]
        seen: set[tuple[str, tuple[str, ...], tuple[str, ...]] | int] = set()
        while queue:
            file, value = queue.pop()
            found: list[tuple[str, Expression]] = []
            if isinstance(value, Ref):
                key = (file, value.roots, value.path)
                if key in seen:
                    continue
                seen.add(key)
                if len(seen) < _MOST_STEPS:
                    found = [pair for root in value.roots for pair in self._values_of(file, root, value.path)]
            elif calls and isinstance(value, Call) and id(value) not in seen and len(seen) < _MOST_STEPS:
                seen.add(id(value))
                found = list(self._returned_values(file, value))
            if found:
                queue.extend(reversed(found))
            else:
                yield file, value

    def _returned_values(self, path: str, call: Call) -> Iterator[tuple[str, Expression]]:
        """What the functions of the project that a call runs return."""
        for name in self.names(path, call.func):
            if ":" in name and not self.is_generator(name):
                yield from ((path_of(name), value) for value in self.return_expressions(name))

    def return_expressions(self, name: str) -> Iterator[Expression]:
        """The expressions that a function of the project returns."""
        for function in self.functions(name):
            for statement in statements(function.body):
                if isinstance(statement, Leave) and statement.kind == "return":
                    yield from statement.values

    def _values_of(self, path: str, root: str, words: tuple[str, ...]) -> Iterator[tuple[str, Expression]]:
        for name in self.modules.resolve(path, root):
            file, colon, rest = parted(name)
            if not colon:
                continue
            if not words:
                yield from ((file, value) for how, value in self.assigned(name) if how == "=")
                if parameter := self._definitions.parameter(name):
                    yield from self._passed(file, *parameter)
            elif len(words) == 1 and not rest:
                for target in self.modules.attribute(file, words[0]) or ():
                    owner = path_of(target)
                    yield from ((owner, value) for how, value in self.assigned(target) if how == "=")
            elif len(words) == 1:
                for owner_instance in self._values(name):
                    if owner_instance.endswith("()") and ":" in owner_instance:
                        yield from self.attribute_values(owner_instance[:-2], words[0])

    def _passed(self, path: str, function: Function, param: Param, position: int) -> Iterator[tuple[str, Expression]]:
        """What the calls of the project pass for a parameter, the default where they leave it out.

        Nothing where no call is seen, or where one passes what cannot be told (``*args``, ``**kwargs``).
        """
        if param.kind.startswith("*") or (position == 0 and takes_object(function)):
            return
        for file, given in self.calls_of.passed(path + function.name, function, param, position):
            if given is not None:
                yield file, given
            elif param.default is not None:
                yield path, param.default

    def default(self, path: str, expression: Expression) -> Expression | None:
        """The default of the parameter that an expression is: the likeliest value where no call is seen."""
        if isinstance(expression, Ref) and not expression.path:
            for root in expression.roots:
                if parameter := self._definitions.parameter(f"{path}{root}"):
                    return parameter.param.default
        return None

    @cached_property
    def events(self) -> EventCache:
        """What happens in each body of the project."""
        return EventCache(self._definitions, self.property_words, self._torch)

    @cached_property
    def calls_of(self) -> Callers:
        """Who calls which function of the project."""
        with self.modules.reads.apart():
            return Callers(self, self.events, self._memo)

    def attribute_values(self, owner: str, word: str) -> Iterator[tuple[str, Expression]]:
        """What the objects of a class are assigned to an attribute, in its methods and in its body, with the files."""
        for each in self.ancestry(owner):
            if ":" in each:
                path = path_of(each)
                for how, _, value in self.instance_attributes(each).get(word, ()):
                    if how == "=":
                        yield path, value
                for how, value in self.assigned(f"{each}.{word}"):
                    if how == "=":
                        yield path, value


def _concerns_few(path: str, before: Facts, after: Facts) -> bool:
    """Whether a change of a file leaves alone what is asked of all files together: the places in which modules are found,
    the words of options and properties, and the tables that decorators fill.
    """
    fields = ("options", "properties", "tables")
    same = all(getattr(before.summary, each) == getattr(after.summary, each) for each in fields)
    return same and places_of(path, before) == places_of(path, after)
