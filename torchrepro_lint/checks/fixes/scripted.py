"""Functions that TorchScript compiles.

It accepts only a part of Python and of torch, so fixes in such functions must stay within that part.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.program_index import ProgramIndex
from torchrepro_lint.syntax.nodes import Call
from torchrepro_lint.syntax.qualified_names import class_of, instance_value, is_instance, path_of

_DECORATORS = frozenset(
    {
        "torch.jit.script",
        "torch.jit.script_method",
        "torch.jit.export",
        "torch.jit.script_if_tracing",
        "torch.jit.interface",
    }
)
_WORDS = frozenset({"script"})
_SCRIPT_MODULE = "torch.jit.ScriptModule"


def scripted_functions(project: ProgramIndex, path: str) -> frozenset[str]:
    """The functions of a file (``path:Net.forward``) that TorchScript compiles, with those of the file that they call.

    Where the project scripts an unknown value, every class of the same file may be meant.
    """
    found = {*_decorated(project, path), *_passed_to_script(project, path), *_tests_is_scripting(project, path)}
    while True:
        reached = {
            name
            for site in project.calls(path)
            if site.function in found
            for name in _entered_functions(project, site.names)
            if path_of(name) == path
        }
        if reached <= found:
            return frozenset(found)
        found |= reached


def _decorated(project: ProgramIndex, path: str) -> Iterator[str]:
    for function in project.files[path].functions:
        for decorator in function.decorators:
            called = decorator.func if isinstance(decorator, Call) else decorator
            if _DECORATORS.intersection(project.names(path, called)):
                yield path + function.name
    for each in project.files[path].classes:
        names = {name for decorator in each.decorators for name in project.names(path, decorator)}
        if _SCRIPT_MODULE in project.resolver.ancestry(path + each.name) or "torch.jit.script" in names:
            yield from (path + method for _, method in each.methods)


def _tests_is_scripting(project: ProgramIndex, path: str) -> Iterator[str]:
    """A function that asks whether it is being compiled is compiled by someone."""
    return (site.function for site in project.calls(path) if "torch.jit.is_scripting" in site.names)


def _passed_to_script(project: ProgramIndex, path: str) -> Iterator[str]:
    for other, names in scripted_values(project):
        yield from _compiled_functions(project, names)
        if not names and other == path:
            yield from _compiled_functions(
                project, [instance_value(path + each.name) for each in project.files[path].classes]
            )


@query()
def scripted_values(project: ProgramIndex) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The arguments of ``torch.jit.script`` in the project: the file of the call, and the names of the value."""
    scripting = project.mentioning(_WORDS)
    return tuple(
        (path, project.names(path, site.call.args[0].value))
        for path in scripting.paths
        for site in project.calls_by(path, scripting.words)
        if "torch.jit.script" in site.names and site.call.args
    )


def _compiled_functions(project: ProgramIndex, names: list[str] | tuple[str, ...]) -> Iterator[str]:
    """The functions that compiling one of these compiles: a function itself, the methods of an instance."""
    for name in names:
        if project.resolver.functions(name):
            yield name
        for each in project.resolver.ancestry(class_of(name)) if is_instance(name) else ():
            for definition in project.resolver.classes(each):
                yield from (path_of(each) + method for _, method in definition.methods)


def _entered_functions(project: ProgramIndex, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        if project.resolver.functions(name):
            yield name
        elif is_instance(name):
            yield from project.resolver.call_methods(name)
