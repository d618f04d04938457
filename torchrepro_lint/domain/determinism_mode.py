"""Whether programs ask torch for its deterministic algorithms, or cuDNN for its own.

When a run begins to compute on an accelerator.

Whether a program starts another Python, which reads the environment anew.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchrepro_lint.domain.flag_effects import ACCELERATOR, BACKWARD
from torchrepro_lint.domain.flags import CUDNN_DETERMINISTIC, DETERMINISTIC, WARN, is_off
from torchrepro_lint.syntax.nodes import Arg, Collection, Constant, Expression, Operation, path_of
from torchrepro_lint.trace.framework_models import matters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchrepro_lint.domain.flag_effects import Touch
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.project import Project
    from torchrepro_lint.resolve.program_index import Site
    from torchrepro_lint.trace.trace import Happening


def enabled(project: Project, function: str) -> bool:
    """Whether every program that reaches a function asks for them; a condition around the switch does not count.

    Where none reaches it, the programs are asked that import its module. False where there are no programs.
    """
    programs = programs_of(project, function)
    return bool(programs) and all(enables(project, program) for program in programs)


def enables(project: Project, program: Program, flag: str = DETERMINISTIC) -> bool:
    """Whether a program sets a flag to anything but a constant that is off; a condition around it does not count."""
    return any(not is_off(touch.value) for touch in set_in(project, program, flag))


def warns_only(project: Project, function: str) -> bool:
    """Whether every such program asks for warnings, and none for more than that."""
    programs = programs_of(project, function)
    return bool(programs) and all(_warns(project, program) for program in programs)


def cudnn_deterministic(project: Project, function: str) -> bool:
    """Whether every such program sets ``torch.backends.cudnn.deterministic``, by whatever value but a constant False."""
    programs = programs_of(project, function)
    return bool(programs) and all(enables(project, program, CUDNN_DETERMINISTIC) for program in programs)


def programs_of(project: Project, function: str) -> tuple[Program, ...]:
    """The programs that reach a function, else those that import its module."""
    return project.reaching(function) or project.reaching(path_of(function) + ":")


def set_in(project: Project, program: Program, what: str) -> Iterator[Touch]:
    """Where a program sets a flag or a variable, in order."""
    return (touch for touch in project.switching(program) if touch.what == what)


def _warns(project: Project, program: Program) -> bool:
    on = {touch.value for touch in set_in(project, program, DETERMINISTIC) if not is_off(touch.value)}
    return on == {WARN}


# Calls that end in cuBLAS; moving things to a device does not.
_MULTIPLIES = re.compile(
    r"torch\.(Tensor\.)?(matmul|mm|bmm|addmm|baddbmm|addmv|mv|dot|einsum|tensordot|chain_matmul)|torch\.linalg\.\w+|"
    r"torch\.nn\.functional\.(linear|bilinear|multi_head_attention_forward|scaled_dot_product_attention)"
)


def first_work(project: Project, program: Program) -> tuple[int, Happening] | None:
    """The first thing that a program computes after it has put something on an accelerator: a module that is called, a
    product of matrices, a backward pass, a trainer. Its order in the run, and where; None where there is none.
    """
    placed = next((touch for touch in project.switching(program) if touch.kind == ACCELERATOR), None)
    if placed is None:
        return None
    backward = {touch.order for touch in project.switching(program) if touch.kind == BACKWARD}
    for order, happening in enumerate(program.run.happenings[placed.order :], placed.order):
        if happening.event.kind == "call" and (
            order in backward or any(_computes(project, name) for name in happening.names)
        ):
            return order, happening
    return None


def _computes(project: Project, name: str) -> bool:
    if ":" not in name:
        is_module = name.startswith("torch.nn.") and name.endswith("()") and "." not in name.rpartition("()")[2]
        return is_module or bool(_MULTIPLIES.fullmatch(name.replace("().", "."))) or matters([name])
    return name.endswith("()") and "torch.nn.Module" in project.resolver.ancestry(name[:-2])


_STARTERS = re.compile(
    r"os\.(exec[lv]p?e?|spawn[lv]p?e?|posix_spawnp?|system|popen)|"
    r"subprocess\.(run|call|check_call|check_output|Popen|getoutput|getstatusoutput)|"
    r"asyncio\.create_subprocess_(exec|shell)|torch\.multiprocessing\.(spawn(\.spawn)?|start_processes)|"
    r"torch\.distributed\.(run|launcher|launch)\.\w+|accelerate\.(notebook|debug)_launcher|"
    r"lightning_fabric\.\w+launch\w*"
)
# Their processes are new interpreters only by these ways of starting.
_CONTEXTS = re.compile(r"(torch\.)?multiprocessing\.(set_start_method|get_context)")
_FRESH = frozenset({"spawn", "forkserver"})
_PYTHON = re.compile(r"(.*[\\/])?(python[\d.]*w?|torchrun|accelerate|deepspeed|mpirun|srun|horovodrun)(\.exe)?(\s.*)?")


def starts_python(project: Project, path: str) -> bool:
    """Whether the programs that reach a file start another Python; where none does, whether the file itself does."""
    reached = {function for program in project.programs_in(path) for function in program.run.functions}
    for file in sorted({path_of(function) for function in reached} | {path}):
        for site in project.calls(file):
            if (site.function in reached or file == path) and _starts(site):
                return True
    return False


def _starts(site: Site) -> bool:
    for name in site.names:
        if _CONTEXTS.fullmatch(name):
            return any(isinstance(arg.value, Constant) and arg.value.value in _FRESH for arg in site.call.args)
        if _STARTERS.fullmatch(name):
            return _may_be_python(site.call.args)
    return False


def _may_be_python(args: tuple[Arg, ...]) -> bool:
    """Whether the command may be Python: unless its first word is known to be another."""
    word = _first_word(args[0].value) if args else None
    return word is None or _PYTHON.fullmatch(word) is not None


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
    return None
