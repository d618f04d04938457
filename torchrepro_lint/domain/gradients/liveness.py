"""Whether a gradient can come back to a call from what is made of its result.

Who calls which function of a project, and whether a gradient is kept there.

Where no gradient flows: modes around a call, detached inputs, functions that only run without a backward pass.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.domain.gradients.modes import in_evaluation, is_evaluation_step, mode_at, trains_nothing
from torchrepro_lint.syntax.nodes import (
    Arg,
    Assign,
    Attribute,
    Call,
    Collection,
    Expression,
    Function,
    If,
    Leave,
    Operation,
    Ref,
    Statement,
    Subscript,
)
from torchrepro_lint.syntax.visitor import expressions, last_word, statements, within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchrepro_lint.domain.program_effects import ProgramEffects
    from torchrepro_lint.domain.project import Project
    from torchrepro_lint.resolve.call_sites import Place
    from torchrepro_lint.resolve.program_index import ProgramIndex, Site
    from torchrepro_lint.syntax.events import Event
    from torchrepro_lint.syntax.use_def import Spot
    from torchrepro_lint.trace.builder import Run


# What of a tensor no gradient comes back from: a copy without one, Python's numbers, an array, sizes, whole numbers.
_CUTTING = re.compile(
    r"detach|item|tolist|numpy|data|shape|dtype|device|ndim|is_cuda|size|dim|numel|nelement|element_size|arg\w+|"
    r"long|int|short|bool|byte|char|eq|ne|lt|le|gt|ge|equal|is\w+|any|all|nonzero|count_nonzero|sign|round|floor|ceil"
)
# Methods of a tensor that give another, from which a gradient comes back.
_GIVING = re.compile(
    r"cpu|cuda|to|type|type_as|float|double|half|bfloat16|view|view_as|reshape|reshape_as|permute|transpose|t|T|mT|squeeze|"
    r"unsqueeze|expand|expand_as|repeat|contiguous|clone|flatten|unflatten|flip|roll|narrow|select|split|chunk|unbind|"
    r"mean|sum|prod|std|var|norm|max|min|amax|amin|abs|neg|exp|log|log2|log10|log1p|sqrt|rsqrt|square|pow|clamp|add|sub|"
    r"mul|div|mm|bmm|matmul|dot|softmax|log_softmax|sigmoid|tanh|relu|sin|cos|masked_fill|where"
)
_COMPARING = frozenset({"==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not", "not", "f"})
_CALCULATING = frozenset({"+", "-", "*", "/", "**", "@", "%", "//", "and", "or", "if"})
_READING = frozenset(f"builtins.{word}" for word in ("print", "len", "float", "int", "bool", "str", "repr", "format"))
_VARIABLES = frozenset({"torch.autograd.Variable", "torch.autograd.variable.Variable"})
# Functions of torch that make tensors of tensors and do nothing else.
_FUNCTION = re.compile(r"torch\.(nn\.functional\.)?[a-z]\w*(?<!_)")
_OTHER = frozenset({"save", "compile", "manual_seed"})
_MOST = 200


def cut_off(project: Project, path: str, call: Call) -> bool:
    """Whether all that is made of a call's result ends where no gradient is kept: in ``.detach()``, a number, a test.

    Followed through variables, calculations, torch's functions and the callers of the function that returns it.
    """
    return _Look(project).is_cut(path, call)


class _Look:
    """One look; each expression is looked at once."""

    def __init__(self, project: Project) -> None:
        self._names = project.resolver
        self._uses = project.uses
        self._seen: set[tuple[str, int, int]] = set()

    def is_cut(self, path: str, node: Expression) -> bool:
        """Whether a gradient comes back from nothing that is made of an expression."""
        key = (path, node.start, node.end)
        if key in self._seen:
            return True
        self._seen.add(key)
        spot = self._uses.spots(path).of(node)
        if spot is None or spot.written or len(self._seen) > _MOST:
            return False
        if spot.parent is None:
            return self._in_statement(path, spot)
        return self._in_expression(path, node, spot.parent)

    def _in_expression(self, path: str, node: Expression, parent: Expression) -> bool:
        match parent:
            case Attribute(name=word):
                return self._read(path, parent, (word,))
            case Call(func=func) if func is not node:
                return self._passed(path, parent)
            case Subscript(value=value):
                return value is not node or self.is_cut(path, parent)
            case Operation(op=op, operands=operands):
                if op in _COMPARING or (op == "if" and operands[0] is node):
                    return True
                return op in _CALCULATING and self.is_cut(path, parent)
            case Collection(kind="tuple" | "list"):
                outer = self._uses.spots(path).of(parent)
                return outer is not None and isinstance(outer.parent, Call) and self.is_cut(path, parent)
        return False

    def _passed(self, path: str, call: Call) -> bool:
        names = self._names.names(path, call.func)
        if names and all(name in _READING or name in _VARIABLES for name in names):
            return True
        plain = [name for name in names if _FUNCTION.fullmatch(name) and name.rpartition(".")[2] not in _OTHER]
        if not plain or len(plain) != len(names) or any(arg.keyword == "out" for arg in call.args):
            return False
        return _cuts(plain[0].rpartition(".")[2]) or self.is_cut(path, call)

    def _read(self, path: str, read: Expression, words: Sequence[str]) -> bool:
        """An expression that reads attributes of the value, or calls the last of them."""
        if not words:
            return self.is_cut(path, read)
        spot = self._uses.spots(path).of(read)
        if spot is None or _cuts(words[0]):
            return spot is not None
        if len(words) > 1 or not _GIVING.fullmatch(words[0]):
            return False
        called = isinstance(spot.parent, Call) and spot.parent.func is read
        return self.is_cut(path, spot.parent if called and spot.parent is not None else read)

    def _in_statement(self, path: str, spot: Spot) -> bool:
        match spot.statement:
            case If():
                return True
            case Assign(op="=" | ":", targets=targets, end=end):
                return all(self._assigned(path, target, spot, end) for target in targets)
            case Leave(kind="return"):
                return self._returned(path, spot.function)
        return False

    def _assigned(self, path: str, target: Expression, spot: Spot, end: int) -> bool:
        if not isinstance(target, Ref) or target.path or not all("<locals>" in root for root in target.roots):
            return False
        reads = list(self._uses.of_variable(path, target, spot, end))
        return bool(reads) and all(self._read(file, read, words) for file, read, words in reads)

    def _returned(self, path: str, function: str) -> bool:
        """Whether all that is known of a function are calls whose results are cut off; a method may be called unseen."""
        if function == ":" or ".<locals>." in function or self._names.owner(path + function):
            return False
        calls = 0
        for file, read, words in self._uses.of_definition(path, function):
            spot = self._uses.spots(file).of(read)
            if words or spot is None or not isinstance(spot.parent, Call) or spot.parent.func is not read:
                return False
            calls += 1
            if not self.is_cut(file, spot.parent):
                return False
        return calls > 0


def _cuts(word: str) -> bool:
    return _CUTTING.fullmatch(word) is not None


# A name that more methods have says little of whose it is.
_MOST_METHODS = 8


class ForwardCallers:
    """The calls of a project by what they run. A method is also run by a call of its name on what can not be told, and
    by one of the method that it overrides.
    """

    def __init__(self, project: ProgramIndex) -> None:
        self._project = project
        self._known: dict[str, bool] = {}

    def forward_only(self, function: str) -> bool:
        """Whether some call of a function stands where no gradient is kept, and each does, on each way that leads there."""
        if function not in self._known:
            self._known[function] = self._asked(function)
        return self._known[function]

    def _asked(self, function: str) -> bool:
        """Follow the callers until a mode is found on each way; a function that only calls itself is on none."""
        seen, waiting, off = {function}, [function], False
        while waiting:
            current = waiting.pop()
            if trains_nothing(self._project, current):
                off = True
                continue
            if self._project.resolver.calls_of.hands_on(current, kept=False):
                return False
            places = [(path, place) for path, some in self._calls(current) for place in some]
            if not places:
                return False
            for path, place in places:
                caller = path + place.function
                guards = self._project.called_at(caller, place.start, place.end).event.guards
                mode = mode_at(self._project, caller, guards)
                mode = mode or ("off" if in_evaluation(self._project, caller, place.start, guards) else "")
                if mode == "on":
                    return False
                off = off or mode == "off"
                if not mode and caller not in seen:
                    seen.add(caller)
                    waiting.append(caller)
        return off

    def _calls(self, function: str) -> Iterator[tuple[str, Sequence[Place]]]:
        """What may run a function, by file. A network's ``forward`` is run by torch, so that no name says who calls it."""
        yield from self._project.all_calls.told.of(function)
        resolver = self._project.resolver
        owner, word = resolver.owner(function), function.rpartition(".")[2]
        if owner and not word.startswith(("__", "forward")):
            yield from self._project.all_calls.untold.of(word) if self._is_telling(word) else ()
            for above in resolver.ancestry(owner)[1:]:
                for method in resolver.methods(above, word) if ":" in above else ():
                    yield from self._project.all_calls.told.of(method) if ":" in method else ()

    def _is_telling(self, word: str) -> bool:
        """Whether a call by this word on what can not be told is likely one of a certain method: few classes share it."""
        return self._project.all_calls.methods[word] <= _MOST_METHODS


