"""Gradient liveness: whether a gradient can flow back to a call.

None can where all uses of the result end in ``.detach()``, a number or a test; where the grad mode around the call is
off; or where each caller of the function, found by closure over the call graph, stands in such a mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchrepro_lint import limits
from torchrepro_lint.catalogue.libraries import FLUENT_METHODS
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.domain.gradients.frozen import entered_without_gradient
from torchrepro_lint.domain.gradients.modes import (
    asks_for_gradient,
    grad_mode_at,
    in_evaluation_mode,
    in_no_grad_mode,
    inputs_with_gradient,
    trains_nothing,
)
from torchrepro_lint.domain.programs import programs_reaching
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.call_sites import CallPlace
from torchrepro_lint.resolve.program_index import CallSite, ProgramIndex
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import known_argument, parameter_argument, takes_receiver
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Collection,
    Expression,
    Function,
    If,
    Lambda,
    Operation,
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import (
    enclosing_function,
    in_project,
    is_lambda,
    is_local,
    is_module,
    is_nested,
    is_self,
    locals_prefix,
    path_of,
    simple_name,
)
from torchrepro_lint.syntax.summary import has_word
from torchrepro_lint.syntax.use_def import ExpressionPosition
from torchrepro_lint.syntax.visitor import last_identifier, read_expressions, receiver_of, statements, subexpressions
from torchrepro_lint.trace.builder import Trace
from torchrepro_lint.trace.traces import Traces

# Attributes and methods of a tensor without gradient: detached copies, Python numbers, arrays, sizes, integers.
_STOPPING = lazy_pattern(
    r"detach|item|tolist|numpy|data|shape|dtype|device|ndim|is_cuda|size|dim|numel|nelement|element_size|arg\w+|"
    r"long|int|short|bool|byte|char|eq|ne|lt|le|gt|ge|equal|is\w+|any|all|nonzero|count_nonzero|sign|round|floor|ceil"
)
# Methods of a tensor whose result passes the gradient back.
_DIFFERENTIABLE = lazy_pattern(
    r"cpu|cuda|to|type|type_as|float|double|half|bfloat16|view|view_as|reshape|reshape_as|permute|transpose|t|T|mT|squeeze|"
    r"unsqueeze|expand|expand_as|repeat|contiguous|clone|flatten|unflatten|flip|roll|narrow|select|split|chunk|unbind|"
    r"mean|sum|prod|std|var|norm|max|min|amax|amin|abs|neg|exp|log|log2|log10|log1p|sqrt|rsqrt|square|pow|clamp|add|sub|"
    r"mul|div|mm|bmm|matmul|dot|softmax|log_softmax|sigmoid|tanh|relu|sin|cos|masked_fill|where"
)
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not", "not", "f"})
_ARITHMETIC = frozenset({"+", "-", "*", "/", "**", "@", "%", "//", "and", "or", "if"})
_CONVERSIONS = frozenset(
    f"builtins.{word}" for word in ("print", "len", "float", "int", "bool", "str", "repr", "format")
)
_VARIABLES = frozenset({"torch.autograd.Variable", "torch.autograd.variable.Variable"})
# Functions of torch that compute tensors from tensors without side effects.
_FUNCTION = lazy_pattern(r"torch\.(nn\.functional\.)?[a-z]\w*(?<!_)")
_NOT_TENSOR_FUNCTIONS = frozenset({"save", "compile", "manual_seed"})


def is_gradient_dead(project: Traces, path: str, made: Expression) -> bool:
    """Whether every use of a call's or subscript's result ends without a gradient: in ``.detach()``, a number, a test.

    Uses are followed through variables, arithmetic, torch's functions and the callers of the function that returns the
    result.
    """
    return _GradientLiveness(project).is_dead(path, made)


class _GradientLiveness:
    """The liveness of one value's gradient; each expression is visited once."""

    def __init__(self, project: Traces) -> None:
        self._names = project.resolver
        self._uses = project.uses
        self._seen: set[tuple[str, int, int]] = set()

    def is_dead(self, path: str, node: Expression) -> bool:
        """Whether no gradient comes back to an expression from any use."""
        key = (path, node.start, node.end)
        if key in self._seen:
            return True
        self._seen.add(key)
        position = self._uses.spots(path).of(node)
        if position is None or position.written or len(self._seen) > limits.MAX_DEAD_EXPRESSIONS:
            return False
        if position.parent is None:
            return self._in_statement(path, position)
        return self._in_expression(path, node, position.parent)

    def _in_expression(self, path: str, node: Expression, parent: Expression) -> bool:
        match parent:
            case Attribute(name=word):
                return self._after_read(path, parent, (word,))
            case Call(func=func) if func != node:
                return self._in_call(path, parent)
            case Subscript(value=value):
                return value != node or self.is_dead(path, parent)
            case Operation(op=op, operands=operands):
                if op in _COMPARISONS or (op == "if" and operands[0] == node):
                    return True
                return op in _ARITHMETIC and self.is_dead(path, parent)
            case Collection(kind="tuple" | "list"):
                outer = self._uses.spots(path).of(parent)
                return outer is not None and isinstance(outer.parent, Call) and self.is_dead(path, parent)
        return False

    def _in_call(self, path: str, call: Call) -> bool:
        names = self._names.names(path, call.func)
        if names and all(name in _CONVERSIONS or name in _VARIABLES for name in names):
            return True
        plain = [name for name in names if _FUNCTION.fullmatch(name) and simple_name(name) not in _NOT_TENSOR_FUNCTIONS]
        if not plain or len(plain) != len(names) or any(arg.keyword == "out" for arg in call.args):
            return False
        return _stops_gradient(simple_name(plain[0])) or self.is_dead(path, call)

    def _after_read(self, path: str, read: Expression, words: Sequence[str]) -> bool:
        """An expression that reads attributes of the value, or calls the last of them."""
        if not words:
            return self.is_dead(path, read)
        position = self._uses.spots(path).of(read)
        if position is None or _stops_gradient(words[0]):
            return position is not None
        if len(words) > 1 or not _DIFFERENTIABLE.fullmatch(words[0]):
            return False
        called = isinstance(position.parent, Call) and position.parent.func == read
        return self.is_dead(path, position.parent if called and position.parent is not None else read)

    def _in_statement(self, path: str, position: ExpressionPosition) -> bool:
        match position.statement:
            case If():
                return True
            case Assign(op="=" | ":", targets=targets, end=end):
                return all(self._in_assignment(path, target, position, end) for target in targets)
            case SimpleStatement(kind="return"):
                return self._in_return(path, position.function)
        return False

    def _in_assignment(self, path: str, target: Expression, position: ExpressionPosition, end: int) -> bool:
        if not isinstance(target, Ref) or target.path or not all(map(is_local, target.roots)):
            return False
        reads = list(self._uses.of_variable(path, target, position, end))
        return bool(reads) and all(self._after_read(file, read, words) for file, read, words in reads)

    def _in_return(self, path: str, function: str) -> bool:
        """Whether the known uses of a function are calls whose results have no gradient. A method may have other calls."""
        if is_module(function) or is_nested(function) or self._names.owner(path + function):
            return False
        calls = 0
        for file, read, words in self._uses.of_definition(path, function):
            position = self._uses.spots(file).of(read)
            if words or position is None or not isinstance(position.parent, Call) or position.parent.func != read:
                return False
            calls += 1
            if not self.is_dead(file, position.parent):
                return False
        return calls > 0


