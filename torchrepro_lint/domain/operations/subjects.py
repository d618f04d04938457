"""What inference knows of a call's input, in the words of the catalogue's conditions.

What becomes of the result of a call: which part of a pair of values and indices is used.

Layers that are never run: tables of learned tokens, of which only the weight is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.conditions import Between, arguments
from torchrepro_lint.dataflow.types.lattice import UNKNOWN, What
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Collection,
    Constant,
    Do,
    Expression,
    Loop,
    Operation,
    Ref,
    Statement,
    Subscript,
)
from torchrepro_lint.syntax.summary import has_word
from torchrepro_lint.syntax.visitor import bodies, expressions, last_word, parts, statements, within

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.rows import Scalar, Spelling
    from torchrepro_lint.dataflow.types.tensors import Tensors
    from torchrepro_lint.domain.project import Project
    from torchrepro_lint.resolve.program_index import Site
    from torchrepro_lint.syntax.nodes import Facts


def tensor(spelling: Spelling, call: Call, word: str) -> Expression | None:
    """The tensor that a function or method is given by a parameter; a method's own is called ``input``."""
    if word == "input" and spelling.name.startswith("torch.Tensor."):
        return receiver(call)
    return arguments(spelling, call)(word)


def receiver(call: Call) -> Expression | None:
    """What a method is called on."""
    match call.func:
        case Attribute(value=value):
            return value
        case Ref(start=start, roots=roots, path=(*before, _), base_end=end):
            return Ref(start, end, roots, tuple(before), end)
    return None


def of_input(what: What) -> dict[str, Scalar | Between]:
    """The subjects that a tensor decides."""
    known: dict[str, Scalar | Between] = {}
    if what.family:
        known["input.dtype"] = "integer" if what.integral else what.family
    if what.low or what.high is not None:
        known["input.ndim"] = what.low if what.low == what.high else Between(what.low, what.high)
    if what.layout:
        known["input.layout"] = "strided" if what.layout == "contiguous" else what.layout
        known["input.quantized"] = what.layout == "quantized"
    if what.device == "cpu":
        known["device"] = "cpu"
    return known


def of_call(tensors: Tensors, spelling: Spelling, call: Call) -> dict[str, Scalar | Between]:
    """What is known of what a function or method of torch is given."""
    read = {word: found for word in _TELLING if (found := tensor(spelling, call, word)) is not None}
    known = of_input(tensors.what(read["input"])) if "input" in read else {}
    if any(_is_on_cpu(tensors.what(read[word])) for word in _TOGETHER if word in read):
        known["device"] = "cpu"
    if "repeats" in read and _is_count(tensors, read["repeats"]):
        known["repeats"] = Between(0, None)
    if "src" in read and (source := tensors.what(read["src"])).kind in ("int", "float", "bool"):
        known["src"] = source.kind
    elif "src" in read and tensors.is_number_by_default(read["src"]):
        known["src"] = "number"
    if "target" in read:
        return {**_of_target(tensors.what(read["target"])), **known}
    if "scale_factor" in spelling.parameters:
        known.update(_spatial(spelling, call, known.get("input.ndim")))
    index = tensors.what(read["index"]) if "index" in read and spelling.name.rpartition(".")[2] in _AS_MANY else UNKNOWN
    return {**{of: value for of, value in of_input(index).items() if of == "input.ndim"}, **known}


# What lies on one device.
_TOGETHER = ("index", "src", "source")
_TELLING = ("input", "target", "repeats", *_TOGETHER)
# What takes an index with as many dimensions as the input has.
_AS_MANY = ("gather", "scatter", "scatter_", "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_")


def _spatial(spelling: Spelling, call: Call, ndim: Scalar | Between | None) -> dict[str, Scalar | Between]:
    """How many dimensions are resized, all but the first two: by the input, else by the size that is asked for."""
    if isinstance(ndim, int):
        return {"spatial": ndim - 2}
    match tensor(spelling, call, "size"):
        case Collection(kind="tuple" | "list", items=items) if not any(map(_is_starred, items)):
            return {"spatial": len(items)}
        case Subscript(
            value=value,
            indices=(Operation(op=":", operands=(Constant(value=int() as first), Constant(value=None), *_)),),
        ) if first < 0 and _SHAPE.fullmatch(last_word(value)):
            return {"spatial": -first}
    return {}


def _is_starred(item: Expression | None) -> bool:
    return isinstance(item, Operation) and item.op == "*" and len(item.operands) == 1


