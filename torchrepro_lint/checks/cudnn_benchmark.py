"""TRL201: cuDNN is told to choose algorithms by timing them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.facts import Assign, Collection, Constant, Expression, If, Statement, span
from torchrepro_lint.rule import Finding
from torchrepro_lint.text import Edit, Fix
from torchrepro_lint.truth import Setting, constant_truth
from torchrepro_lint.walk import blocks, bodies, statements

if TYPE_CHECKING:
    from torchrepro_lint.facts import Arg
    from torchrepro_lint.project import Site
    from torchrepro_lint.rule import Context

_SWITCH = "torch.backends.cudnn.benchmark"
_TRAINERS = frozenset(
    f"{package}{module}.Trainer"
    for package in ("lightning.pytorch", "pytorch_lightning")
    for module in ("", ".trainer", ".trainer.trainer")
) | {"lightning.Trainer"}
_CAUSE = "lets cuDNN pick algorithms by timing them, which differs between runs"


def check(context: Context) -> Iterator[Finding]:
    """Assignments of the switch, ``cudnn.flags`` and Lightning's ``Trainer``."""
    facts = context.facts
    for body in bodies(facts) if "benchmark" in facts.summary.values else ():
        yield from _assignments(context, body, other_branch=())
    for site in context.project.calls(context.path):
        yield from _call(site)


def _assignments(
    context: Context, body: tuple[Statement, ...], other_branch: tuple[Statement, ...]
) -> Iterator[Finding]:
    for statement in body:
        if isinstance(statement, Assign):
            value = _value_set(context, statement)
            if value is not None and _is_true(context, value) and not _has_off(context, other_branch):
                fix = _replace(value) if isinstance(value, Constant) else None
                yield Finding("TRL201", span(statement), f"cudnn.benchmark = True {_CAUSE}; set it to False", fix)
        if isinstance(statement, If):
            truth = constant_truth(statement.test, Setting(main=True, torch=context.catalogue.version))
            if truth is not False:
                yield from _assignments(context, statement.body, statement.orelse)
            if truth is not True:
                yield from _assignments(context, statement.orelse, statement.body)
        else:
            for block in blocks(statement):
                yield from _assignments(context, block, other_branch)


def _value_set(context: Context, statement: Assign) -> Expression | None:
    """What an assignment gives the switch, alone, in a chain or in a tuple; None where it sets something else."""
    for target in statement.targets:
        if _is_switch(context, target):
            return statement.value
        if isinstance(target, Collection) and isinstance(statement.value, Collection):
            for item, value in zip(target.items, statement.value.items, strict=False):
                if item is not None and _is_switch(context, item):
                    return value
    return None


def _is_switch(context: Context, target: Expression) -> bool:
    return _SWITCH in context.project.names(context.path, target)


def _has_off(context: Context, body: tuple[Statement, ...]) -> bool:
    """Whether statements set the switch to a literal False."""
    for statement in statements(body):
        if isinstance(statement, Assign):
            value = _value_set(context, statement)
            if isinstance(value, Constant) and value.value is False:
                return True
    return False


def _is_true(context: Context, value: Expression) -> bool:
    """A literal, or a variable that is never anything but true."""
    found = [each for _, each in context.project.values(context.path, value)]
    return all(isinstance(each, Constant) and each.value in (True, 1) for each in found)


def _call(site: Site) -> Iterator[Finding]:
    if "torch.backends.cudnn.flags" in site.names:
        given = {arg.keyword: arg for arg in site.call.args if arg.keyword}
        given |= dict(zip(("enabled", "benchmark"), (arg for arg in site.call.args if not arg.keyword), strict=False))
        also = "" if "enabled" in given else "; without enabled=True it also turns cuDNN off inside the block"
        message = f"cudnn.flags(benchmark=True) {_CAUSE}; pass benchmark=False{also}"
    elif _TRAINERS.intersection(site.names):
        given = {arg.keyword: arg for arg in site.call.args if arg.keyword}
        message = f"Trainer(benchmark=True) {_CAUSE}; pass benchmark=False"
    else:
        return
    flag = given.get("benchmark")
    if flag is not None and isinstance(flag.value, Constant) and flag.value.value is True:
        yield _argument(site, flag, message)


def _argument(site: Site, flag: Arg, message: str) -> Finding:
    return Finding("TRL201", span(site.call), message, _replace(flag.value))


def _replace(value: Expression) -> Fix:
    return Fix("set it to False", (Edit(span(value), "False"),), safe=False)
