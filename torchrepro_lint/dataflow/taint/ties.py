"""Ties: keys that several elements share, so that a largest element or a sort takes them in the order in which they come.

A key that counts ties: ``max(set(words), key=words.count)``. So does the length of a text. Also here: sorts that every call takes.
"""

from __future__ import annotations

from torchrepro_lint.resolve.names import Names
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import known_argument
from torchrepro_lint.syntax.nodes import (
    Arg,
    Attribute,
    Call,
    Collection,
    Constant,
    Expression,
    ExpressionStatement,
    If,
    Lambda,
    Operation,
    Ref,
    Statement,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import in_project, last_word, path_of
from torchrepro_lint.syntax.use_def import UseDefIndex
from torchrepro_lint.syntax.visitor import last_identifier, subexpressions

# Calls that take a key.
KEYED_WORDS = frozenset({"max", "min", "sorted", "nlargest", "nsmallest"})
_KEYED = frozenset({"builtins.max", "builtins.min", "builtins.sorted", "heapq.nlargest", "heapq.nsmallest"})
_LOOKING_UP = frozenset({"get", "__getitem__"})
_COUNTERS = lazy_pattern(r"collections\.Counter(\(\))?(\.\w+\(\))?")
# Tables of numbers that several keys share, by their names.
_COUNTING_WORDS = frozenset(
    {"count", "counts", "counter", "df", "freq", "freqs", "frequency", "frequencies", "hist", "histogram"}
)
_COUNTING_WORDS |= {"votes", "occurrences"}


def takes_key(call: Call) -> bool:
    """Whether a call is written like a largest element or a sort by a key."""
    return last_identifier(call.func) in KEYED_WORDS and any(arg.keyword == "key" for arg in call.args)


def breaks_ties_by_order(names: Names, path: str, call: Call, *, of_set: bool) -> bool:
    """Whether a call takes the largest or smallest elements, or sorts, by a key that elements share.

    A length counts for a set: names of files that are listed are often numbered, and sorted by name before.
    """
    if not takes_key(call) or _KEYED.isdisjoint(names.names(path, call.func)):
        return False
    if has_tying_key(names, path, call) or _ranks_counts(names, path, call):
        return True
    return of_set and any(_is_length(names, path, arg.value) for arg in _keys(call))


def has_tying_key(names: Names, path: str, call: Call) -> bool:
    """Whether the key of a call counts something."""
    return any(_ties(names, path, arg.value) for arg in _keys(call))


def _ranks_counts(names: Names, path: str, call: Call) -> bool:
    """Whether the items of a table of counts are ordered by their counts: ``sorted(counts.items(), key=lambda item: item[1])``."""
    match call.args[0].value:
        case Call(func=Ref(path=(*before, "items")) as func, args=()):
            table = func._replace(path=tuple(before))
            return _counts(names, path, table) and any(_takes_count(names, path, arg.value) for arg in _keys(call))
    return False


def _takes_count(names: Names, path: str, key: Expression) -> bool:
    """Whether a key takes the second part of an item, and nothing else."""
    match key:
        case Lambda(function=function):
            return any(_is_second(each) for each in names.return_expressions(path + function))
        case Call(func=func, args=(Arg(value=Constant(value=1)),)):
            return last_identifier(func) == "itemgetter"
    return False


def _is_second(value: Expression) -> bool:
    match value:
        case Operation(op="-", operands=(inner,)):
            return _is_second(inner)
        case Subscript(value=Ref(path=()), indices=(Constant(value=1 | -1),)):
            return True
    return False


def _keys(call: Call) -> list[Arg]:
    return [arg for arg in call.args if arg.keyword == "key"]


def _is_length(names: Names, path: str, key: Expression) -> bool:
    if isinstance(key, Lambda):
        found = list(names.return_expressions(path + key.function))
        return bool(found) and all(isinstance(each, Call) and _is_length(names, path, each.func) for each in found)
    return "builtins.len" in names.names(path, key)


def _ties(names: Names, path: str, key: Expression) -> bool:
    match key:
        case Ref(path=(*before, word)) if before or key.roots:
            if word == "count":
                return True
            if word in _LOOKING_UP:
                return _counts(names, path, key._replace(path=tuple(before)))
        case Attribute(value=value, name=word):
            return word == "count" or (word in _LOOKING_UP and _counts(names, path, value))
        case Lambda(function=function):
            found = list(names.return_expressions(path + function))
            return bool(found) and all(_is_shared(names, path, each) for each in found)
    return False


def _is_shared(names: Names, path: str, value: Expression) -> bool:
    """Whether elements share the value of a key: a count."""
    match value:
        case Operation(op="-" | "+", operands=(inner,)):
            return _is_shared(names, path, inner)
        case Subscript(value=table):
            return _counts(names, path, table)
        case Call(func=func):
            return _ties(names, path, func)
    return False


def _counts(names: Names, path: str, table: Expression) -> bool:
    """Whether a table counts something, by its values or by its name."""
    if any(_COUNTERS.fullmatch(each) for each in names.names(path, table)):
        return True
    if isinstance(table, Ref) and _is_counting(last_identifier(table)):
        return True
    return any(
        isinstance(value, Call) and any(_COUNTERS.fullmatch(each) for each in names.names(file, value.func))
        for file, value in (names.values(path, table) if isinstance(table, Ref) else ())
    )


def _is_counting(name: str) -> bool:
    """Whether a table is named for numbers: ``word_counts``, ``n_words``."""
    words = name.split("_")
    return not _COUNTING_WORDS.isdisjoint(words) or "n" in words[:-1]


# Keys of a sort by which elements have another order on another machine, tie, or change between runs.
_UNSTABLE_KEYS = {
    "os.path.getmtime": "clock",
    "os.path.getctime": "clock",
    "os.path.getatime": "clock",
    "os.path.getsize": "size",
    "builtins.len": "size",
    "builtins.id": "address",
    "builtins.hash": "hash",
}
_UNSTABLE_FIELDS = {
    "st_mtime": "clock",
    "st_mtime_ns": "clock",
    "st_ctime": "clock",
    "st_ctime_ns": "clock",
    "st_atime": "clock",
    "st_birthtime": "clock",
    "st_size": "size",
}


def sort_key(names: Names, path: str, call: Call) -> str:
    """What the key of a sort makes of its order: ``clock`` (times of files), ``size`` (of files or names: equal ones stay as they
    were), ``address`` (``id``), ``hash``; empty for any other.
    """
    given = known_argument(call, None, "key")
    if given is None:
        return ""
    for name in names.names(path, given):
        if name in _UNSTABLE_KEYS:
            return _UNSTABLE_KEYS[name]
        for returned in names.return_expressions(name) if in_project(name) else ():
            return _of_key_value(names, path_of(name), returned)
    match given:
        case Lambda(function=function):
            return next((_of_key_value(names, path, each) for each in names.return_expressions(path + function)), "")
        case Call(args=(Arg(value=Constant(value=str(field))),)) if last_identifier(given.func) == "attrgetter":
            return _UNSTABLE_FIELDS.get(last_word(field), "")
    return ""


def _of_key_value(names: Names, path: str, value: Expression) -> str:
    """What one value of a key decides; of a tuple the first part, and an address or a hash anywhere in it."""
    parts = value.items if isinstance(value, Collection) and value.kind == "tuple" else (value,)
    found = [_of_part(names, path, part) if part is not None else "" for part in parts]
    for word in ("address", "hash"):
        if word in found:
            return word
    return "" if len(found) > 1 and found[0] == "size" else found[0] if found else ""


def _of_part(names: Names, path: str, value: Expression) -> str:
    looked_up = {each for part in subexpressions(value) for each in _keys_looked_up(part)}
    for each in subexpressions(value):
        match each:
            case Call(func=func):
                known = [_UNSTABLE_KEYS[name] for name in names.names(path, func) if name in _UNSTABLE_KEYS]
                if known and not (known[0] in ("address", "hash") and each in looked_up):
                    return known[0]
            case Ref(path=(*_, word)) | Attribute(name=word) if word in _UNSTABLE_FIELDS:
                return _UNSTABLE_FIELDS[word]
    return ""


def _keys_looked_up(value: Expression) -> tuple[Expression, ...]:
    """The keys by which a value is taken from a table: ``last_use[id(x)]``, ``last_use.get(id(x), 0)``."""
    match value:
        case Subscript(indices=keys):
            return keys
        case Call(args=(Arg(value=key), *_)) if last_identifier(value.func) == "get":
            return (key,)
    return ()


def is_overwritten(names: Names, path: str, spots: UseDefIndex, ref: Ref, after: int, read: Ref) -> bool:
    """Whether a branch that every call takes sorts or binds a variable again before a read: ``if ordered: names.sort()``."""
    kills = [each for root in ref.roots for each in spots.kills(root, ref.path)]
    there = spots.of(read) if kills else None
    if there is None:
        return False
    around = {block.key for block in there.blocks}
    for kill in kills:
        *outer, branch = kill.blocks
        is_between = after <= kill.at and kill.statement.end <= read.start and kill.function == there.function
        is_certain = branch.key not in around and not _has_key(kill.statement)
        if is_between and is_certain and around.issuperset(each.key for each in outer):
            match branch.owner:
                case If(test=test, start=start) if start >= after and _truth(names, path, test) is (branch.number == 0):
                    return True
    return False


def _has_key(statement: Statement) -> bool:
    """Whether a statement sorts a list by a key, which may tie: ``names.sort(key=os.path.getmtime)``."""
    return (
        isinstance(statement, ExpressionStatement) and isinstance(statement.value, Call) and bool(statement.value.args)
    )


def _truth(names: Names, path: str, test: Expression) -> bool | None:
    """What a test of a parameter gives for each known call of the function; None if it differs, or there may be other calls."""
    match test:
        case Operation(op="not", operands=(inner,)):
            answer = _truth(names, path, inner)
            return None if answer is None else not answer
        case Ref(roots=(root,), path=()) if (known := names.parameter(path + root)) and not names.assigned(path + root):
            name, calls = path + known.function.name, names.call_graph
            starred = any(arg.star for _, call in calls.of(name, known.function) for arg in call.args)
            if starred or calls.has_unknown_callers(name, known.function):
                return None
            given = [value for _, value in names.passed(path + root)]
            truths = {bool(each.value) if isinstance(each, Constant) else None for each in given}
            return truths.pop() if len(truths) == 1 else None
    return None