def _is_count(tensors: Tensors, repeats: Expression) -> bool:
    """Whether it is one number, by what is known of it or by its name; a tensor has a number for each element."""
    match repeats:
        case Operation(op="*" | "//", operands=operands):
            return all(_is_count(tensors, each) for each in operands)
        case Subscript(value=value, indices=(Constant(value=int()),)) if _SHAPE.fullmatch(last_word(value)):
            return True
    return tensors.what(repeats).kind == "int" or bool(_COUNT.fullmatch(last_word(repeats)))


_SHAPE = re.compile(r"\w*(shape|size)")
_COUNT = re.compile(r"\w+_(groups|factor|dim)")


def _is_on_cpu(what: What) -> bool:
    """Whether it is a tensor on the CPU, other than one number, which goes with any device."""
    return (what.is_tensor or not what.kind) and what.device == "cpu" and (what.low > 0 or what.high is None)


def of_module(tensors: Tensors, call: Call) -> dict[str, Scalar | Between]:
    """What is known of what a module is called with: its input and, of a loss, the target."""
    plain = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    named = {arg.keyword: arg.value for arg in call.args if arg.keyword is not None}
    source, target = (plain[0] if plain else named.get("input")), (plain[1] if len(plain) > 1 else named.get("target"))
    known = {} if source is None else of_input(tensors.what(source))
    return {**({} if target is None else _of_target(tensors.what(target))), **known}


def _of_target(what: What) -> dict[str, Scalar | Between]:
    """Class indices are integers and have a dimension less than the input; probabilities are not."""
    if what.integral:
        known: dict[str, Scalar | Between] = {"input.target": "class indices"}
        if what.low:
            known["input.ndim"] = Between(what.low + 1, None if what.high is None else what.high + 1)
        return known
    return {"input.target": "probabilities"} if what.family == "floating" else {}


_PARTS = ("values", "indices")


def uses_part(facts: Facts, site: Site, part: str | None) -> bool:
    """Whether a part (``values`` or ``indices``) of what a call returns is used; None asks for any of it.

    Handed on as a whole, to a caller or a function, all of it counts as used.
    """
    chain = _above(site.statement, site.call)
    if chain:
        return _takes(chain[-1], part)
    statement = site.statement
    if isinstance(statement, Do):
        return False
    if not isinstance(statement, Assign) or statement.op not in ("=", ":"):
        return True
    return any(_is_read(facts, target, part) for target in statement.targets)


def _is_read(facts: Facts, target: Expression, part: str | None) -> bool:
    """Whether a part of what is assigned to a target is read anywhere in the file."""
    match target:
        case Collection(items=items) if part is not None:
            index = _PARTS.index(part)
            picked = items[index] if len(items) == len(_PARTS) else None
            return True if picked is None else _is_read(facts, picked, None)
        case Ref(roots=roots, path=()):
            return any(_takes(above, part) if above is not None else True for above in _reads(facts, frozenset(roots)))
    return True


def _reads(facts: Facts, roots: frozenset[str]) -> Iterator[Expression | None]:
    """What each reading of a variable stands in; None where it stands alone."""
    for body in (facts.body, *(each.body for each in facts.functions), *(each.body for each in facts.classes)):
        for statement in statements(body):
            bound = _bound(statement)
            for expression in expressions(statement):
                if not any(expression is target for target in bound):
                    yield from _found(expression, roots, None)


def _bound(statement: Statement) -> tuple[Expression | None, ...]:
    """The targets of a statement, which are written and not read."""
    if isinstance(statement, Assign) and statement.op in ("=", ":"):
        return statement.targets
    return (statement.target,) if isinstance(statement, Loop) else ()


def _found(expression: Expression, roots: frozenset[str], above: Expression | None) -> Iterator[Expression | None]:
    if isinstance(expression, Ref):
        if roots.intersection(expression.roots):
            yield expression if expression.path else above
        return
    for each in parts(expression):
        yield from _found(each, roots, expression)


def _takes(above: Expression, part: str | None) -> bool:
    """Whether an expression takes a part out of a pair that is its operand."""
    if part is None:
        return True
    match above:
        case Attribute(name=word) | Ref(path=(word, *_)):
            return word == part or word not in _PARTS
        case Subscript(indices=(Constant(value=int(index)),)):
            return index % 2 == _PARTS.index(part)
        case Subscript(indices=(Operation(op="-", operands=(Constant(value=int(index)),)),)):
            return -index % 2 == _PARTS.index(part)
    return True


def _above(statement: Statement, wanted: Expression) -> list[Expression]:
    """The expressions around one in a statement, outermost first."""
    for expression in expressions(statement):
        if (chain := _chain(expression, wanted)) is not None:
            return chain
    return []


