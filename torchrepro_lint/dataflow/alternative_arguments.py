"""Forwarded arguments: what ``*args`` and ``**kwargs`` hold in a call.

They hold the arguments of the function around the call, the entries of a dictionary, or a section of a configuration file
with what the program stores in it. With them, the alternative argument environments of a call: one for each value that a
variable among its arguments may have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import product
from typing import TYPE_CHECKING

from torchrepro_lint import limits
from torchrepro_lint.catalogue.conditions import ArgumentReader, argument_reader, is_unknown_argument
from torchrepro_lint.dataflow.constants import written_value
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.resolve.configurations import Found
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.syntax.binding import UNKNOWN_ARGUMENT, receiving_parameters, takes_receiver
from torchrepro_lint.syntax.cli_options import ANY_KEY
from torchrepro_lint.syntax.definitions import mutation_sites
from torchrepro_lint.syntax.nodes import Arg, Attribute, Call, Constant, Expression, Function, Operation, Ref
from torchrepro_lint.syntax.nodes import Collection as Display
from torchrepro_lint.syntax.qualified_names import constructed_class, enclosing_function, local_symbol, path_of
from torchrepro_lint.syntax.scopes import functions_around
from torchrepro_lint.syntax.visitor import blocks, body_expressions

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.rows import Signature
    from torchrepro_lint.dataflow.value_sources import ValueFlow
    from torchrepro_lint.resolve.program_index import CallSite, ProgramIndex


def keywords_not_forwarded(project: ProgramIndex, site: CallSite) -> frozenset[str]:
    """The keywords that a call cannot get through ``**options``: the other parameters of the function whose ``**options`` they
    are. Empty if the function does more with them than forward them.
    """
    double = next((arg.value for arg in site.call.args if arg.star == "**"), None)
    functions = project.resolver.functions(site.function)
    if not isinstance(double, Ref) or double.path or len(functions) != 1:
        return frozenset()
    rest = next((param for param in functions[0].params if param.kind == "**"), None)
    own = "" if rest is None else local_symbol(functions[0].name, rest.name)
    if double.roots != (own,) or any(_other_uses(functions[0], own)):
        return frozenset()
    return frozenset(each.name for each in functions[0].params if each != rest)


def with_forwarded_arguments(project: ProgramIndex, site: CallSite, depth: int = 0) -> list[Call]:
    """The call once for each call of its function, with the arguments that this call forwards through stars, which may be those of its
    own callers.

    A constructor may store them as attributes of ``self``. Arguments that are no literals become unknown. Empty if a star
    may hold something else.
    """
    path = path_of(site.function)
    star_arguments = {arg.star: arg.value for arg in site.call.args if arg.star}
    owners = [_owner(project, path, star, value) for star, value in star_arguments.items()]
    if not owners or owners[0] is None or any(each != owners[0] for each in owners):
        return []
    called = path + constructed_class(owners[0].name)  # a constructor is called by its class
    sites = [each for _, each in project.sites_of(called)]
    deeper = depth < limits.MAX_HANDED_ON and len(sites) <= limits.MAX_ALTERNATIVE_CALLS
    forwarded = [with_forwarded_arguments(project, each, depth + 1) if deeper else [] for each in sites]
    calls = [call for each, found in zip(sites, forwarded, strict=True) for call in found or [each.call]]
    if (
        not calls
        or len(calls) > limits.MAX_ALTERNATIVE_CALLS
        or any(arg.star == "*" for call in calls for arg in call.args)
    ):
        return []
    return list(dict.fromkeys(_with_arguments_of(site.call, owners[0], call) for call in calls))


def _owner(project: ProgramIndex, path: str, star: str, value: Expression) -> Function | None:
    """The function whose own ``*values`` or ``**options`` a value is, if it does nothing else with them."""
    if not isinstance(value, Ref):
        return None
    match [each for _, each in project.resolver.values(path, value)]:
        case [Ref(roots=(root,), path=())]:
            pass
        case _:
            return None
    functions = project.resolver.functions(path + enclosing_function(root))
    if len(functions) != 1 or not any(
        root.endswith(f".{each.name}") and each.kind == star for each in functions[0].params
    ):
        return None
    kept = len(value.path) == 1 and functions[0].name.endswith(".__init__")
    others = list(_other_uses(functions[0], root)) if star == "**" else []
    return functions[0] if len(others) <= kept and (kept or not value.path) else None


def _with_arguments_of(call: Call, function: Function, outer: Call) -> Call:
    """The call, its stars replaced by the arguments that ``outer`` passes to the function around it."""
    received = receiving_parameters(function, outer, bound=takes_receiver(function))
    passed = [(param.kind, arg) for arg, param in received] + [("**", arg) for arg in outer.args if arg.star]
    args = tuple(
        new
        for arg in call.args
        for new in ([_as_seen_from(one, call) for kind, one in passed if kind == arg.star] if arg.star else [arg])
    )
    return call._replace(args=args)


def _as_seen_from(arg: Arg, call: Call) -> Arg:
    value = arg.value if isinstance(arg.value, Constant) else Ref(call.start, call.end, (), (), call.end)
    return Arg(call.start, call.end, arg.keyword, arg.star, value._replace(start=call.start, end=call.end))


def _other_uses(function: Function, variable: str) -> Iterator[Ref]:
    """The references to a variable, except those that a call receives through ``**``."""
    inside = list(body_expressions(function.body))
    forwarded = {arg.value for each in inside if isinstance(each, Call) for arg in each.args if arg.star == "**"}
    yield from (each for each in inside if isinstance(each, Ref) and variable in each.roots and each not in forwarded)


def alternative_arguments(
    project: ValueFlow, path: str, spelling: Signature, site: CallSite, subjects: Collection[str]
) -> Iterator[ArgumentReader]:
    """The alternative arguments of a call: one reading for each combination of values of the arguments ``subjects``."""
    own = keywords_not_forwarded(project, site)
    for call in with_forwarded_arguments(project, site) or _with_keywords_expanded(project, path, site.call):
        read = _without(own, argument_reader(spelling, call))
        words = [word for word in (*spelling.parameters, *spelling.keywords) if word in subjects]
        found = {word: values for word in words if (values := _alternative_values(project, path, site, read(word)))}
        if not found or len(found) > limits.MAX_ALTERNATIVE_VARIABLES:
            yield read
            continue
        for chosen in product(*found.values()):
            given = dict(zip(found, chosen, strict=True))
            yield lambda name, read=read, given=given: given.get(name) or read(name)  # type: ignore[misc]


def _without(own: frozenset[str], read: ArgumentReader) -> ArgumentReader:
    """The arguments without those of these names that only a star could pass."""
    return (lambda word: None if word in own and is_unknown_argument(read(word)) else read(word)) if own else read


def _with_keywords_expanded(project: ValueFlow, path: str, call: Call) -> Iterator[Call]:
    """The call with ``**options`` expanded: once for each dictionary it may be, if all are displays."""
    double = next((arg for arg in call.args if arg.star == "**"), None)
    dicts = [] if double is None else [_items(each) for _, each in project.values(path, double.value)]
    if double is None or not dicts or None in dicts:
        yield call
        return
    for items in dicts:
        plain = tuple(arg for arg in call.args if arg != double)
        yield call._replace(args=(*plain, *(Arg(each.start, each.end, word, "", each) for word, each in items or ())))


def _items(display: Expression) -> list[tuple[str, Expression]] | None:
    """The items of a dictionary whose keys are all literal, ``{"mode": mode}`` or ``dict(mode=mode)``; else None."""
    match display:
        case Display(kind="dict", items=items):
            pairs = list(zip(items[::2], items[1::2], strict=True))
            words = [key.value for key, _ in pairs if isinstance(key, Constant) and isinstance(key.value, str)]
            return [(w, v) for w, (_, v) in zip(words, pairs, strict=True) if v] if len(words) == len(pairs) else None
        case Call(func=Ref(roots=("builtins.dict",), path=()), args=args) if all(arg.keyword for arg in args):
            return [(arg.keyword or "", arg.value) for arg in args]
    return None


def _alternative_values(project: ValueFlow, path: str, site: CallSite, value: Expression | None) -> list[Expression]:
    """The values that an argument may have: those that a path condition admits, else all that are assigned.

    Empty for a literal. The default of a parameter counts if a call passes something unknown.
    """
    if not isinstance(value, Ref | Operation) or (isinstance(value, Ref) and not value.roots):
        return []
    if isinstance(value, Ref):
        for guard in reversed(site.guards):
            if guard.kind == "if" and (admitted := list(_values_admitted(project, path, guard.value, value))):
                return admitted
    found = list(_leaves(project, path, value))
    default = project.resolver.default(path, value)
    default = (_literal(project, path, default) or default) if default is not None else None
    if default is not None and not all(isinstance(each, Constant | Display) for each in found):
        found.append(default)
    return list(dict.fromkeys(found))[: limits.MAX_ALTERNATIVE_VALUES]


def _leaves(project: ValueFlow, path: str, value: Expression, depth: int = 0) -> Iterator[Expression]:
    """The values of variables, and of both branches of conditional expressions."""
    resolver = project.resolver
    for file, each in project.values(path, value):
        match each:
            case Operation(op="if", operands=(_, *branches)) | Operation(op="or", operands=branches) if (
                depth < limits.MAX_ALTERNATIVE_DEPTH
            ):
                for branch in branches:
                    yield from _leaves(project, file, branch, depth + 1)
            case Constant() | Display():
                yield each
            case _:
                default = resolver.default(file, each) or _default_of_lookup(each)
                yield _literal(project, file, each) or (_literal(project, file, default) if default else None) or each


def _default_of_lookup(value: Expression) -> Expression | None:
    """The default of a lookup: ``options.pop("mode", "bilinear")``."""
    match value:
        case Call(
            func=Ref(path=(*_, "get" | "pop")) | Attribute(name="get" | "pop"), args=(_, Arg(star="", value=given))
        ):
            return given
    return None


def _literal(project: ValueFlow, path: str, value: Expression) -> Expression | None:
    """The constant that type inference finds for a value, a display unchanged; None if there is none."""
    if isinstance(value, Constant | Display):
        return value
    known = type_inference(project).of(path, value).value
    return None if known is None else Constant(value.start, value.end, known)


def _values_admitted(project: ValueFlow, path: str, test: Expression, value: Ref) -> Iterator[Expression]:
    """The constants that a test admits: ``mode == "nearest"``, ``mode in ("nearest", Mode.AREA.value)``; none if one is unknown."""
    compared: tuple[Expression | None, ...] = ()
    match test:
        case Operation(op="==", operands=(Ref(roots=value.roots, path=value.path), other)):
            compared = (other,)
        case Operation(op="in", operands=(Ref(roots=value.roots, path=value.path), Display(items=items))):
            compared = items
        case Operation(op="and", operands=operands):
            for operand in operands:
                yield from _values_admitted(project, path, operand, value)
    constants = [_literal(project, path, each) if each is not None else None for each in compared]
    if all(isinstance(each, Constant) for each in constants):
        yield from filter(None, constants)


def with_expanded_keywords(names: Names, path: str, call: Call, *, partly: bool = False) -> Call:
    """A call with the keywords of ``**options``, where that is one dictionary whose entries are all known; with ``partly``
    those of its display, whatever is added later.
    """
    args: list[Arg] = []
    for arg in call.args:
        known = _known_entries(names, path, arg.value) if arg.star == "**" else None
        if known is None and partly and arg.star == "**" and len([*names.values(path, arg.value)]) == 1:
            known = {key: value for key, _, value in dictionary_items(names, path, arg.value)} or None
        given = [arg._replace(keyword=key, star="", value=value) for key, value in (known or {}).items()]
        args += given if known is not None else [arg]
    return call._replace(args=tuple(args))


def _known_entries(names: Names, path: str, given: Expression) -> dict[str, Expression] | None:
    """The entries of a dictionary: of a display, a variable with its later items, or the ``**`` of a function's one call."""
    match given:
        case Display(kind="dict", items=items):
            return _entries_of(names, path, items)
        case Call(func=func, args=args) if "builtins.dict" in names.names(path, func):
            keywords = {arg.keyword: arg.value for arg in args if arg.keyword}
            return keywords if len(keywords) == len(args) else None
        case Ref(roots=(root,), path=()):
            parameter = names.parameter(f"{path}{root}")
            if parameter is not None and parameter.param.kind == "**":
                return _passed_keywords(names, path, parameter.function)
            found = [*names.values(path, given)]
            entries = None
            if len(found) == 1 and found[0] != (path, given):
                entries = _known_entries(names, *found[0])
            if entries is not None:
                return _with_updates(names, found[0][0], given, entries)
    return _configured_entries(names, path, given)