def _stops_gradient(word: str) -> bool:
    return _STOPPING.fullmatch(word) is not None


@query()
def _all_callers_without_gradient(project: ProgramIndex, function: str) -> bool:
    """Whether a function has callers and every call path to it passes a place in no-grad mode: the closure over the callers, up to
    a grad mode on each path; recursive calls add no path.
    """
    seen, waiting, off = {function}, [function], False
    while waiting:
        current = waiting.pop()
        if trains_nothing(project, current):
            off = True
            continue
        if project.resolver.call_graph.is_address_taken(current, count_stored=False):
            return False
        places = [(path, place) for path, some in _calls(project, current) for place in some]
        if not places:
            return False
        for path, place in places:
            caller = path + place.function
            guards = project.called_at(caller, place.start, place.end).event.guards
            mode = grad_mode_at(project, caller, guards)
            mode = mode or ("off" if in_evaluation_mode(project, caller, place.start, guards) else "")
            if mode == "on":
                return False
            off = off or mode == "off"
            if not mode and caller not in seen:
                seen.add(caller)
                waiting.append(caller)
    return off


def _calls(project: ProgramIndex, function: str) -> Iterator[tuple[str, Sequence[CallPlace]]]:
    """The calls that may run a function, by file: also by its name on an unknown receiver, where few classes share that, and of the
    methods that it overrides. torch itself calls ``forward``, so its name tells nothing.
    """
    yield from project.calls_of(function)
    resolver = project.resolver
    owner, word = resolver.owner(function), simple_name(function)
    if owner and not word.startswith(("__", "forward")):
        yield from project.unresolved_calls(word) if project.methods_named(word) <= limits.MAX_SHARED_METHODS else ()
        for above in resolver.ancestry(owner)[1:]:
            for method in resolver.methods(above, word) if in_project(above) else ():
                yield from project.calls_of(method) if in_project(method) else ()


