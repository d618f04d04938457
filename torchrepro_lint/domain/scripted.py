"""Which functions of a file TorchScript compiles: it takes only a part of Python, and of torch."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.resolve.program_index import ProgramIndex
from torchrepro_lint.syntax.nodes import Call, path_of

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


def scripted(project: ProgramIndex, path: str) -> frozenset[str]:
    """The functions of a file (``path:Net.forward``) that are compiled, those that they call in the file included.

    Where the project scripts a value that nothing is known of, every module class of the same file may be meant.
    """
    found = {*_decorated(project, path), *_handed_to_script(project, path), *_asking(project, path)}
    while True:
        reached = {
            name
            for site in project.calls(path)
            if site.function in found
            for name in _entered(project, site.names)
            if name.startswith(f"{path}:")
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


def _asking(project: ProgramIndex, path: str) -> Iterator[str]:
    """Who asks whether it is being compiled is compiled by someone."""
    return (site.function for site in project.calls(path) if "torch.jit.is_scripting" in site.names)


def _handed_to_script(project: ProgramIndex, path: str) -> Iterator[str]:
    for other, names in scripting(project):
        yield from _methods(project, names)
        if not names and other == path:
            yield from _methods(project, [f"{path}{each.name}()" for each in project.files[path].classes])


def scripting(project: ProgramIndex) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What the project hands to ``torch.jit.script``: the file that does, and the names of the value."""
    return project.of_all("scripting", lambda: tuple(_handed(project)))


def _handed(project: ProgramIndex) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The calls of ``torch.jit.script``: their files, and the names of what they are given."""
    scripting = project.mentioning(_WORDS)
    return (
        (path, project.names(path, site.call.args[0].value))
        for path in scripting.paths
        for site in project.calls_by(path, scripting.words)
        if "torch.jit.script" in site.names and site.call.args
    )


def _methods(project: ProgramIndex, names: list[str] | tuple[str, ...]) -> Iterator[str]:
    """The functions that compiling one of these compiles: a function itself, the methods of an instance."""
    for name in names:
        if project.resolver.functions(name):
            yield name
        for each in project.resolver.ancestry(name.removesuffix("()")) if name.endswith("()") else ():
            for definition in project.resolver.classes(each):
                yield from (path_of(each) + method for _, method in definition.methods)


def _entered(project: ProgramIndex, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        if project.resolver.functions(name):
            yield name
        elif name.endswith("()"):
            yield from project.resolver.call_methods(name)