_CUT = frozenset({"detach", "detach_", "data"})
# Methods that give the module itself.
_MOVES = frozenset({"to", "cuda", "cpu", "eval"})


def without_gradient(project: ProgramIndex, site: Site) -> bool:
    """Whether no gradient can flow: under ``no_grad``, in a function so decorated, or from a detached input."""
    return switched_off(project, site) or _is_cut(_input(site.call))


def switched_off(project: ProgramIndex, site: Site) -> bool:
    """Whether a call stands where no gradient is kept, by the innermost mode around it."""
    return mode_at(project, site.function, site.guards) == "off"


def used_without_gradient(project: ProgramEffects, path: str, made: Site) -> bool:
    """Whether what a call makes is kept in a local variable, and only called or passed on where no gradient is kept."""
    function = next(iter(project.resolver.functions(made.function)), None)
    statement = made.statement
    if function is None or not isinstance(statement, Assign):
        return False
    match statement.targets:
        case (Ref(roots=(root,), path=()),) if root.startswith(f"{function.name}.<locals>."):
            return _only_used_in_calls(project, path, function, root)
    return False


def _only_used_in_calls(project: ProgramEffects, path: str, function: Function, root: str) -> bool:
    read = {
        ref.start
        for statement in statements(function.body)
        for ref in _read(statement)
        if root in ref.roots and _MOVES.isdisjoint(ref.path)
    }
    calls = [site for site in project.calls(path) if function.start <= site.call.start < function.end]
    off = forward_only(project, path + function.name)
    free = {
        ref.start
        for site in calls
        if off or switched_off(project, site)
        for ref in _given(site.call)
        if root in ref.roots
    }
    return bool(read) and read <= free