def receives_gradient(project: Traces, run: Trace, site: CallSite) -> bool:
    """Whether what a call passes in a trace may need a gradient: a module made it, and nothing detached it since."""
    path, inputs = path_of(site.function), _GradientInputs(project, run)
    return any(inputs.may_need(path, arg.value) for arg in site.call.args)


class _GradientInputs:
    """What the values of expressions come from, backward, up to the modules that make them; each expression is visited once."""

    def __init__(self, project: Traces, run: Trace) -> None:
        self._names = project.resolver
        self._types = type_inference(project)
        self._run = run
        self._seen: set[tuple[str, Expression]] = set()

    def may_need(self, path: str, expression: Expression) -> bool:
        """Whether a module makes what an expression is computed from, or it is an input that asks for its gradient."""
        if (path, expression) in self._seen or len(self._seen) > limits.MAX_DEAD_EXPRESSIONS:
            return False
        self._seen.add((path, expression))
        if asks_for_gradient(expression) or (isinstance(expression, Ref) and self._is_asked_for(path, expression)):
            return True
        if _is_detached(expression) or self._types.of(path, expression).grad is False:
            return False
        match expression:
            case Call(func=func, args=args):
                if self._types.of(path, func).kind == "module":
                    return True
                receiver = receiver_of(func)
                parts = [arg.value for arg in args] + ([receiver] if receiver is not None else [])
                return not _stops_gradient(last_identifier(func)) and any(self.may_need(path, each) for each in parts)
            case Ref(path=words) if any(map(_stops_gradient, words)):
                return False
            case Ref():
                found = [each for each in self._names.values(path, expression) if each != (path, expression)]
                return any(self.may_need(*each) for each in found or self._passed(path, expression))
            case Operation(operands=operands):
                return any(self.may_need(path, each) for each in operands)
            case Subscript(value=value) | Attribute(value=value):
                return self.may_need(path, value)
            case Collection(items=items):
                return any(self.may_need(path, each) for each in items if each is not None)
        return False

    def _is_asked_for(self, path: str, variable: Ref) -> bool:
        """Whether a statement of the file asks for the gradient of a variable: ``image.requires_grad_()``, ``image.requires_grad = True``."""
        return (variable.roots, variable.path) in inputs_with_gradient(self._names, path)

    def _passed(self, path: str, variable: Ref) -> Iterator[tuple[str, Expression]]:
        """What the calls by which the trace enters a function pass for its parameter."""
        for known in filter(None, (self._names.parameter(path + root) for root in variable.roots)):
            function = known.function
            for edge in (
                self._run.call_edges.get(path + function.name, ()) if not known.param.kind.startswith("*") else ()
            ):
                call, bound = edge.event.value, takes_receiver(function)
                arg = (
                    parameter_argument(call, function, known.position, bound=bound) if isinstance(call, Call) else None
                )
                if arg is not None and not arg.star:
                    yield path_of(edge.caller), arg.value


