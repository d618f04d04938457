"""Argument binding: which argument of a call binds to a parameter, which parameter receives an argument, and what a signature is.

Also here: the call that a thread, a process or a pool makes of the arguments that it is started with, and the calls of computed names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile

from torchrepro_lint.syntax.definitions import bound_references, targets
from torchrepro_lint.syntax.nodes import (
    Arg,
    Assign,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    ExpressionStatement,
    Function,
    Operation,
    Param,
    Ref,
    SimpleStatement,
    Subscript,
    SyntaxTree,
)
from torchrepro_lint.syntax.qualified_names import is_super, local_symbol
from torchrepro_lint.syntax.visitor import (
    body_expressions,
    is_starred,
    last_identifier,
    numbered_bodies,
    statements,
    subexpressions,
)

# Stands for an argument of which nothing is known.
UNKNOWN_ARGUMENT = Ref(0, 0, (), (), 0)
# Operators that compare their operands, and call nothing.
COMPARING = frozenset({"is", "is not", "==", "!=", "in", "not in"})


def passing_argument(call: Call, position: int | None, *keywords: str) -> Arg | None:
    """Argument binding of one parameter: the argument that passes it, by keyword or at a position; None if it is left out.

    A starred argument where that may pass it: ``*`` any position from its own on, ``**`` any parameter that nothing else passes.
    """
    left = -1 if position is None else position
    inorder = rest = None
    for arg in call.args:  # one loop: this is asked of every call of every function
        if arg.keyword is not None:
            if arg.keyword in keywords:
                return arg
            continue
        if left >= 0 and inorder is None and (arg.star or left == 0):
            inorder = arg
        left -= 1
        if arg.star == "**" and rest is None:
            rest = arg
    return inorder or rest


def bound_argument(call: Call, position: int | None, *keywords: str) -> Expression | None:
    """What a call passes for a parameter; ``UNKNOWN_ARGUMENT`` if a star may pass it, None if it is left out."""
    arg = passing_argument(call, position, *keywords)
    return None if arg is None else UNKNOWN_ARGUMENT if arg.star else arg.value


def known_argument(call: Call, position: int | None, *keywords: str) -> Expression | None:
    """What a call passes for a parameter; None if it is left out or a star may pass it."""
    arg = passing_argument(call, position, *keywords)
    return None if arg is None or arg.star else arg.value


def parameter_argument(call: Call, function: Function, position: int, *, bound: bool) -> Arg | None:
    """Argument binding of a function's parameter at a position, as ``passing_argument`` has it; for no ``*`` or ``**`` parameter.

    ``bound`` says whether the call passes the first parameter implicitly, as that of a method.
    """
    param = function.params[position]
    words = () if param.kind == "/" else (param.name,)
    return passing_argument(call, None if param.kind == "kw" else position - bound, *words)


def receiving_parameters(function: Function, call: Call, *, bound: bool) -> Iterator[tuple[Arg, Param]]:
    """Argument binding from the side of the call: each argument with the parameter that receives it.

    A ``*`` or ``**`` parameter receives what no other does. Left out is what stands in a star, or in order behind one: any may receive it.
    """
    inorder = iter([param for param in function.params if param.kind in ("", "/")][bound:])
    named = {param.name: param for param in function.params if param.kind in ("", "kw")}
    excess = {param.kind: param for param in function.params}
    unknown = False
    for arg in call.args:
        unknown = unknown or arg.star == "*"
        if arg.keyword is not None:
            param = named.get(arg.keyword) or excess.get("**")
        else:
            param = None if unknown or arg.star else next(inorder, None) or excess.get("*")
        if param is not None:
            yield arg, param


def accepts(function: Function, call: Call, *, bound: bool = True) -> bool:
    """Whether a call without stars binds all of its arguments, and all parameters that a function requires; ``bound``: of a method."""
    skip = bound and takes_receiver(function)
    received = [*receiving_parameters(function, call, bound=skip)]
    required = {each.name for each in function.params[skip:] if each.default is None and "*" not in each.kind}
    fits = required <= {param.name for _, param in received} and len(received) == len(call.args)
    return fits or any(arg.star for arg in call.args)


# The positions of the function, of its arguments and of its named ones, in the calls that start it in a thread or process; a pool
# starts its initializer in each.
LAUNCHES = {
    "Thread": (1, 3, 4),
    "Process": (1, 3, 4),
    "Timer": (1, 2, 3),
    "apply_async": (0, 1, 2),
    "spawn": (0, 1, None),
    "start_processes": (0, 1, None),
    "Pool": (1, 2, None),
    "ThreadPool": (1, 2, None),
    "ProcessPoolExecutor": (2, 3, None),
    "ThreadPoolExecutor": (2, 3, None),
    "starmap": (0, 1, None),
    "starmap_async": (0, 1, None),
}
_PASSING_RANK = frozenset({"spawn", "start_processes"})
# Methods of datasets that call a function for each row, with ``fn_kwargs`` as its named arguments.
_MAPPING_ROWS = frozenset({"map", "filter"})
# The words of the calls that start a function with arguments.
STARTING = (*LAUNCHES, *sorted(_MAPPING_ROWS))


def launched_call(call: Call) -> Call | None:
    """The call that a thread, a process or a pool makes: ``train(data)`` of ``Thread(target=train, args=(data,))`` and of
    ``submit(train, data)``. Starred is what it may pass otherwise, such as an item of what ``map`` goes over.
    """
    word = last_identifier(call.func)
    places = LAUNCHES.get("Process" if word.endswith("Process") else word)
    function = passing_argument(call, places[0] if places else 0, "target", "fn", "func", "function", "initializer")
    if function is None or function.star:
        return None
    unknown = Arg(call.end, call.end, None, "*", UNKNOWN_ARGUMENT)
    if places is not None:
        rank = (unknown._replace(star=""),) if word in _PASSING_RANK else ()
        packed = passing_argument(call, places[1], "args", "initargs")
        packed = _each_tuple(packed, unknown) if word.startswith("starmap") else packed
        named = passing_argument(call, places[2], "kwargs", "kwds")
        args = (*rank, *_unpacked(packed, "*"), *_unpacked(named, "**"))
    else:
        args = tuple([arg for arg in call.args if arg != function]) if word == "submit" else (unknown,)
        args += tuple(_unpacked(_row_arguments(call), "**"))
    return call._replace(func=function.value, args=args)


def given_function(call: Call, word: str) -> Expression | None:
    """The function that a call of ``partial`` or of a launcher gets, or that of a dataset which passes it arguments beside each row."""
    if word == "partial":
        return call.args[0].value if call.args and not call.args[0].star else None
    started = launched_call(call) if word not in _MAPPING_ROWS or _row_arguments(call) is not None else None
    return started.func if started is not None else None


def _row_arguments(call: Call) -> Arg | None:
    """The argument whose entries a dataset passes beside each row: ``data.map(tokenize, fn_kwargs={"tokenizer": tokenizer})``."""
    named = (arg for arg in call.args if arg.keyword == "fn_kwargs")
    return next(named, None) if last_identifier(call.func) in _MAPPING_ROWS else None


def _each_tuple(arg: Arg | None, unknown: Arg) -> Arg:
    """The tuples of arguments that ``starmap`` goes over, where a comprehension makes them all alike; else what is unknown."""
    match arg:
        case Arg(star="", value=Comprehension(kind="list" | "generator", elements=(element,))):
            return arg._replace(value=element)
    return unknown


def _unpacked(arg: Arg | None, star: str) -> Iterator[Arg]:
    """The arguments in a tuple or dictionary."""
    match arg:
        case Arg(star="", value=Collection(kind="tuple" | "list", items=items)) if star == "*":
            for item in items:
                if isinstance(item, Operation) and is_starred(item):
                    yield Arg(item.start, item.end, None, "*", item.operands[0])
                elif item is not None:
                    yield Arg(item.start, item.end, None, "", item)
        case Arg(star="", value=Collection(kind="dict", items=items)) if star == "**":
            for key, item in zip(items[::2], items[1::2], strict=True):
                if item is not None:
                    word = str(key.value) if isinstance(key, Constant) else None
                    yield Arg(item.start, item.end, word, "" if word else "**", item)
        case Arg():
            yield arg._replace(keyword=None, star=star)


def entries_of_display(value: Expression) -> dict[str | int, Expression] | None:
    """The entries of a display by position, up to one with a star, or by key; None of others, or where a key is not literal."""
    match value:
        case Collection(kind="dict", items=items):
            keys = [key.value if isinstance(key, Constant) else None for key in items[::2]]
            return None if None in keys else dict(zip(keys, items[1::2], strict=True))  # type: ignore[arg-type]
        case Collection(kind="tuple" | "list", items=items):
            return dict(enumerate(takewhile(lambda each: each is not None and not is_starred(each), items)))  # type: ignore[arg-type]
        case Call(func=Ref(roots=("builtins.dict",), path=()), args=args) if all(arg.keyword for arg in args):
            return {arg.keyword: arg.value for arg in args if arg.keyword}
    return None


def compare_only(functions: Iterable[Function]) -> bool:
    """Whether there are functions that do nothing but compare their argument: ``return value is not None``."""
    kinds = {_compares_only(each) for each in functions}
    return kinds == {True}


def _compares_only(function: Function) -> bool:
    match function:
        case Function(params=(_,), body=(SimpleStatement(kind="return", values=(Operation(op=op, operands=parts),)),)):
            return op in COMPARING and all(isinstance(each, Ref | Constant) for each in parts)
    return False


def takes_receiver(function: Function) -> bool:
    """Whether the first parameter of a function is a receiver: the object, or the class, of which it is a method."""
    return bool(function.owner) and not _is_decorated(function, "builtins.staticmethod")


def is_classmethod(function: Function) -> bool:
    """Whether a function is a class method."""
    return _is_decorated(function, "builtins.classmethod")


def _is_decorated(function: Function, name: str) -> bool:
    return any(isinstance(each, Ref) and each.roots == (name,) for each in function.decorators)


def passes_self(call: Expression) -> bool:
    """Whether a call is ``Base.__init__(self, ...)``."""
    match call:
        case Call(func=Ref(path=(*_, "__init__")), args=(first, *_)):
            return first.keyword is None and not first.star
    return False


def base_constructor_calls(function: Function) -> Iterator[Call]:
    """The calls by which a constructor runs that of a base class, without ``self``: ``super().__init__(...)``, ``Base.__init__(self, ...)``."""
    for statement in statements(function.body):
        value = statement.value if isinstance(statement, ExpressionStatement) else None
        if isinstance(value, Call) and last_identifier(value.func) == "__init__":
            yield without_self(value)


def without_self(call: Call) -> Call:
    """The call without an explicit ``self``."""
    return call._replace(args=call.args[1:]) if passes_self(call) else call


def call_with_key(indexed: Subscript) -> Call:
    """``rows[key]`` as a call with the key."""
    index = indexed.indices[0]
    arg = Arg(index.start, index.end, None, "", index)
    return Call(indexed.start, indexed.end, indexed.value, (arg,), index.start)


def computed_callees(facts: SyntaxTree, is_module: Callable[[Ref], bool]) -> tuple[str, ...]:
    """The words of what a file may call by a computed name of a module: variables that hold what ``getattr`` gives, and the empty word,
    of a call's result.
    """
    words = set[str]()
    for number in facts.bodies_calling("getattr"):
        some = numbered_bodies(facts, number)
        for each in (statement for body in some for statement in statements(body)):
            match each:
                case Assign(targets=(Ref(path=()) as target,), value=Call() as read) if _reads(read, is_module):
                    words.add(last_identifier(target))
        called = (each.func for body in some for each in body_expressions(body) if isinstance(each, Call))
        if any(isinstance(func, Call) and _reads(func, is_module) for func in called):
            words.add("")
    return tuple(sorted(words))


def _reads(read: Call, is_module: Callable[[Ref], bool]) -> bool:
    """Whether a call is ``getattr`` of a module."""
    match read:
        case Call(func=func, args=(Arg(value=Ref() as holder), *_)):
            return last_identifier(func) == "getattr" and is_module(holder)
    return False


def values_of_parameters(
    own: str, function: Function, call: Call, passed: Iterable[tuple[Param, Arg]]
) -> Mapping[str, Expression]:
    """What a call passes for the parameters of a function (``own``: its name) that it binds nowhere else, by their names."""
    written = (each for one in statements(function.body) for each in targets(one))
    bound = {root for each in written for part in bound_references(each) if not part.path for root in part.roots}
    given = {param: arg.value for param, arg in passed if param in function.params and not arg.star}
    left_out = () if any(arg.star for arg in call.args) else function.params
    defaults = {param: param.default for param in left_out if isinstance(param.default, Constant)}
    values = {local_symbol(own, param.name): value for param, value in {**defaults, **given}.items() if value}
    return {root: value for root, value in values.items() if root not in bound}


def with_values(test: Expression, values: Mapping[str, Expression]) -> Expression | None:
    """A test of parameters with what is passed for them; None if it asks for anything else."""
    match test:
        case Constant():
            return test
        case Ref(roots=(root,), path=()):
            return values.get(root)
        case Operation(op="not" | "and" | "or" | "is" | "is not" | "==" | "!=", operands=operands):
            parts = [with_values(each, values) for each in operands]
            known = tuple(each for each in parts if each is not None)
            return test._replace(operands=known) if len(known) == len(parts) else None
    return None


# Methods that give the entries of a table, or the table, whatever its keys are.
_GIVING_ALL = frozenset({"values", "items", "pop", "popitem", "copy", "setdefault", "__getitem__", "__iter__"})


def receiver_giving_all(func: Expression) -> Ref | None:
    """The table whose entries a call takes without a key, ``TABLE`` of ``TABLE.items()``; None for other callees."""
    match func:
        case Ref(path=(*before, word)) if word in _GIVING_ALL:
            return func._replace(path=tuple(before))
    return None


def uses_receiver(function: Function) -> bool:
    """Whether a method names its own object: ``self.append(layer)``, ``self.flat = nn.Flatten()``."""
    receiver = local_symbol(function.name, function.params[0].name) if function.params else ""
    places = (each for statement in statements(function.body) for each in targets(statement))
    within = [part for each in (*body_expressions(function.body), *places) for part in subexpressions(each)]
    calls = [call for call in within if isinstance(call, Call)]
    bases = (call for call in calls if isinstance(call.func, Ref) and any(map(is_super, call.func.roots)))
    passed = {arg.value for call in bases for arg in call.args}
    return any(isinstance(each, Ref) and receiver in each.roots and each not in passed for each in within)


def formatted_values(value: Expression) -> Iterator[Expression]:
    """The values that a printed text is made of: of ``"loss {}".format(loss)``, ``"%s" % loss``, an f-string."""
    match value:
        case Call(func=Attribute(value=Constant(), name="format"), args=args):
            yield from (arg.value for arg in args)
        case Operation(op="%", operands=(Constant(), Collection(items=items))):
            yield from (each for each in items if each is not None)
        case Operation(op="f" | "%" | "+", operands=operands):
            yield from operands
        case _:
            yield value
