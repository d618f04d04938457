"""Value sources: the expressions that a variable, an attribute, a parameter or a call's result may come from, through assignments,
arguments and returns: the middle layer of ``Names``, without an environment.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice

from torchrepro_lint import limits
from torchrepro_lint.catalogue.catalogue import frameworks, handed_parameters
from torchrepro_lint.catalogue.libraries import FLUENT_METHODS
from torchrepro_lint.query.database import query
from torchrepro_lint.query.memo_tables import MemoTable
from torchrepro_lint.resolve.call_graph import CallGraph
from torchrepro_lint.resolve.imports import ImportResolver
from torchrepro_lint.resolve.literal_texts import LiteralTexts
from torchrepro_lint.resolve.registries import Registries, argument_makers, made_arguments, registers_by_method
from torchrepro_lint.resolve.symbols import NAMES
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import accepts, known_argument, parameter_argument, takes_receiver
from torchrepro_lint.syntax.definitions import (
    EACH,
    SOME,
    Keys,
    unpacking_keys,
)
from torchrepro_lint.syntax.nodes import Call, Collection, Constant, Expression, Function, Param, Ref, Subscript
from torchrepro_lint.syntax.qualified_names import (
    Root,
    Symbol,
    Value,
    class_of,
    in_project,
    instance_value,
    is_instance,
    last_word,
    local_symbol,
    passes_call,
    path_of,
    project_classes,
    simple_name,
    split_call,
    split_name,
)
from torchrepro_lint.syntax.visitor import is_none

# A module that is made without a class of its own, to hold others.
PLAIN_MODULE = "torch.nn.Module()"
# Objects that keep the keyword arguments of their constructor as attributes.
_RECORDS = frozenset({"munch.Munch()", "types.SimpleNamespace()", "argparse.Namespace()", "easydict.EasyDict()"})
# An attribute of one of these, of a plain module, or of an element of a container of modules, which may be one.
_ON_PLAIN = lazy_pattern(
    rf"(?:torch\.nn\.Module(?:\(\)|(?:List|Dict)\(\)\[\])|(?P<record>{'|'.join(map(re.escape, sorted(_RECORDS)))}))"
    r"\.(?P<word>\w+)(?P<rest>(\.\w+)*)"
)

# Classes that an annotation gives for any object of a kind: they say nothing of what a call runs.
_ABSTRACT = frozenset({"torch.nn.Module", "torch.nn.modules.module.Module", "typing.Callable", "typing.Any"})
_ABSTRACT |= {"collections.abc.Callable", "builtins.object", "types.FunctionType"}
_ABSTRACT |= {f"torch.nn.modules.loss.{each}" for each in ("_Loss", "_WeightedLoss")}
# The methods of ``torch.nn.Module`` that run no forward, beside those that begin as ``named_`` and ``register_``.
_OWN_METHODS = FLUENT_METHODS | frozenset(
    {"apply", "type", "children", "modules", "buffers", "parameters", "state_dict", "load_state_dict", "zero_grad"}
    | {"extra_repr", "compile", "add_module", "T_destination", "dump_patches", "call_super_init", "ipu", "mtia"}
)


def is_abstract(name: Value) -> bool:
    """Whether a name is an object of a class that says nothing of what a call runs, or a method that its subclass has."""
    made, called, rest = split_call(name)
    if not called or made not in _ABSTRACT or passes_call(rest):
        return False
    word = simple_name(rest)
    is_own = word in _OWN_METHODS or word.startswith(("named_", "register_", "get_", "set_", "_"))
    return word == "__call__" or not is_own


# Bases whose methods nobody but the program calls.
_PLAIN_BASES = frozenset({"builtins.object", "abc.ABC", "torch.utils.data.Dataset", "torch.nn.Module"})


class Values(LiteralTexts):
    """The value sources of a project, on top of its literal texts."""

    def __init__(self, modules: ImportResolver, torch: str) -> None:
        super().__init__(modules, torch)
        self._behind: MemoTable[tuple[str, object, bool], tuple[tuple[str, Expression], ...]]
        self._behind = self.database.table("values", compare=True)
        self._arguments: MemoTable[Symbol, tuple[tuple[str, Expression], ...]]
        self._arguments = self.database.table("passed arguments", compare=True)

    @abstractmethod
    def _points_to(self, name: Value) -> tuple[Value, ...]:
        """The points-to set of a name: itself, or for a variable or parameter its values."""

    def values(self, path: str, expression: Expression) -> Iterable[tuple[str, Expression]]:
        """The sources of an expression, each with its file: a variable's values, else the expression itself.

        A parameter without arguments stands for itself, and so does every expression that is not followed.
        """
        return self._worked_out(path, expression, calls=False)

    def unpacked(self, path: str, name: Symbol, value: Expression) -> list[tuple[str, Expression]]:
        """The parts of a container that a variable gets, those under an option's literals if any are there; none of a function's result."""
        keys = self.unpacking(path, name[len(path) :], value)
        returned = isinstance(value, Call) and any(map(self.functions, self.names(path, value.func)))
        if not keys or keys == (EACH,) or keys[-1] is SOME or returned:
            return []
        found: list[tuple[str, Expression]] = []
        if isinstance(value, Subscript):
            words = self.literal_texts(path, value.indices[0]) if len(value.indices) == 1 else ()
            found = [each for word in words for each in self.elements(path, value.value, (word, *keys))]
        return found or [*self.elements(path, value, keys)]

    def values_through_calls(self, path: str, expression: Expression) -> Iterable[tuple[str, Expression]]:
        """``values``, and for a call of a function of the project the expressions that it returns."""
        return self._worked_out(path, expression, calls=True)

    def _worked_out(self, path: str, expression: Expression, *, calls: bool) -> Iterable[tuple[str, Expression]]:
        if not isinstance(expression, (Ref, Call) if calls else Ref):
            return ((path, expression),)
        # Equal references stand for the same, wherever they are in the file.
        what = expression.access_path if isinstance(expression, Ref) else expression
        key = path, what, calls
        found = self._solver.final_answer(self._behind, key, lambda: self._elsewhere(path, expression, calls=calls))
        return found or ((path, expression),)

    def _elsewhere(self, path: str, expression: Expression, *, calls: bool) -> tuple[tuple[str, Expression], ...]:
        """The sources of an expression; nothing where it stands for itself."""
        self.modules.reads.record_read(path)
        found = tuple(self._work_out(path, expression, calls=calls))
        return () if found == ((path, expression),) else found

    def _work_out(self, path: str, expression: Expression, *, calls: bool) -> Iterator[tuple[str, Expression]]:
        """Follow each variable and each call once, however many paths lead to it."""
        queue = [(path, expression)]
        seen: set[tuple[str, tuple[str, ...], tuple[str, ...]] | tuple[str, Call]] = set()
        while queue:
            file, value = queue.pop()
            found: list[tuple[str, Expression]] = []
            if isinstance(value, Ref):
                key = (file, value.roots, value.path)
                if key in seen:
                    continue
                seen.add(key)
                if len(seen) < limits.MAX_NAME_STEPS:
                    found = [pair for root in value.roots for pair in self._values_of(file, root, value.path)]
            elif calls and isinstance(value, Call) and (file, value) not in seen and len(seen) < limits.MAX_NAME_STEPS:
                seen.add((file, value))
                found = list(self._returned_values(file, value))
            if found:
                queue.extend(reversed(found))
            else:
                yield file, value

    def _returned_values(self, path: str, call: Call) -> Iterator[tuple[str, Expression]]:
        """The return expressions of the functions of the project that a call runs, and of ``__call__`` of an object of its classes."""
        for name in filter(in_project, self.names(path, call.func)):
            for run in self.methods(class_of(name), "__call__") if is_instance(name) else (name,):
                if in_project(run) and not self.is_generator(run):
                    yield from ((path_of(run), value) for value in self.return_expressions(run))

    def _values_of(self, path: str, root: Root, words: tuple[str, ...]) -> Iterator[tuple[str, Expression]]:
        for name in self.modules.resolve(path, root):
            file, colon, rest = split_name(name)
            if not colon:
                continue
            if not words:
                yield from ((file, value) for how, value in self.assigned(name) if how == "=")
                yield from self.passed(name)
            elif len(words) == 1 and not rest:
                for target in self.modules.attribute(file, words[0]) or ():
                    owner = path_of(target)
                    yield from ((owner, value) for how, value in self.assigned(target) if how == "=")
            elif len(words) == 1:
                is_class = bool(self.classes(name))
                found = (name,) if is_class else map(class_of, filter(in_project, self._points_to(name)))
                for owner in filter(self.classes, dict.fromkeys(found)):
                    yield from self.attribute_values(owner, words[0])
                yield from self._set_on(path, name, words[0]) if is_class else ()

    def _set_on(self, path: str, name: Symbol, word: str) -> Iterator[tuple[str, Expression]]:
        """What a file, and the file of a variable, set as an attribute of the object that the variable has: ``args.step = noise``."""
        for file in dict.fromkeys((path, path_of(name))):
            for target, value in self.events.attribute_stores(file, word):
                if len(target.path) == 1 and any(name in self.modules.resolve(file, root) for root in target.roots):
                    yield file, value

    def stored_in(self, path: str, owner: Value, word: str) -> Iterator[tuple[str, Expression]]:
        """What an object without a class of its own has under a name: a plain module what its file stores there, ``self.mid.block =
        Block()``, a record what any gets, ``nets = Munch(encoder=net)``, ``nets.decoder = net``.
        """
        if owner == PLAIN_MODULE:
            yield from ((path, value) for value in self._stored(path, word, owner))
        elif owner in _RECORDS:
            made = class_of(owner)
            named = self.call_graph.by_word(simple_name(made))
            calls = [(file, each) for file, each in named if made in self.names(file, each.func)]
            yield from ((file, it) for file, call in calls if (it := known_argument(call, None, word)) is not None)
            for file in sorted({file for file, _ in calls}):
                yield from ((file, value) for value in self._stored(file, word, owner))

    def _stored(self, path: str, word: str, owner: Value) -> Iterator[Expression]:
        """What a file stores in an attribute of an object with this name."""
        for target, value in self.events.attribute_stores(path, word):
            if owner in self.names(path, target._replace(path=target.path[:-1])):
                yield value

    def _of_plain(self, path: str, name: Value, words: tuple[str, ...]) -> Iterator[Value]:
        """The names that a chain of attributes of a name may stand for; those of a plain module, or a record, as they are stored."""
        for each in self.follow(name, words):
            found = _ON_PLAIN.fullmatch(each)
            rest = tuple(filter(None, found["rest"].split("."))) if found else ()
            owner = (found["record"] or PLAIN_MODULE) if found else ""
            kept = self.stored_in(path, owner, found["word"]) if found else ()
            held = [one for file, it in kept for made in self.names(file, it) for one in self.follow(made, rest)]
            yield from held or (each,)

    def passed(self, name: Symbol) -> tuple[tuple[str, Expression], ...]:
        """The arguments that calls pass for a parameter, its default where they leave it out; see ``values``."""
        return self._solver.final_answer(self._arguments, name, lambda: self._find_passed(name))

    def _find_passed(self, name: Symbol) -> tuple[tuple[str, Expression], ...]:
        self.modules.reads.record_read(path_of(name))
        found = self.parameter(name)
        return tuple(self._passed(path_of(name), *found)) if found is not None else ()

    def _passed(self, path: str, function: Function, param: Param, position: int) -> Iterator[tuple[str, Expression]]:
        """The arguments that calls pass for a parameter, its default where they leave it out.

        Nothing where no call is seen, or where one passes ``*args`` or ``**kwargs``.
        """
        if param.kind.startswith("*") or (position == 0 and takes_receiver(function)):
            return
        passed = [*self.call_graph.passed(path + function.name, function, position)]
        if not passed and param.default is not None and self._is_left_alone(path + function.name, function, position):
            yield path, param.default
        for file, given in passed:
            if given is not None:
                yield file, given
            elif param.default is not None:
                yield path, param.default
        if function.owner in self._configured_classes and function.name[-9:] == ".__init__":
            yield from self.configurations.arguments(f"{path}{function.owner}", param.name)
        if function.owner and param.name in handed_parameters():
            yield from self._handed(f"{path}{function.owner}", param.name)
        if function.decorators:
            name, owner = path + function.name, f"{path}{function.owner}" if function.owner else ""
            for each in (owner, *self.subclasses(owner)):
                yield from made_arguments(self, argument_makers(self, name, each), param.name)

    def _is_left_alone(self, name: Symbol, function: Function, position: int) -> bool:
        """Whether all calls that may be of a method, by its name and their arguments, leave a parameter to its default.

        Not of a class that a library may call, and not by a name that has many calls.
        """
        word, owner = simple_name(function.name), f"{path_of(name)}{function.owner}"
        if not function.owner or word.startswith("__") or self.call_graph.may_be_passed(name, function):
            return False
        family = self.ancestry(owner)
        if not all(in_project(each) or each in _PLAIN_BASES for each in family):
            return False
        calls = [*islice(self.call_graph.by_word(word), limits.MAX_NAMED_CALLS + 1)]
        named = [(self.names(file, call.func), call) for file, call in calls if accepts(function, call)]
        fitting = [
            call
            for names, call in named
            if not names or any(not in_project(each) or self.owner(each) in family for each in names)
        ]
        given = [parameter_argument(call, function, position, bound=takes_receiver(function)) for call in fitting]
        return 0 < len(calls) <= limits.MAX_NAMED_CALLS and bool(given) and not any(given)

    def _handed(self, owner: Symbol, word: str) -> Iterator[tuple[str, Expression]]:
        """What the constructor of a framework's class gets and hands to methods of subclasses: the ``model`` of ``compute_loss``."""
        for each in (owner, *self.subclasses(owner)):
            bases = [base for base in self.ancestry(each) if not in_project(base)]
            row = next((row for base in bases for row in frameworks().of(base) if word in row.hands), None)
            if row is not None:
                at, calls = row.signature.parameters.index(word), self.call_graph.constructor_calls(each)
                yield from ((file, it) for file, call in calls if (it := known_argument(call, at, word)) is not None)

    def default(self, path: str, expression: Expression) -> Expression | None:
        """The default of the parameter that an expression names: the likeliest value where no call is seen."""
        roots = expression.roots if isinstance(expression, Ref) and not expression.path else ()
        return next((found.param.default for root in roots if (found := self.parameter(f"{path}{root}"))), None)

    @cached_property
    def call_graph(self) -> CallGraph:
        """The call graph of the project."""
        with self.modules.reads.untracked():
            return CallGraph(self, self.events)

    @query(cutoff=True, cycle=NAMES)
    def returns(self, name: Symbol) -> Iterator[Value]:
        """The names that a function of the project may return; a generator's elements have none."""
        if not self.is_generator(name):
            for path, value in self._returned_by(name):
                yield from self.names(path, value)

    def _returned_by(self, name: Symbol) -> list[tuple[str, Expression]]:
        """What a function returns; for a method that a base class leaves to subclasses, what theirs return."""
        found = [(path_of(name), value) for value in self.return_expressions(name)]
        if any(not is_none(value) for _, value in found) or not (owner := self.owner(name)):
            return found
        own = {each for one in self.subclasses(owner) for each in self.methods(one, simple_name(name))} - {name}
        return [*found, *((path_of(each), it) for each in sorted(own) for it in self.return_expressions(each))]

    # --- tables, tuples and texts ------------------------------------------------------------------------------------

    def items(self, path: str, display: Collection, home: str, index: Expression | None) -> Iterator[Value]:
        """The elements of a display of a file under an index, which is an expression of ``home``; without one, what iteration gives."""
        key = index.value if isinstance(index, Constant) else None
        if display.kind != "dict":
            items = [item for item in display.items if item is not None]
            if type(key) is int and -len(items) <= key < len(items):
                items = [items[key]]
        elif index is None:
            items = [name for name in display.items[::2] if name is not None]
        else:
            pairs = list(zip(display.items[::2], display.items[1::2], strict=True))
            if all(isinstance(value, Constant) for _, value in pairs):
                return  # literals have no names, so the key need not be followed
            known = () if key is not None else self.literal_texts(home, index, whole=True)
            keys = known if key is None else (key,)
            picked = [v for k, v in pairs if isinstance(k, Constant) and k.value in keys]
            items = [v for v in (picked or [v for _, v in pairs]) if v is not None]
        for item in items:
            yield from self.names(path, item)

    def entries(self, path: str, container: Expression, keys: Keys) -> Iterator[tuple[str, Expression, Keys]]:
        """What is seen to be put into a container under the first of some keys; into that of an attribute by all methods of the class."""
        yield from ((path, *each) for each in self.events.entries(path, container, keys))
        for home, variable in self.modules.imported_variables(path, container) if isinstance(container, Ref) else ():
            yield from ((home, *each) for each in self.events.entries(home, variable, keys))
        if isinstance(container, Ref) and len(container.path) == 1:
            for owner in project_classes(self.names(path, container._replace(path=()))):
                yield from self.attribute_entries(owner, container.path[0], keys)

    def is_dictionary(self, owner: Symbol) -> bool:
        """Whether a class of the project is a dictionary that takes what ``dict`` takes."""
        return "builtins.dict" in self.ancestry(owner) and not any(map(self.functions, self.methods(owner, "__init__")))

    def mapped(self, path: str, mapping: Expression, key: str) -> Iterator[tuple[str, Expression]]:
        """What an object of a dictionary class of the project may have under a key: what constructors of the class get by that name, and
        what is stored in such an attribute where they are called, if attributes are entries: ``options = EasyDict(); options.name = "net"``.
        What a parameter may be is not asked, since that may lead back to the parameter which the key is for.
        """
        owners = [each for each in self.subclasses("builtins.dict") if self.is_dictionary(each)]
        parameters = (self.parameter(path + root) for root in (mapping.roots if isinstance(mapping, Ref) else ()))
        if not owners or any(each is not None and each.param.kind == "**" for each in parameters):
            return
        names = self.names(path, mapping)
        for owner in (each for each in owners if not names or instance_value(each) in names):
            calls = [*self.call_graph.constructor_calls(owner)]
            yield from ((file, it) for file, call in calls if (it := known_argument(call, None, key)) is not None)
            for file in sorted({file for file, _ in calls}) if self.methods(owner, "__setattr__") else ():
                yield from ((file, value) for value in self._stored_below(file, owner, key))

    def _stored_below(self, path: str, owner: Symbol, word: str) -> Iterator[Expression]:
        """What a file stores in an attribute of objects of a class, or of parts of them: ``options.network.name = "net"``."""
        for target, value in self.events.attribute_stores(path, word):
            if instance_value(owner) in self.names(path, target._replace(path=())):
                yield value

    def attribute_unpacking(self, method: Symbol, word: str, value: Expression) -> Keys | None:
        """The keys by which a method's receiver gets a part of a value for an attribute, or None; see ``unpacking_keys``."""
        for function in self.functions(method):
            own = local_symbol(function.name, function.params[0].name)
            if keys := unpacking_keys(function.body, own, value, (word,)):
                return keys
        return None

    @cached_property
    def _has_registries(self) -> bool:
        """Whether the project has registries."""
        return any(each.tables or registers_by_method(each) for _, each in self.modules.summaries())

    @cached_property
    def _configured_classes(self) -> frozenset[str]:
        """The words, each after a colon, by which configuration files may name classes."""
        return frozenset(f":{last_word(text)}" for each in self.modules.configurations for _, text in each.texts)

    @cached_property
    def registry(self) -> Registries:
        """The registries of the project: tables that decorators fill."""
        return Registries(self)