_DETACHING = frozenset({"detach", "detach_", "data"})


def call_without_gradient(project: ProgramIndex, site: CallSite) -> bool:
    """Whether no gradient can flow at a call: in no-grad mode, in a function so decorated, or from a detached input."""
    return in_no_grad_mode(project, site) or _is_detached(known_argument(site.call, 0, "input"))


def used_without_gradient(project: Traces, path: str, made: CallSite) -> bool:
    """Whether a created object stays in a local variable and is only called or passed on in no-grad mode, or an object keeps it that
    prepares data.
    """
    function = next(iter(project.resolver.functions(made.function)), None)
    statement = made.statement
    if function is None or not isinstance(statement, Assign):
        return False
    match statement.targets:
        case (Ref(roots=(root,), path=()),) if root.startswith(locals_prefix(function.name)):
            return _only_used_in_calls(project, path, function, root)
        case (Ref(roots=(root,), path=(_,)),) if is_self(root):
            trains = has_word(project.files[path].summary.calls, "backward")
            return not trains and simple_name(made.function) == "__init__" and trains_nothing(project, made.function)
    return False


def _only_used_in_calls(project: Traces, path: str, function: Function, root: str) -> bool:
    read = {
        ref.start
        for statement in statements(function.body)
        for ref in _references_read(statement)
        if root in ref.roots and FLUENT_METHODS.isdisjoint(ref.path)
    }
    calls = [site for site in project.calls(path) if function.start <= site.call.start < function.end]
    off = called_without_gradient(project, path + function.name)
    free = {
        ref.start
        for site in calls
        if off or in_no_grad_mode(project, site)
        for ref in _references_passed(site.call)
        if root in ref.roots
    }
    return bool(read) and read <= free


def _references_read(statement: Statement) -> Iterator[Ref]:
    for expression in read_expressions(statement):
        yield from (each for each in subexpressions(expression) if isinstance(each, Ref))


def _references_passed(call: Call) -> Iterator[Ref]:
    """The references among a call's callee and arguments."""
    yield from (each for each in (call.func, *(arg.value for arg in call.args)) if isinstance(each, Ref))


def called_without_gradient(project: Traces, function: str) -> bool:
    """Whether all calls of a function of the project are in no-grad mode, or in such a function; or it prepares data.

    False where nothing calls it, where its address is taken, so that its callers are not known, and where a program
    runs it in another way, such as through a parameter.
    """
    if trains_nothing(project, function) or (is_lambda(function) and _is_passed_without_gradient(project, function)):
        return True
    if function.endswith(".forward"):  # torch calls it
        programs = programs_reaching(project, function)
        return bool(programs) and all(entered_without_gradient(project, each.run, function) for each in programs)
    return _all_callers_without_gradient(project, function) and all(
        entered_without_gradient(project, program.run, function) for program in programs_reaching(project, function)
    )


def _is_passed_without_gradient(project: Traces, function: str) -> bool:
    """Whether a lambda is an argument of a call without gradient, to a function of the project, which calls it: ``state.map(lambda x: …)``."""
    path, around = path_of(function), enclosing_function(function)
    for site in project.calls(path):
        passed = (arg.value for arg in site.call.args if isinstance(arg.value, Lambda))
        if site.function == around and any(path + each.function == function for each in passed):
            functions = all(map(project.resolver.functions, site.names)) and not any(
                "__init__" in each for each in site.names
            )
            known = functions if site.names else project.methods_named(last_identifier(site.call.func)) > 0
            return known and (call_without_gradient(project, site) or called_without_gradient(project, around))
    return False


def _is_detached(expression: Expression | None) -> bool:
    match expression:
        case Call(func=Ref(path=(*_, word)) | Attribute(name=word)) | Ref(path=(*_, word)):
            return word in _DETACHING
    return False