def _chain(expression: Expression, wanted: Expression) -> list[Expression] | None:
    if expression is wanted:
        return []
    for each in parts(expression):
        if (chain := _chain(each, wanted)) is not None:
            return [expression, *chain]
    return None


_TABLES = frozenset({"torch.nn.Embedding", "torch.nn.modules.sparse.Embedding"})
# What is read of a table without running it.
_READ = frozenset({"weight", "num_embeddings", "embedding_dim"})


def gives_only_weights(project: Project, path: str, site: Site) -> bool:
    """Whether a constructed table is kept in an attribute of which the project reads nothing but its weight."""
    words = {target.path[0] for target in _kept(project, site) if isinstance(target, Ref) and len(target.path) == 1}
    if len(words) != 1 or not _TABLES.intersection(site.names):
        return False
    word, owner = words.pop(), project.resolver.owner(site.function)
    own = (each.body for each in project.files[path].functions if each.owner and f"{path}{each.owner}" == owner)
    if not all(only for of, only in _uses(own, word) if not of or _related(project, f"{path}{of}", owner)):
        return False  # as nearly all are, and no more need be looked into
    readings = _readings(project, word)
    if path not in readings:
        readings = {**readings, path: _in_file(project.files[path], word)}
    uses = [
        only
        for each, by_class in readings.items()
        for of, only in by_class.items()
        if not of or _related(project, f"{each}{of}", owner)
    ]
    return bool(uses) and all(uses)


def _readings(project: Project, word: str) -> dict[str, dict[str, bool]]:
    """The uses of an attribute in each file where it is called or named as a value at all."""
    known: dict[str, dict[str, dict[str, bool]]] = project.kept.setdefault("attributes read", {})
    if word not in known:
        known[word] = {
            path: _in_file(facts, word)
            for path, facts in project.files.items()
            if has_word(facts.summary.values, word) or has_word(facts.summary.calls, word)
        }
    return known[word]


def _in_file(facts: Facts, word: str) -> dict[str, bool]:
    """Whether nothing but a table's weight is read of an attribute, by the class on whose ``self``; empty for other objects."""
    found: dict[str, bool] = {}
    for of, only in _uses(bodies(facts), word):
        found[of] = only and found.get(of, True)
    return found


def _related(project: Project, one: str, other: str) -> bool:
    return other in project.resolver.ancestry(one) or one in project.resolver.ancestry(other)


def _kept(project: Project, site: Site) -> list[Expression]:
    """What keeps what is made: the targets of its assignment, and of another that hands a variable on to them."""
    found = []
    for target in _targets(site):
        if not isinstance(target, Ref) or target.path:
            found.append(target)
            continue
        for function in project.resolver.functions(site.function):
            for statement in statements(function.body):
                if isinstance(statement, Assign) and statement.value is not None and statement is not site.statement:
                    named = (each.roots for each in within(statement.value) if isinstance(each, Ref))
                    found += statement.targets if target.roots in named else ()
    return found


def _targets(site: Site) -> tuple[Expression, ...]:
    """The targets of the assignment that keeps what is made, by itself or in a list."""
    statement = site.statement
    if not isinstance(statement, Assign) or statement.value is None:
        return ()
    return statement.targets if any(each is site.call for each in within(statement.value)) else ()


def _uses(some: Iterable[tuple[Statement, ...]], word: str) -> Iterator[tuple[str, bool]]:
    """Of each reading of an attribute in some bodies the class on whose ``self`` it is, and whether only a table's weight is
    read.
    """
    for body in some:
        for statement in statements(body):
            targets = statement.targets if isinstance(statement, Assign) else ()
            for expression in expressions(statement):
                if not any(expression is target for target in targets):
                    yield from _weight_uses_found(expression, word, "")


def _weight_uses_found(expression: Expression, word: str, above: str) -> Iterator[tuple[str, bool]]:
    """``above`` is the attribute that is read of the expression."""
    match expression:
        case Ref(roots=roots, path=path) if word in path:
            after = path[path.index(word) + 1 :]
            method, _, variable = roots[0].rpartition(".<locals>.")
            own = method.rpartition(".")[0] if variable == "self" and path[0] == word else ""
            yield own, (after[0] if after else above) in _READ
        case Subscript(value=value, indices=indices):
            yield from _weight_uses_found(value, word, above)
            for each in indices:
                yield from _weight_uses_found(each, word, "")
        case Attribute(value=value, name=name):
            yield from _weight_uses_found(value, word, name)
        case _:
            for each in parts(expression):
                yield from _weight_uses_found(each, word, "")