def _read(statement: Statement) -> Iterator[Ref]:
    bound = statement.targets if isinstance(statement, Assign) and statement.op == "=" else ()
    for expression in expressions(statement):
        if not any(expression is target for target in bound):
            yield from (each for each in within(expression) if isinstance(each, Ref))


def _given(call: Call) -> Iterator[Ref]:
    """What a call calls and is given, as far as that is variables."""
    yield from (each for each in (call.func, *(arg.value for arg in call.args)) if isinstance(each, Ref))


def forward_only(project: ProgramEffects, function: str) -> bool:
    """Whether all calls of a function of the project stand where no gradient is kept, or in such a function; and whether
    it prepares data.

    False where nothing calls it, where it is passed on as a value (then who calls it is not known), and where a program
    runs it otherwise, as through a parameter.
    """
    if trains_nothing(project, function):
        return True
    return forward_callers(project).forward_only(function) and all(
        gradient_free(project, program.run, function) for program in project.reaching(function)
    )


def forward_callers(project: ProgramIndex) -> ForwardCallers:
    """Who calls which function of the project."""
    if "callers" not in project.kept:
        project.kept["callers"] = ForwardCallers(project)
    callers: ForwardCallers = project.kept["callers"]
    return callers


def gradient_free(project: ProgramIndex, run: Run, function: str) -> bool:
    """Whether a run enters a function only where no gradient is kept. False where it does not enter it."""
    known: dict[str, bool] = project.kept.setdefault("gradient free", {}).setdefault(id(run), {})
    if is_evaluation_step(project, function):
        return True
    if function not in known:
        known[function] = True  # a circle adds no other way in
        entries = [each for each in run.entries.get(function, ()) if not _wraps_in_place(each.event)]
        known[function] = bool(entries) and all(_enters_free(project, run, each.caller, each.event) for each in entries)
    return known[function]


def _wraps_in_place(event: Event) -> bool:
    """Whether an event runs nothing: ``net.encoder = DataParallel(net.encoder)`` is run as ``net.encoder`` is."""
    match event.statement, event.value:
        case Assign(targets=(Ref() as target,), op="="), Call(func=func, args=(Arg(value=Ref() as inner), *_)):
            same = (inner.roots, inner.path) == (target.roots, target.path)
            return same and last_word(func)[:1].isupper()
    return False


def _enters_free(project: ProgramIndex, run: Run, caller: str, event: Event) -> bool:
    mode = mode_at(project, caller, event.guards)
    if mode or trains_nothing(project, caller):
        return mode != "on"
    # A layer that a module makes for itself runs where the module does.
    owner = project.resolver.owner(caller) if caller.endswith(".__init__") else ""
    runners = project.resolver.methods(owner, "forward") if owner else (caller,)
    return any(gradient_free(project, run, each) for each in runners)


def _input(call: Call) -> Expression | None:
    """The tensor of a call: a method's receiver is unknown as a value, so its attributes are looked at instead."""
    if call.args and not call.args[0].star and call.args[0].keyword in (None, "input"):
        return call.args[0].value
    return None


def _is_cut(expression: Expression | None) -> bool:
    match expression:
        case Call(func=Ref(path=(*_, word)) | Attribute(name=word)) | Ref(path=(*_, word)):
            return word in _CUT
    return False
