"""Whether programs ask torch for its deterministic algorithms, or cuDNN for its own.

When a run begins to compute on an accelerator.

Whether a program starts another Python, which reads the environment anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchrepro_lint.domain.flag_effects import ACCELERATOR, BACKWARD, StateEffect
from torchrepro_lint.domain.flags import CUDNN_DETERMINISTIC, DETERMINISTIC, WARN, is_off
from torchrepro_lint.domain.programs import Program, programs_in, programs_reaching, state_effects
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.nodes import Arg, Attribute, Call, Collection, Constant, Expression, Operation
from torchrepro_lint.syntax.qualified_names import (
    class_of,
    in_project,
    is_instance,
    module_symbol,
    path_of,
    unbound_method,
)
from torchrepro_lint.trace.events import TraceEvent
from torchrepro_lint.trace.library_models import trains_or_measures
from torchrepro_lint.trace.traces import Traces


def deterministic_mode_enabled(project: Traces, function: str) -> bool:
    """Whether every program that reaches a function turns deterministic mode on, under whatever condition.

    Where no program reaches the function, those that import its module are asked. False where there are no programs.
    """
    programs = programs_reaching_or_importing(project, function)
    return bool(programs) and all(sets_flag(project, program) for program in programs)


def sets_flag(project: Traces, program: Program, flag: str = DETERMINISTIC) -> bool:
    """Whether a program sets a flag to anything but a constant that is off, under whatever condition."""
    return any(not is_off(effect.value) for effect in flag_writes_in(project, program, flag))


def only_warnings_enabled(project: Traces, function: str) -> bool:
    """Whether every such program asks for warnings only."""
    programs = programs_reaching_or_importing(project, function)
    return bool(programs) and all(_only_warns(project, program) for program in programs)


def cudnn_deterministic_enabled(project: Traces, function: str) -> bool:
    """Whether every such program sets ``torch.backends.cudnn.deterministic`` to anything but a constant False."""
    programs = programs_reaching_or_importing(project, function)
    return bool(programs) and all(sets_flag(project, program, CUDNN_DETERMINISTIC) for program in programs)


def programs_reaching_or_importing(project: Traces, function: str) -> tuple[Program, ...]:
    """The programs that reach a function, else those that import its module."""
    return programs_reaching(project, function) or programs_reaching(project, module_symbol(path_of(function)))


def flag_writes_in(project: Traces, program: Program, what: str) -> Iterator[StateEffect]:
    """The writes of a flag or environment variable in a program's trace, in order."""
    return (effect for effect in state_effects(project, program) if effect.what == what)


def _only_warns(project: Traces, program: Program) -> bool:
    on = {effect.value for effect in flag_writes_in(project, program, DETERMINISTIC) if not is_off(effect.value)}
    return on == {WARN}


# Calls that end in cuBLAS; moving things to a device does not.
_MATRIX_PRODUCTS = lazy_pattern(
    r"torch\.(Tensor\.)?(matmul|mm|bmm|addmm|baddbmm|addmv|mv|dot|einsum|tensordot|chain_matmul)|torch\.linalg\.\w+|"
    r"torch\.nn\.functional\.(linear|bilinear|multi_head_attention_forward|scaled_dot_product_attention)"
)


def first_accelerator_computation(project: Traces, program: Program) -> tuple[int, TraceEvent] | None:
    """The first computation of a program after it has put something on an accelerator, with its order in the trace.

    A computation is a call of a module, a matrix product, a backward pass or a trainer. None where there is none.
    """
    placed = next((effect for effect in state_effects(project, program) if effect.kind == ACCELERATOR), None)
    if placed is None:
        return None
    backward = {effect.order for effect in state_effects(project, program) if effect.kind == BACKWARD}
    for order, trace_event in enumerate(program.run.trace_events[placed.order :], placed.order):
        if trace_event.event.kind == "call" and (
            order in backward or any(_is_computation(project, name) for name in trace_event.names)
        ):
            return order, trace_event
    return None