def _configured_entries(names: Names, path: str, given: Expression) -> dict[str, Expression] | None:
    """The entries of a section of the one configuration file that a program reads, with what it stores there; values that are no
    scalars are not known.
    """
    match [*names.configurations.sections(path, given)], names.configurations.places(path, given):
        case [(_, below)], [section] if all(keys for keys, _ in below):
            entries: dict[str, Expression] = {}
            for keys, text in below:
                value = Constant(given.start, given.end, written_value(text))
                entries[keys[0]] = value if len(keys) == 1 and value.value != "" else UNKNOWN_ARGUMENT
            return _with_stores(names, path, given, section, entries)
    return None


def _with_stores(
    names: Names, path: str, given: Expression, section: Found, entries: dict[str, Expression]
) -> dict[str, Expression] | None:
    """The entries of a section with what the programs store in it that read it there; None if they store a whole section, or under a
    key that is not known.

    A value is known if it is stored before in the same block, and nowhere else.
    """
    depth, files = len(section.keys), sorted(names.modules.files)
    above = [each for each in files if names.imports(each, path)]
    block = next((each.body for each in functions_around(names.modules.files[path], given.start)), ())
    block = block or names.modules.files[path].body
    ends = {each.end for each in block if not blocks(each)}
    is_after = any(each.start <= given.start < each.end for each in block if not blocks(each))
    for file in (each for each in files if any(names.imports(one, each) for one in above)):
        for part, stored in names.configurations.stores(file).items():
            shared = zip(part.keys, section.keys, strict=False)
            if not section.holds(part) or any(key not in (own, ANY_KEY) for key, own in shared):
                continue
            in_block = [each for each in stored if file == path and each[0] in ends]
            before = [value for end, value in in_block if end <= given.start]
            if is_after and len(in_block) == len(stored) and not before:
                continue
            if len(part.keys) <= depth or ANY_KEY in part.keys[: depth + 1]:
                return None
            is_known = len(in_block) == len(stored) and len(part.keys) == depth + 1 and bool(before)
            entries[part.keys[depth]] = (before[-1] if is_known else None) or UNKNOWN_ARGUMENT
    return entries


