"""Constant propagation of strings: the literal texts that an expression may be, through options of the command line, configurations,
composed texts and the parts of a dotted name.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import product

from torchrepro_lint import limits
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.configurations import Configurations
from torchrepro_lint.resolve.symbols import NAMES, ClassHierarchy
from torchrepro_lint.syntax.cli_options import Options, entry_of_vars, read_part
from torchrepro_lint.syntax.definitions import Keys, unpacking_keys
from torchrepro_lint.syntax.nodes import (
    Arg,
    Attribute,
    Call,
    Collection,
    Constant,
    Expression,
    Operation,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import Root, enclosing_function
from torchrepro_lint.syntax.summary import is_test
from torchrepro_lint.syntax.visitor import cut_at_last, is_none, last_identifier, receiver_of, text_parts

# Methods that split a dotted name.
_SPLITS = frozenset({"rsplit", "rpartition", "split"})
_ANY = "\0"  # stands for any text among those that an expression may be


class LiteralTexts(ClassHierarchy):
    """The literal texts of a project's expressions, on top of its class hierarchy."""

    @abstractmethod
    def elements(self, path: str, container: Expression, keys: Keys) -> Iterable[tuple[str, Expression]]:
        """The elements of a container under some keys, each with its file."""

    def displays(self, path: str, value: Expression) -> Iterable[tuple[str, Collection]]:
        """The literal displays that an expression may be, each with its file: itself, or the values of its variable."""
        return ((file, found) for file, found in self.values(path, value) if isinstance(found, Collection))

    def unpacking(self, path: str, root: Root, value: Expression) -> Keys | None:
        """The keys by which a variable gets its part of a value, or None; see ``unpacking_keys``."""
        functions = self.functions(path + enclosing_function(root))
        bodies = [each.body for each in functions] or [self.modules.files[path].body]
        return next((keys for body in bodies if (keys := unpacking_keys(body, root, value)) is not None), None)

    def literal_texts(self, path: str, key: Expression, *, whole: bool = False) -> tuple[str, ...]:
        """The strings that an expression may be, from literals and from the literals of options; with ``whole`` none, if it may be others."""
        texts = (key.value,) if isinstance(key, Constant) else self._texts(path, key, 0)
        return () if whole and _ANY in texts else tuple(one for one in texts if isinstance(one, str) and one != _ANY)

    @query(cutoff=True, cycle=NAMES)
    def _texts(self, path: str, key: Expression, depth: int) -> Iterable[str]:
        self.modules.reads.record_read(path)  # the key is a node of this file
        found, files = set[str](), self.modules.files
        for file, value in self.values(path, key):
            # What only a test passes says nothing of what programs do.
            if file != path and is_test(file, files[file].summary) and not is_test(path, files[path].summary):
                continue
            options = self.options.of(file, self._as_attribute(file, value))
            literals = (value, *(each for option in options for each in option.literals))
            texts = {each.value for each in literals if isinstance(each, Constant) and isinstance(each.value, str)}
            texts.update(self._configured_texts(file, value), self._split_texts(file, value, depth))
            whole = text_parts(value) if depth < limits.MAX_TEXT_DEPTH else ()
            if 0 < len(whole) < limits.MAX_TEXT_PARTS:
                parts = ({one} if isinstance(one, str) else self._texts(file, one, depth + 1) for one in whole)
                texts.update("".join(each) for each in product(*parts) if _ANY not in each)
            found |= texts or ({_ANY} if not isinstance(value, Constant) else set())
        return found

    def _as_attribute(self, path: str, value: Expression) -> Expression:
        """``args.net`` of ``config["net"]``, where ``config = vars(args)``; any other expression as it is."""
        match value:
            case Subscript(value=table, indices=(Constant(value=str(word)),)):
                entries = (entry_of_vars(made, word) for _, made in self.values(path, table))
                return next((each for each in entries if each is not None), value)
        return value

    def _configured_texts(self, path: str, value: Expression) -> Iterable[str]:
        """The texts that an expression has from a configuration."""
        # An attribute of the receiver, ``self.name``, is no part of a configuration, which ``self`` is not.
        if read_part(value) is not None or (
            isinstance(value, Ref) and value.path and (len(value.path) > 1 or not self.starts_at_receiver(path, value))
        ):
            return self._find_configured_texts(path, value)
        return ()

    @query(cutoff=True, cycle=NAMES)
    def _find_configured_texts(self, path: str, value: Expression) -> Iterable[str]:
        self.modules.reads.record_read(path)  # the value is a node of this file
        return self.configurations.texts(path, value)

    def _split_texts(self, path: str, value: Expression, depth: int) -> Iterator[str]:
        """The module and the class of ``module, cls = text.rsplit(".", 1)``, and of ``parts = text.split(".")``; the items of a list, and
        what a variable gets of each, or of a result that is destructured; ``TABLE[key][0]``.
        """
        match value:
            case Ref(roots=(root,), path=()):
                for how, made in self.assigned(path + root) if depth < limits.MAX_TEXT_SPLITS else ():
                    if how == "[]" and isinstance(made, Call) and last_identifier(made.func) in _SPLITS:
                        yield from self._pieces(path, made, self.unpacking(path, root, made) == (0,), depth)
                    elif how == "[]":
                        yield from self._listed_texts(path, made)
                        is_local = isinstance(made, Call) or (isinstance(made, Ref) and not made.path)
                        keys = self.unpacking(path, root, made) if is_local else None
                        for file, part in self.elements(path, made, keys) if keys else ():
                            yield from (text for text in self._texts(file, part, depth + 1) if text != _ANY)
            case Subscript(value=parts, indices=(Constant(value=int() as index),)) if -2 < index < 3:
                yield from self._of_parts(path, parts, index, depth)
            case Subscript(value=table, indices=(Ref(),)):
                yield from self._listed_texts(path, table, ("dict",))
            case Subscript() if (cut := cut_at_last(value)) is not None:
                yield from self._pieces(path, *cut, depth)
            case Call(
                func=Attribute(value=Constant(value="."), name="join"),
                args=(Arg(value=Subscript(value=parts, indices=(cut,))),),
            ):
                begins = isinstance(cut, Operation) and cut.op == ":" and is_none(cut.operands[0])
                yield from self._of_parts(path, parts, 0 if begins else -1, depth)

    def _listed_texts(self, path: str, listed: Expression, kinds: tuple[str, ...] = ("list", "tuple")) -> Iterator[str]:
        """The texts in a literal list or tuple, ``for name in ["train", "test"]``, or the values of a dictionary."""
        for _, found in self.values(path, listed):
            items = found.items if isinstance(found, Collection) and found.kind in kinds else ()
            picked = items[1::2] if "dict" in kinds else items
            yield from (each.value for each in picked if isinstance(each, Constant) and isinstance(each.value, str))

    def _of_parts(self, path: str, parts: Expression, index: int, depth: int) -> Iterator[str]:
        for file, made in self.values(path, parts) if depth < limits.MAX_TEXT_SPLITS else ():
            if isinstance(made, Call) and last_identifier(made.func) in _SPLITS:
                yield from self._pieces(file, made, index == 0, depth)
            elif isinstance(made, Subscript):
                yield from (text for _, table in self.displays(file, made.value) for text in _column(table, index))

    def _pieces(self, path: str, call: Call, first: bool, depth: int) -> Iterator[str]:
        match call.args:
            case (Arg(value=Constant(value="." | ":" as mark)), *_) if (split := receiver_of(call.func)) is not None:
                for text in (each for each in self._texts(path, split, depth + 1) if each != _ANY):
                    before, _, after = text.rpartition(mark)
                    yield before if first else after

    @cached_property
    def options(self) -> Options:
        """The command-line options that the project declares."""
        with self.modules.reads.untracked():
            return Options(self.modules.files)

    @cached_property
    def configurations(self) -> Configurations:
        """The configurations of the project."""
        return Configurations(self)


def _column(table: Collection, index: int) -> Iterator[str]:
    """The texts at a place of the rows of a dictionary: ``{"digits": ("data.digits", "Digits")}``."""
    for row in table.items[1::2] if table.kind == "dict" else ():
        cells = row.items if isinstance(row, Collection) and row.kind in ("list", "tuple") else ()
        cell = cells[index] if -len(cells) <= index < len(cells) else None
        if isinstance(cell, Constant) and isinstance(cell.value, str):
            yield cell.value
