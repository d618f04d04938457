"""The operations that a program reaches and that torch's deterministic mode is about, in the order of the run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.domain.gradients.frozen import is_frozen
from torchrepro_lint.domain.gradients.liveness import gradient_free
from torchrepro_lint.domain.gradients.modes import has_backward
from torchrepro_lint.domain.operations.verdicts import verdicts_of
from torchrepro_lint.domain.rng.effects import label
from torchrepro_lint.syntax.nodes import Call
from torchrepro_lint.trace.trace import in_parts

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.rows import Row
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.project import Context
    from torchrepro_lint.trace.trace import Happening

# What a model of another library is made of, as far as it matters here: the operation that stands for it.
_VISION = re.compile(r"(torchvision\.models|timm|segmentation_models_pytorch)\..*")
_TEXT = re.compile(
    r"transformers\.(.*\.)?(?!DataCollator|TF[A-Z]|Flax|\w*(Output|Processor|Tokenizer|Config|Card|Arguments))"
    r"\w*(Model|LMHead|For[A-Z]\w+)\w*(\(\)|\.(from_config|from_pretrained))?"
)
_ATTENTION = "torch.nn.functional.scaled_dot_product_attention"
_STANDS_FOR = ((_VISION, ("torch.nn.Conv2d",)), (_TEXT, ("torch.nn.Embedding", _ATTENTION)))


class Operation(NamedTuple):
    """An operation that happens in a run, or is constructed there: how people write it, and its row of the catalogue."""

    label: str
    row: Row
    happening: Happening
    order: int


def on_request(context: Context, program: Program) -> tuple[Operation, ...]:
    """The operations with a deterministic implementation that torch takes only when it is asked to."""
    return tuple(each for each in _operations(context, program) if each.row.behaviour == "deterministic")


def raising(context: Context, program: Program) -> tuple[Operation, ...]:
    """The operations that deterministic mode would stop."""
    return tuple(each for each in _operations(context, program) if each.row.behaviour == "raises")


def is_convolution(row: Row) -> bool:
    """Whether cuDNN's own switch is enough: not for the padding that some convolutions begin with."""
    return row.operation.startswith("torch.nn.Conv") and not any(each.of == "padding_mode" for each in row.when)


def device_of(context: Context, program: Program) -> str:
    """What a program runs on: as the settings say, else an accelerator where it names one."""
    if context.settings.device != "auto":
        return context.settings.device
    return "cuda" if context.project.on_accelerator(program) else "cpu"


def _operations(context: Context, program: Program) -> tuple[Operation, ...]:
    """Those on the program's device, in a phase that it has."""
    known: dict[int, tuple[Operation, ...]] = context.project.kept.setdefault("operations", {})
    if id(program.run) not in known:
        device, backward = device_of(context, program), has_backward(program)
        known[id(program.run)] = tuple(
            each
            for each in _all(context, program)
            if ("any" in each.row.devices or device in each.row.devices)
            and (each.row.phase != "backward" or (backward and not _keeps_none(context, program, each)))
        )
    return known[id(program.run)]


def _keeps_none(context: Context, program: Program, operation: Operation) -> bool:
    """Whether no gradient reaches an operation in this program: by where it runs, or its module does."""
    project, happening = context.project, operation.happening
    if not operation.row.spelling.name.rpartition(".")[2][:1].isupper():
        return gradient_free(project, program.run, happening.function)
    owner = project.resolver.owner(happening.function)
    runners = project.resolver.methods(owner, "forward") if owner else ()
    return any(gradient_free(project, program.run, each) for each in runners) or is_frozen(
        project, program.run, happening
    )


def _all(context: Context, program: Program) -> Iterator[Operation]:
    functions, paths = program.run.functions, sorted(program.run.paths)
    rows = {
        id(verdict.case.site.call): verdict.case.row
        for _, verdict in verdicts_of(context, paths)
        if verdict.case.site.function in functions
    }
    for part in in_parts(program.run, "operations", partial(_calls, context), context.project.kept):
        found = [each for each in part.library if id(each.happening.event.value) not in rows]
        for value, row in rows.items():
            for order, happening in part.by_value.get(value, ()):
                found.append(Operation(label(row.spelling.name), row, happening, order))
        yield from sorted(found, key=_in_order)


class _Calls(NamedTuple):
    """Calls by their identity, each with its order, and the operations of the models of libraries that they make."""

    by_value: dict[int, list[tuple[int, Happening]]]
    library: tuple[Operation, ...]


def _calls(context: Context, start: int, happenings: Sequence[Happening]) -> _Calls:
    by_value: dict[int, list[tuple[int, Happening]]] = {}
    library: list[Operation] = []
    for order, happening in enumerate(happenings, start):
        if happening.event.kind == "call" and isinstance(happening.event.value, Call):
            by_value.setdefault(id(happening.event.value), []).append((order, happening))
            library += _of_library(context, happening, order)
    return _Calls(by_value, tuple(library))


def _in_order(operation: Operation) -> int:
    return operation.order


def _of_library(context: Context, happening: Happening, order: int) -> Iterator[Operation]:
    """What a model of another library, or a project class that inherits from one, is made of."""
    resolver = context.project.resolver
    for name in happening.names:
        outside = [each for each in resolver.ancestry(name) if ":" not in each] if resolver.classes(name) else [name]
        for each in outside:
            for pattern, operations in _STANDS_FOR:
                if pattern.fullmatch(each) and _makes_model(context, each):
                    rows = (row for one in operations for row in context.catalogue.operation(one))
                    plain = next((row for row in rows if row.behaviour == "deterministic" and not row.when), None)
                    if plain is not None:
                        yield Operation(label(each), plain, happening, order)
                        return


def _makes_model(context: Context, name: str) -> bool:
    """Whether a name is that of a model or its factory: what initialises parameters. Of transformers all that fit are."""
    return name.startswith("transformers.") or any(
        row.family == "torch" and row.phase == "construct" and "__dict__" not in name
        for row in context.catalogue.consumer(name)
    )
