"""Memory, resuming, the clock and tasks that run at the same time: TRL111 to TRL113, TRL506. All in modules that import torch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from benchmarks.plants import Edit, Operator, Plant, Source, word

_TORCH = r"^(?:import|from) torch\b"
_BACKWARD = r"\.backward\(\)"
_LISTS = (
    "names",
    "paths",
    "files",
    "rows",
    "items",
    "images",
    "texts",
    "samples",
    "filenames",
    "classes",
    "labels",
    "keys",
)
_SIZES = ("size", "num_classes", "n", "width", "dim", "length", "batch_size", "channels", "hidden_size", "n_classes")
_TASK = "\n\ndef planted_draw(each):\n    return {}\n"


def emptied(source: Source) -> Iterator[Plant]:
    """TRL111: memory that is added to is allocated without zeros."""
    for statement in source.nodes:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Attribute(attr="zeros", value=owner) as func) as call,
            ) if ast.unparse(owner) in ("torch", "np", "numpy") and not _is_bare(call):
                if (function := source.function(statement)) is not None and _is_added(
                    source, function, statement, name
                ):
                    start, end = source.span(func)
                    yield Plant((Edit(start, end, f"{source.segment(owner)}.empty"),))


def _is_bare(call: ast.Call) -> bool:
    """Whether a call allocates objects or no element."""
    said = [ast.unparse(each) for each in (*call.args, *(keyword.value for keyword in call.keywords))]
    return any(text in ("0", "object") or "(0" in text for text in said)


def _is_added(source: Source, function: ast.FunctionDef, made: ast.Assign, name: str) -> bool:
    """Whether the first use of a variable adds to it, in the block of its allocation or in a loop there."""
    uses = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name]
    later = sorted(
        (node for node in uses if node.lineno > made.lineno), key=lambda node: (node.lineno, node.col_offset)
    )
    if not later or any(node.lineno < made.lineno for node in uses):
        return False
    statement = source.statement(later[0])
    around = source.parents[statement]
    return (
        isinstance(statement, ast.AugAssign)
        and (
            around is source.parents[made]
            or (isinstance(around, ast.For) and source.parents[around] is source.parents[made])
        )
        and any(node is later[0] for node in ast.walk(statement.target))
        and all(source.function(node) is function for node in uses)
    )


def resumed(source: Source) -> Iterator[Plant]:
    """TRL112: the optimizer of a script that seeds is restored before it trains; once for a program, so not where one is."""
    if "load_state_dict" in source.text or "load_checkpoint" in source.text or "__main__" not in source.text:
        return
    for loop in _training_loops(source):
        for statement in _block(source, loop):
            match statement:
                case ast.Assign(targets=[ast.Name(id="optimizer")], value=ast.Call()) if statement.lineno < loop.lineno:
                    line = "optimizer.load_state_dict(planted_torch.load('planted.pt')['optimizer'])"
                    yield Plant((source.before(loop, [line]), source.importing("torch as planted_torch")))
                    break


def timed(source: Source) -> Iterator[Plant]:
    """TRL113: a loop that trains ends when the time is up."""
    for loop in _training_loops(source):
        lines = ["if planted_time.time() - planted_start > 3600:", "    break"]
        inside = source.before(loop.body[0], lines)
        start = source.before(loop, ["planted_start = planted_time.time()"])
        if not inside.text.split("if")[0].strip() and not start.text.split("planted")[0].strip():
            yield Plant((inside, start, source.importing("time as planted_time")))


def late(source: Source) -> Iterator[Plant]:
    """TRL113: the clock sets the flag that ends a loop."""
    for loop in _training_loops(source):
        lines = [
            "planted_late = planted_time.monotonic() > planted_end",
            "if planted_late:",
            "    print('out of time')",
            "    break",
        ]
        end = source.before(loop, ["planted_end = planted_time.monotonic() + 60.0"])
        yield Plant((source.before(loop.body[0], lines), end, source.importing("time as planted_time")))


def _training_loops(source: Source) -> Iterator[ast.For]:
    """The loops of which a statement of their own, or of a block in them, runs a backward pass."""
    for node in source.nodes:
        if isinstance(node, ast.For) and source.text[: source.span(node)[0]].rpartition("\n")[2].strip() == "":
            inside = [each for statement in node.body for each in ast.walk(statement)]
            trains = any(isinstance(each, ast.Call) and word(each.func) == "backward" for each in inside)
            if trains and node.body[0].lineno > node.lineno:
                yield node


def _block(source: Source, statement: ast.stmt) -> list[ast.stmt]:
    parent = source.parents[statement]
    return [each for each in ast.iter_child_nodes(parent) if isinstance(each, ast.stmt)]


def started(drawn: str, *lines: str) -> Operator:
    """TRL506: tasks over a list that a function is given, each of which draws."""

    def find(source: Source) -> Iterator[Plant]:
        modules = ("concurrent.futures", "multiprocessing", "threading", "random", "torch")
        imported = source.importing(
            *(f"{module} as planted_{module.rpartition('.')[2]}" for module in modules), "numpy as planted_numpy"
        )
        for statement, name in source.places(*_LISTS):
            written = source.before(statement, [line.format(name) for line in lines])
            yield Plant((written, imported, source.at_the_end(_TASK.format(drawn))))

    return Operator(f"{lines[0].split(' as ')[0]}: {drawn}", "TRL506", (_TORCH, rf"\b(?:{'|'.join(_LISTS)})\b"), find)


def allocated(*lines: str) -> Operator:
    """TRL111: memory of a size that a function is given is read."""

    def find(source: Source) -> Iterator[Plant]:
        imported = source.importing("torch as planted_torch", "numpy as planted_numpy")
        for statement, name in source.places(*_SIZES):
            yield Plant((source.before(statement, [line.format(name) for line in lines]), imported))

    return Operator(lines[0], "TRL111", (_TORCH, rf"\b(?:{'|'.join(_SIZES)})\b"), find)


OPERATORS = (
    Operator("zeros that are added to become empty", "TRL111", (_TORCH, r"\.zeros\(", r"\+="), emptied),
    allocated("planted = planted_torch.empty(3, {})", "planted_torch.save(planted.softmax(-1), 'planted.pt')"),
    allocated("planted = planted_numpy.empty({})", "for each in range({}):", "    planted[each] += each"),
    Operator("the optimizer is restored", "TRL112", (_TORCH, r"torch\.manual_seed", _BACKWARD), resumed),
    Operator("a loop ends when the time is up", "TRL113", (_TORCH, _BACKWARD), timed),
    Operator("a flag of the clock ends a loop", "TRL113", (_TORCH, _BACKWARD), late),
    started(
        "planted_torch.rand(1)",
        "with planted_futures.ThreadPoolExecutor() as pool:",
        "    planted = list(pool.map(planted_draw, {}))",
    ),
    started(
        "planted_random.random()",
        "planted = [planted_threading.Thread(target=planted_draw, args=(each,)) for each in {}]",
        "[each.start() for each in planted]",
    ),
    started(
        "planted_numpy.random.rand()",
        "with planted_multiprocessing.Pool() as pool:",
        "    planted = pool.map(planted_draw, {})",
    ),
)