def _is_computation(project: Traces, name: str) -> bool:
    if not in_project(name):
        called = name.startswith("torch.nn.") and is_instance(name)
        return called or bool(_MATRIX_PRODUCTS.fullmatch(unbound_method(name))) or trains_or_measures([name])
    return is_instance(name) and project.resolver.is_module_class(class_of(name))


_PROCESS_STARTERS = lazy_pattern(
    r"os\.(exec[lv]p?e?|spawn[lv]p?e?|posix_spawnp?|system|popen)|"
    r"subprocess\.(run|call|check_call|check_output|Popen|getoutput|getstatusoutput)|"
    r"asyncio\.create_subprocess_(exec|shell)|torch\.multiprocessing\.(spawn(\.spawn)?|start_processes)|"
    r"torch\.distributed\.(run|launcher|launch)\.\w+|accelerate\.(notebook|debug)_launcher|"
    r"lightning_fabric\.\w+launch\w*"
)
# Processes of multiprocessing are new interpreters only with these start methods.
_START_METHOD_SETTERS = lazy_pattern(r"(torch\.)?multiprocessing\.(set_start_method|get_context)")
_FRESH_START_METHODS = frozenset({"spawn", "forkserver"})
_PYTHON = lazy_pattern(
    r"(.*[\\/])?(python[\d.]*w?|torchrun|accelerate|deepspeed|mpirun|srun|horovodrun)(\.exe)?(\s.*)?"
)
# What stands between the commands of a shell.
_SEPARATORS = lazy_pattern(r"&&|\|\||[;|&\n]")


def starts_interpreter(project: Traces, path: str, written: Expression) -> bool:
    """Whether a program that runs ``written``, a call or the target of an assignment in a file, starts another Python, or asks for
    processes that are new interpreters: not those in which it runs ``written``, which have read the variable.

    Where no program is seen to run it, whether the file, or a function of a program that reaches the file, does so.
    """
    programs = programs_in(project, path)
    ways = [way for program in programs if (way := _way_to(program, path, written)) is not None]
    if ways:
        return any(
            _asks_for_interpreters(each.names, call) or (call not in way and _starts(each.names, call))
            for program, way in ways
            for each in program.run.trace_events
            if isinstance(call := each.event.value, Call)
        )
    reached = {function for program in programs for function in program.run.functions}
    return any(
        (site.function in reached or file == path)
        and (_asks_for_interpreters(site.names, site.call) or _starts(site.names, site.call))
        for file in sorted({path_of(function) for function in reached} | {path})
        for site in project.calls(file)
    )


def _way_to(program: Program, path: str, written: Expression) -> tuple[Program, list[Expression | None]] | None:
    """A program that runs an expression, with the calls that lead to it; None where it does not."""
    for each in program.run.trace_events:
        if each.path == path and each.event.value == written:
            return program, [step.event.value for step in each.call_path]
    return None


def _asks_for_interpreters(names: Iterable[str], call: Call) -> bool:
    return any(map(_START_METHOD_SETTERS.fullmatch, names)) and any(
        isinstance(arg.value, Constant) and arg.value.value in _FRESH_START_METHODS for arg in call.args
    )


def _starts(names: Iterable[str], call: Call) -> bool:
    return any(map(_PROCESS_STARTERS.fullmatch, names)) and _may_be_python(call.args)


def _may_be_python(args: tuple[Arg, ...]) -> bool:
    """Whether the command, or one that a shell runs after it, may be Python: unless its first word is known to be another."""
    word = _first_word(args[0].value) if args else None
    return word is None or any(_PYTHON.fullmatch(each.strip()) for each in _SEPARATORS.split(word))


def _first_word(command: Expression) -> str | None:
    match command:
        case Constant(value=str(text)):
            return text
        case Collection(items=(first, *_)) if first is not None:
            return _first_word(first)
        case Operation(op="f", operands=(Constant(value=str(text)), *_)) if " " in text.strip():
            return text.strip()
        case Operation(op="+", operands=(first, _)):
            return _first_word(first)
        case Operation(op="%", operands=(Constant(value=str(text)), _)) if "%" not in text.split(" ")[0]:
            return text
        case Call(func=Attribute(name="format", value=Constant(value=str(text)))) if "{" not in text.split(" ")[0]:
            return text
    return None
