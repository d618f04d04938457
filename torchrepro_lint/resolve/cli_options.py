"""Command-line options: those that a project declares with argparse, click or absl."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torchrepro_lint.syntax.nodes import Attribute, Call, Expression, Ref, SyntaxTree
from torchrepro_lint.syntax.qualified_names import is_local, simple_name
from torchrepro_lint.syntax.summary import Option, is_click, option_of
from torchrepro_lint.syntax.visitor import body_expressions


class Options:
    """The options of a project, by word; a file is looked into when one of its options is asked for."""

    def __init__(self, files: Mapping[str, SyntaxTree]) -> None:
        self._files = files
        self._declared: dict[str, tuple[Option, ...]] = {}
        self._paths: dict[str, list[str]] = {}
        for path in sorted(files):
            for word in files[path].summary.options:
                self._paths.setdefault(word, []).append(path)

    def forget(self, path: str) -> None:
        """Drop the options of a changed file, which declares the same words as before."""
        self._declared.pop(path, None)

    def named(self, word: str) -> list[Option]:
        """The options that are read by a word, in the order of files and declarations."""
        return [
            option for path in self._paths.get(word, ()) for option in self.declared_in(path) if option.word == word
        ]

    @property
    def words(self) -> list[str]:
        """The words by which the options of the project are read, sorted."""
        return sorted(self._paths)

    def declared_in(self, path: str) -> tuple[Option, ...]:
        """The options that a file declares."""
        if path not in self._declared:
            options = self._files[path].summary.options
            self._declared[path] = tuple(_declared(path, self._files[path])) if options else ()
        return self._declared[path]

    def of(self, path: str, expression: Expression) -> tuple[Option, ...]:
        """The options that ``args.arch``, ``args["arch"]`` or a click parameter ``arch`` of a file may read.

        A file that declares such an option reads its own; else it may be any of the project.
        """
        match expression:
            case Ref(path=(*_, word)) | Attribute(name=word):
                found = self.named(word)
            case Ref(roots=roots, path=()) if is_local(roots[0]):
                found = [each for each in self.named(simple_name(roots[0])) if is_click(each.call)]
            case _:
                return ()
        own = tuple(each for each in found if each.path == path)
        return own or tuple(found)


def _declared(path: str, facts: SyntaxTree) -> Iterator[Option]:
    bodies = [("", facts.body), *((each.name, each.body) for each in facts.functions)]
    for function, body in bodies:
        for each in body_expressions(body):
            if isinstance(each, Call) and (option := option_of(path, function, each)):
                yield option
