"""TRL201: cuDNN is told to choose algorithms by timing them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.facts import Assign, Constant, Expression, If, Statement, span
from torchrepro_lint.rule import Finding
from torchrepro_lint.text import Edit, Fix
from torchrepro_lint.walk import blocks

if TYPE_CHECKING:
    from torchrepro_lint.facts import Arg
    from torchrepro_lint.project import Site
    from torchrepro_lint.rule import Context

_SWITCH = "torch.backends.cudnn.benchmark"
_TRAINERS = frozenset({"lightning.Trainer", "lightning.pytorch.Trainer", "pytorch_lightning.Trainer"})
_TRAINERS_LONG = frozenset({"lightning.pytorch.trainer.Trainer", "pytorch_lightning.trainer.Trainer"})
_CAUSE = "lets cuDNN pick algorithms by timing them, which differs between runs"


def check(context: Context) -> Iterator[Finding]:
    """Assignments of the switch, ``cudnn.flags`` and Lightning's ``Trainer``."""
    facts = context.facts
    for body in (facts.body, *(each.body for each in facts.functions), *(each.body for each in facts.classes)):
        yield from _assignments(context, body, other_branch=())
    for site in context.project.calls(context.path):
        yield from _call(context, site)


def _assignments(
    context: Context, body: tuple[Statement, ...], other_branch: tuple[Statement, ...]
) -> Iterator[Finding]:
    for statement in body:
        if isinstance(statement, Assign) and _sets(context, statement) and _is_true(context, statement.value):
            if not any(_switches_off(context, other) for other in other_branch):
                value = statement.value
                assert value is not None
                yield Finding(
                    "TRL201",
                    span(statement),
                    f"cudnn.benchmark = True {_CAUSE}; set it to False",
                    _replace(value) if isinstance(value, Constant) else None,
                )
        if isinstance(statement, If):
            yield from _assignments(context, statement.body, statement.orelse)
            yield from _assignments(context, statement.orelse, statement.body)
        else:
            for block in blocks(statement):
                yield from _assignments(context, block, other_branch)


def _sets(context: Context, statement: Assign) -> bool:
    return any(_SWITCH in context.project.names(context.path, target) for target in statement.targets)


def _switches_off(context: Context, statement: Statement) -> bool:
    if isinstance(statement, Assign) and _sets(context, statement):
        value = statement.value
        return isinstance(value, Constant) and value.value is False
    return any(_switches_off(context, inner) for block in blocks(statement) for inner in block)


def _is_true(context: Context, value: Expression | None) -> bool:
    """A literal, or a variable that is never anything but true."""
    if value is None:
        return False
    found = [each for _, each in context.project.values(context.path, value)]
    return all(isinstance(each, Constant) and each.value in (True, 1) for each in found)


def _call(context: Context, site: Site) -> Iterator[Finding]:
    flag = next((arg for arg in site.call.args if arg.keyword == "benchmark"), None)
    if flag is None or not (isinstance(flag.value, Constant) and flag.value.value is True):
        return
    if "torch.backends.cudnn.flags" in site.names:
        off = not any(arg.keyword in ("enabled", None) for arg in site.call.args)
        also = "; without enabled=True it also turns cuDNN off inside the block" if off else ""
        yield _argument(site, flag, f"cudnn.flags(benchmark=True) {_CAUSE}; pass benchmark=False{also}")
    elif (_TRAINERS | _TRAINERS_LONG).intersection(site.names):
        yield _argument(site, flag, f"Trainer(benchmark=True) {_CAUSE}; pass benchmark=False")


def _argument(site: Site, flag: Arg, message: str) -> Finding:
    return Finding("TRL201", span(site.call), message, _replace(flag.value))


def _replace(value: Expression) -> Fix:
    return Fix("set it to False", (Edit(span(value), "False"),), safe=False)
