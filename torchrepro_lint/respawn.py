"""Whether a program starts another Python, which reads the environment anew."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchrepro_lint.syntax.nodes import Arg, Collection, Constant, Expression, Operation, path_of

if TYPE_CHECKING:
    from torchrepro_lint.project import Project
    from torchrepro_lint.resolve.program_index import Site

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
