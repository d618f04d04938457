"""Taint sinks in words: what an arbitrary order decides in the end, by the name that the program gives it.

Of a module that has nothing to do with torch only what it writes into a file counts: the data that a training run reads.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from functools import partial

from torchrepro_lint import limits
from torchrepro_lint.dataflow.constants import describe
from torchrepro_lint.dataflow.taint.analysis import TaintFlow
from torchrepro_lint.dataflow.taint.callee_effects import append_places, tells
from torchrepro_lint.dataflow.taint.context import Sink, TaintedValue, TaintedVariable
from torchrepro_lint.dataflow.taint.effects import SERIALISERS
from torchrepro_lint.dataflow.taint.transfer import OrderTaint, file_printed_to
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Message, Reference
from torchrepro_lint.syntax.nodes import Assign, Call, Constant, Expression, Operation, Ref, Subscript
from torchrepro_lint.syntax.qualified_names import in_project, path_of, readable_name
from torchrepro_lint.syntax.summary import has_word
from torchrepro_lint.syntax.visitor import last_identifier, receiver_of

# Calls that write data into a file, by name, and methods of objects that are not known.
DATA_WRITERS = lazy_pattern(
    r"numpy\.(save|savez|savez_compressed|savetxt)|torch\.save|safetensors(\.\w+)*\.save_file|"
    rf"{SERIALISERS}\.(safe_)?dump|"
    r"scipy\.(io\.savemat|sparse\.save_npz)|pyarrow\.(\w+\.)*write_\w+|"
    r"(builtins|io|gzip|bz2|lzma|codecs)\.(open|\w+File|TextIOWrapper)\(\)\.write(lines)?|"
    r"pathlib\.\w+\(\)\.(write_text|write_bytes|open\(\)\.write(lines)?)|"
    r"(cv2|imageio(\.v[23])?|skimage\.io|scipy\.misc|matplotlib\.(pyplot|image)|tifffile)\.im(save|write)|PIL\.Image(\.\w+)+\(\)(\.\w+\(\))*\.save|"
    r"imageio(\.v[23])?\.mim(save|write)|imageio\.(\w+\.)*get_writer\(\)\.append_data|cv2\.VideoWriter\(\)\.write|"
    r"csv\.(writer|DictWriter)\(\)\.writerows?|h5py\.\w+\(\)(\.\w+\(\))*\.create_dataset|webdataset\.\w+\(\)\.write"
)
_WRITING_METHODS = frozenset(
    {"to_csv", "to_json", "to_parquet", "to_pickle", "to_feather", "to_hdf", "tofile", "writelines", "writerow"}
    | {"writerows", "write_text", "save_to_disk", "create_dataset", "write_csv", "write_parquet"}
)
_WRITING_WORDS = _WRITING_METHODS | frozenset(
    {"write", "dump", "safe_dump", "save", "savez", "savez_compressed", "savetxt", "savemat"}
    | {"imsave", "imwrite", "mimsave", "mimwrite", "append_data"}
)
# Files that no training run reads, and folders and files of a project that prepare no data.
_DOCUMENTS = lazy_pattern(
    r"(?i).*\.(md|rst|html?|log|lock|py|pyi|sh|tex|css|js|ts|svg|toml|cfg|ini|c|cpp|h|cu|cmake|ipynb)"
)
_PAGES = lazy_pattern(r"(?i).*\.(md|rst|html?|tex|log)")
_ASIDE = lazy_pattern(
    r"(.*/)?((tests?|docs?|\.\w+|ci)/.*|(test_\w+|\w+_test|setup|conftest|conf|noxfile|versioneer)\.py)"
)


def decisive_sink(project: TaintFlow, path: str, start: Iterable[TaintedValue | Sink]) -> Sink | None:
    """The first sink that counts for what a file taints: any in a module of torch, else data that is written into a file."""
    if path in project.torch_modules:
        return project.taint.first_sink(start, lambda taken: not _writes_page(project, taken))
    return project.taint.first_sink(start, partial(is_data_written, project))


def is_followed_in(project: TaintFlow, path: str) -> bool:
    """Whether orders count in a file: it imports torch, such a file imports it, or it may prepare the data of a project that
    uses torch.
    """
    return path in project.torch_modules or (project.resolver.modules.uses_torch and prepares_data(path))


def may_decide(project: TaintFlow, path: str) -> bool:
    """Whether orders count in a file, and by its words it may write a file where nothing else counts."""
    if path in project.torch_modules or not is_followed_in(project, path):
        return path in project.torch_modules
    summary = project.resolver.modules.summary(path)
    return has_word(summary.keywords, "file") or any(has_word(summary.calls, word) for word in _WRITING_WORDS)


def prepares_data(path: str) -> bool:
    """Whether a file may prepare what a training run reads: not a test, a page, or a script that builds the package."""
    return _ASIDE.fullmatch(path) is None


def is_data_written(project: TaintFlow, taken: Sink) -> bool:
    """Whether a sink is the content of a file that is written as data, perhaps by a function of the project that appends to it."""
    if not isinstance(taken.node, Call) or taken.kind != "appended":
        return isinstance(taken.node, Call) and writes_data(project, taken.path, taken.node)
    places = _destinations(project, taken.path, taken.node)
    return not any(_DOCUMENTS.fullmatch(each) or tells(posixpath.basename(each)) for each in places)


def writes_data(project: TaintFlow, path: str, call: Call) -> bool:
    """Whether a call writes data into a file: not a page of documentation, a program or a log."""
    names = project.names(path, call.func)
    writes = any(map(DATA_WRITERS.fullmatch, names)) or file_printed_to(project.resolver, path, call) is not None
    writes = writes or (last_identifier(call.func) in _WRITING_METHODS and not any(map(in_project, names)))
    return writes and not any(_DOCUMENTS.fullmatch(text) for text in _destinations(project, path, call))


def _writes_page(project: TaintFlow, taken: Sink) -> bool:
    """Whether a sink is the text of a page or of a log, which only people read."""
    call = taken.node
    if taken.kind == "appended":
        return not is_data_written(project, taken)
    return (
        isinstance(call, Call)
        and last_identifier(call.func) in ("write", "writelines", "write_text", "print")
        and any(_PAGES.fullmatch(text) for text in _destinations(project, taken.path, call))
    )


def _destinations(project: TaintFlow, path: str, call: Call) -> Iterator[str]:
    """The literal ends of the paths that a call may write to: its own arguments, and those of the ``open`` before, or of the function of
    the project that it calls.
    """
    for name in filter(in_project, project.names(path, call.func)):
        for where in append_places(project.resolver, name):
            yield from _ends(project, path_of(name), where)
    for value in (*(arg.value for arg in call.args), receiver_of(call.func)):
        if value is not None:
            yield from _ends(project, path, value)
            for file, made in (*project.resolver.values(path, value), *_entered(project, path, value)):
                match made:
                    case Call(func=func, args=args) if last_identifier(func) == "open":
                        for place in (*(arg.value for arg in args[:1]), receiver_of(func)):
                            yield from _ends(project, file, place) if place is not None else ()


def _entered(project: TaintFlow, path: str, value: Expression) -> Iterator[tuple[str, Expression]]:
    """The context managers that a ``with`` statement binds to a variable."""
    for root in value.roots if isinstance(value, Ref) and not value.path else ():
        yield from ((path, made) for how, made in project.resolver.assigned(path + root) if how == "with")


def _ends(project: TaintFlow, path: str, value: Expression, depth: int = 0) -> Iterator[str]:
    """The literal texts with which a path may end."""
    match value:
        case Constant(value=str(text)):
            yield text
        case Operation(op="f" | "+" | "/" | "%", operands=(*_, last)) if depth < limits.MAX_FILE_NAME_DEPTH:
            yield from _ends(project, path, last, depth + 1)
        case Call(args=(*_, last)) if depth < limits.MAX_FILE_NAME_DEPTH:
            yield from _ends(project, path, last.value, depth + 1)
        case Ref() if depth < limits.MAX_FILE_NAME_DEPTH:
            for file, each in project.resolver.values(path, value):
                if (file, each) != (path, value):
                    yield from _ends(project, file, each, depth + 1)
            if (default := project.resolver.default(path, value)) is not None:
                yield from _ends(project, path, default, depth + 1)


# Longer names are not repeated in a message.
_LONGEST_NAME = 40


def describe_sink(project: TaintFlow, path: str, at: Expression, taken: Sink) -> str:
    """What follows "an order, which …": ``decides the order of `vocab`, passed to `json.dump` (train.py:12)``.

    The place is left out where it is the line of ``at``, the expression of ``path`` at which the finding is reported.
    """
    value = taken.value
    if value is not None and value.taint.kind == "scalar" and value.ordered is not None:
        # One element is taken out in the end: what has the order is the list that it is taken out of.
        listed = value.ordered
        said, file, start = f"decides the order of `{_name_of(listed)}`", listed.path, listed.node.start
    else:
        said, file, start = _SinkTexts(project, taken).said(), taken.path, taken.node.start
    line = project.position(file, start).line
    if file == path and line == project.position(path, at.start).line:
        return said
    return Message(said, " (", Reference(file, line), ")")


def _name_of(variable: TaintedVariable) -> str:
    """A variable as the program writes it."""
    words = variable.node.path
    return describe(variable.node._replace(path=words[: len(words) - len(variable.attributes)]))


class _SinkTexts:
    """The texts of one sink; the subject is the variable of the sink's own function that holds the value, if one does."""

    def __init__(self, project: TaintFlow, taken: Sink) -> None:
        self._project, self._taken = project, taken
        self._spots = project.uses.spots(taken.path)
        self._name = self._held_by()
        held = taken.value.held if taken.value is not None else None
        self._subject = f"{_decided(held.taint)} `{self._name}`" if self._name and held is not None else ""

    def said(self) -> str:
        node = self._taken.node
        callee = self._callee(node.func) if isinstance(node, Call) else ""
        match self._taken.kind:
            case "passed on":
                return self._passed(callee)
            case "returned":
                return self._returned()
            case "stored":
                whole = node.value if isinstance(node, Subscript) else node
                return f"decides which elements of `{describe(whole)}` are set"
            case "drawn from":
                return f"decides what `{callee}` draws" + (f" from `{self._name}`" if self._name else "")
            case "drawn for":
                return f"decides the order in which `{callee}` draws"
            case "trained with":
                return f"decides the order in which `{callee}` trains"
            case "registered":
                return f"decides the order of what `{callee}` registers"
        return f"decides the order in which `{callee}` writes"

    def _passed(self, callee: str) -> str:
        whole = self._taken.value is not None and isinstance(self._taken.value.node, Ref)
        if self._subject:
            return f"decides {self._subject}, {'passed to' if whole else 'used in the call to'} `{callee}`"
        verb = "is" if self._is_order() else "decides what is"
        return f"{verb} passed to `{callee}`{self._purpose()}"

    def _returned(self) -> str:
        spot = self._spots.of(self._taken.node)
        function = readable_name(spot.function) if spot is not None else ""
        if self._subject:
            return f"decides {self._subject}" + (f", returned from `{function}`" if function else "")
        what = "the order of what" if self._is_order() else "what"
        return f"decides {what} `{function}` returns" if function else "is returned"

    def _held_by(self) -> str:
        """The variable that holds the value, as the program writes it, if it is one of the sink's own function."""
        held = self._taken.value.held if self._taken.value is not None else None
        if held is None or held.path != self._taken.path:
            return ""
        there, here = self._spots.of(held.node), self._spots.of(self._taken.node)
        if here is None or there is None or there.function != here.function:
            return ""
        name = _name_of(held)
        return name if len(name) <= _LONGEST_NAME else ""

    def _is_order(self) -> bool:
        return self._taken.value is None or self._taken.value.taint.is_unordered

    def _purpose(self) -> str:
        """`` for `dataset``` of ``dataset = Images(...)``."""
        spot = self._spots.of(self._taken.node)
        match spot.statement if spot is not None else None:
            case Assign(targets=(Ref() as target,), value=value) if value == self._taken.node:
                return f" for `{describe(target)}`"
        return ""

    def _callee(self, func: Expression) -> str:
        """A callee as the program writes it."""
        written = self._project.text(self._taken.path)[func.start : func.end]
        return written if len(written) <= _LONGEST_NAME and written.isprintable() else describe(func)


def _decided(taint: OrderTaint) -> str:
    """What an order decides of a variable."""
    if taint.is_unordered:
        return "the order of"
    if taint.kind in ("plain", "table"):
        return "the order inside" if any(inner.is_unordered for _, inner in taint.contents) else "the values in"
    return "the value of"
