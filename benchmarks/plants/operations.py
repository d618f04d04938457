"""Operations of the catalogue at a place where a tensor is at hand that needs a gradient: TRL401 to TRL406.

They are planted into the ``forward`` of networks, where what the network is called with is such a tensor, as long as it is
not bound to something else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from benchmarks.plants import Operator, Plant, Source, body, word

_NETWORK = r"\bdef forward\("
_TENSORS = ("x", "input", "inputs", "feat", "features", "hidden_states", "img", "query", "src")
_ANNOTATED = re.compile(r"(torch\.)?Tensor")
# What the lines call torch, its functions, and so many rows of the tensor.
_MODULES = ("torch as planted_torch", "torch.nn.functional as planted_f")
_ROWS = "planted_rows = planted_torch.zeros(4, dtype=planted_torch.long, device={0}.device)"


def computed(*lines: str, with_rows: bool = False) -> Callable[[Source], Iterator[Plant]]:
    """Lines that compute something of the tensor ``{0}`` and hand it on in the network's own."""

    def find(source: Source) -> Iterator[Plant]:
        for statement, name in _places(source):
            written = [*([_ROWS] if with_rows else []), *lines]
            edit = source.before(statement, [line.format(name) for line in written])
            yield Plant((edit, source.importing(*_MODULES)))

    return find


def _places(source: Source) -> Iterator[tuple[ast.stmt, str]]:
    """Statements of ``forward`` methods before which a parameter still holds a tensor, with its name."""
    for function in source.functions:
        if function.name == "forward" and not function.decorator_list and _is_network(source.parents[function]):
            name = _tensor(source, function)
            for statement in body(function) if name else ():
                if source.before(statement, [""]).start + statement.col_offset == source.span(statement)[0]:
                    yield statement, name
                if _ends(statement, name):
                    break


def _is_network(owner: ast.AST) -> bool:
    return isinstance(owner, ast.ClassDef) and any(word(base) == "Module" for base in owner.bases)


def _tensor(source: Source, function: ast.FunctionDef) -> str:
    """The first parameter, where it is annotated as a tensor, or called as one and only handed to layers."""
    parameters = function.args.args[1:2]
    if not parameters or parameters[0].arg not in _TENSORS:
        return ""
    name, annotation = parameters[0].arg, parameters[0].annotation
    if annotation is not None:
        return name if _ANNOTATED.fullmatch(source.segment(annotation)) else ""
    text = source.segment(function)
    other = re.search(
        rf"isinstance\({name}\b|\bin {name}\b|\*{name}\b|{name}\[\"|len\({name}\)|{name}\[\d+\]|{name}\[-", text
    )
    return name if re.search(rf"self\.\w+\({name}\)", text) and other is None else ""


def _ends(statement: ast.stmt, name: str) -> bool:
    """Whether a statement may leave, or binds the name to what is not made of it by a call or an operator."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Return | ast.Raise):
            return True
        if isinstance(node, ast.Assign) and any(name == each.id for each in _names(node.targets)):
            plain = all(isinstance(target, ast.Name) for target in node.targets)
            return not plain or not isinstance(node.value, ast.Call | ast.BinOp)
    return False


def _names(targets: list[ast.expr]) -> Iterator[ast.Name]:
    for target in targets:
        yield from (node for node in ast.walk(target) if isinstance(node, ast.Name))


def _operator(name: str, code: str, *lines: str, with_rows: bool = False) -> Operator:
    return Operator(name, code, (_NETWORK,), computed(*lines, with_rows=with_rows))


OPERATORS = (
    _operator("index_select", "TRL401", "{0} = {0} + planted_torch.index_select({0}, 0, planted_rows).sum()", with_rows=True),
    _operator("index_select of a method", "TRL401", "{0} = {0} + {0}.index_select(-1, planted_rows).mean()", with_rows=True),
    _operator("antialias", "TRL402", '{0} = planted_f.interpolate({0}, scale_factor=2.0, mode="bilinear", antialias=True)'),
    _operator("adaptive max pooling", "TRL402", "{0} = {0} + planted_f.adaptive_max_pool2d({0}, 1)"),
    _operator("grid_sample", "TRL402", "{0} = planted_f.grid_sample({0}, {0}.new_zeros(1, 4, 4, 2), align_corners=False)"),
    _operator("median along a dimension", "TRL402", "{0} = {0} - planted_torch.median({0}, dim=-1, keepdim=True)[0]"),
    _operator("median of a method", "TRL402", "{0} = {0}.unsqueeze(0)", "{0} = {0}.median(dim=0).values"),
    _operator("median of an unbound method", "TRL402", "{0} = {0} - planted_torch.Tensor.median({0}, -1, True)[0]"),
    _operator("histogram of an unbound method", "TRL402", "{0} = {0} + planted_torch.Tensor.histc({0}, 4).sum()"),
    _operator("histogram", "TRL402", "{0} = {0} + planted_torch.histc({0}, 4).sum()"),
    _operator("product by scattering", "TRL402",
              'planted = {0}.flatten()[:4].scatter_reduce(0, planted_rows, {0}.flatten()[:4], reduce="prod")',
              "{0} = {0} + planted.sum()", with_rows=True),
    _operator("weighted counts", "TRL402",
              "{0} = {0} + planted_torch.bincount(planted_rows, weights={0}.flatten()[:4]).sum()", with_rows=True),
    _operator("cumsum", "TRL403", "{0} = planted_torch.cumsum({0}, dim=-1)"),
    _operator("cumsum of a method", "TRL403", "{0} = {0}.unsqueeze(0).cumsum(1).squeeze(0)"),
    _operator("cumsum of an unbound method", "TRL403", "{0} = planted_torch.Tensor.cumsum({0}, -1)"),
    _operator("rows that are written", "TRL403",
              "planted = {0}.new_zeros(9)", "planted[planted_rows] = {0}.flatten()[:4]",
              "{0} = {0} + planted.sum()", with_rows=True),
    _operator("columns that are written", "TRL403",
              "planted = {0}.new_zeros(2, 9)", "planted[:, planted_rows] = {0}.flatten()[:8].view(2, 4)",
              "{0} = {0} + planted.sum()", with_rows=True),
    _operator("pairs that are written", "TRL403",
              "planted = {0}.new_zeros(9, 9)", "planted[planted_rows, planted_rows] = {0}.flatten()[:4]",
              "{0} = {0} + planted.sum()", with_rows=True),
    _operator("index_add", "TRL403", "{0} = {0} + {0}.new_zeros(9).index_add_(0, planted_rows, {0}.flatten()[:4]).sum()",
              with_rows=True),
    _operator("gather", "TRL403", "{0} = {0} + planted_torch.gather({0}.flatten(), 0, planted_rows).sum()", with_rows=True),
    _operator("reflection", "TRL403", '{0} = planted_f.pad({0}, (1, 1, 1, 1), mode="reflect")'),
    _operator("cross entropy of images", "TRL404",
              "planted = {0}.reshape(1, 2, 2, -1)",
              "{0} = {0} + planted_f.cross_entropy(planted, planted.detach().argmax(1))"),
    _operator("pooling to more than one", "TRL404", "{0} = {0} + planted_f.adaptive_avg_pool1d({0}.flatten(1), 5).sum()"),
    _operator("pooling in three dimensions", "TRL404", "{0} = {0} + planted_f.max_pool3d({0}.unsqueeze(2), 1).sum()"),
    _operator("order of ties", "TRL406", "planted = {0}.flatten(1).topk(1).indices", "{0} = {0} + planted.sum()"),
)  # fmt: skip