def _entries_of(names: Names, path: str, items: tuple[Expression | None, ...]) -> dict[str, Expression] | None:
    found: dict[str, Expression] = {}
    for key, item in zip(items[::2], items[1::2], strict=True):
        inner = _known_entries(names, path, item) if key is None and item is not None else None
        if inner is not None:
            found |= inner
        elif isinstance(key, Constant) and isinstance(key.value, str) and item is not None:
            found[key.value] = item
        else:
            return None
    return found


def _with_updates(names: Names, path: str, given: Ref, entries: dict[str, Expression]) -> dict[str, Expression] | None:
    """The entries with those that are set later by literal keys; None where it is changed in another way."""
    for root in given.roots:
        for site in mutation_sites(names.modules.files[path]).get((root, ()), ()):
            change = site.change
            if change.kind not in ("set", "drop") or change.key is None:
                return None
            known = change.value if site.statement.end <= given.start else None
            entries = {**entries, change.key: known or UNKNOWN_ARGUMENT}
    return entries


def _passed_keywords(names: Names, path: str, function: Function) -> dict[str, Expression] | None:
    """What the one call of a function passes for its ``**`` parameter."""
    calls = list(names.call_graph.of(f"{path}{function.name}", function))
    if len(calls) != 1:
        return None
    file, call = calls[0]
    if any(arg.star for arg in call.args):
        return None
    return {
        arg.keyword or "": arg.value if file == path or isinstance(arg.value, Constant) else UNKNOWN_ARGUMENT
        for arg, param in names.call_graph.receiving(file, call, function)
        if param.kind == "**"
    }


def dictionary_items(names: Names, path: str, expression: Expression) -> Iterator[tuple[str, str, Expression]]:
    """The literal keys of the dictionaries that an expression may be, each with its file and value."""
    for file, value in names.values(path, expression):
        match value:
            case Display(kind="dict", items=pairs):
                for key, item in zip(pairs[::2], pairs[1::2], strict=True):
                    if isinstance(key, Constant) and isinstance(key.value, str) and item is not None:
                        yield key.value, file, item
            case Call(args=args) if "builtins.dict" in names.names(file, value.func):
                yield from ((arg.keyword, file, arg.value) for arg in args if arg.keyword)
            case Operation(op="|", operands=operands):
                for operand in operands:
                    yield from dictionary_items(names, file, operand)
