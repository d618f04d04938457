"""The memo tables of the program index: what stays of name resolution when one of a project's files changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from torchrepro_lint.all_calls import AllCalls, Calls
from torchrepro_lint.mentions import mentioned_words
from torchrepro_lint.modules import Modules
from torchrepro_lint.names import Names
from torchrepro_lint.query.memo_tables import Answers, Kept

if TYPE_CHECKING:
    from torchrepro_lint.module_tree import ModuleTree
    from torchrepro_lint.sites import Called, Site
    from torchrepro_lint.syntax.nodes import Facts, Summary

# The calls of all files take a quarter of the memory of their facts. A run goes by most of them once; after an edit they are
# asked for again.
_MOST_FILES = 64


class Table(Protocol):
    """A memo table that is told of changes."""

    def drop(self, changed: int) -> None:
        """Forget what was worked out from anything that has changed."""
        ...


class IndexTables:
    """The names of a project, and what is worked out with them file by file, each with what it was worked out from.

    ``tree`` is that of the whole project, ``torch`` the target release. With ``keeps``
    answers are kept together with what they were worked out from, which costs time and is needed for ``replace`` alone;
    with ``firm`` fewer are worked out again (see ``memo``), which pays where files change often.

    Layers above add tables of their own: whatever ``_tables`` gives is told of each change.
    """

    def __init__(
        self,
        files: Mapping[str, Facts],
        tree: ModuleTree,
        torch: str,
        *,
        keeps: bool = False,
        firm: bool = False,
    ) -> None:
        self.names = Names(Modules(files, tree, keeps=keeps, firm=firm), torch)
        reads = self.names.modules.reads
        most = None if firm else _MOST_FILES
        self.sites: Kept[str, tuple[Site, ...]] = Kept(reads, most)
        self.called: Kept[str, tuple[Called, ...]] = Kept(reads, most)
        self.calls: Kept[str, Calls] = Kept(reads)
        # What has changed since what is recalled was written down.
        self.changed = 0
        self.all_calls = AllCalls()
        # What is asked of each file, by the name of the question and the file.
        self.of_files: Kept[tuple[str, str], Any] = Kept(reads)
        # What the project asks of all files, by the name of the question.
        self.answers = Answers(reads)

    @property
    def files(self) -> Mapping[str, Facts]:
        """The facts of all files by path."""
        return self.names.modules.files

    def follow(self, files: Mapping[str, Facts]) -> bool:
        """Take over what ``files`` say. Returns false where others are there than before, or a change concerns all of them:
        then nothing of it is of use any more.
        """
        if files.keys() != self.files.keys():
            return False
        known = self.names.modules.peek
        return all(self.replace(path, facts) for path, facts in sorted(files.items()) if known(path) is not facts)

    def settle(self, files: Mapping[str, Facts]) -> None:
        """Work out what ``follow`` compares, for answers that were taken up and that may have been worked out from it."""
        known = self.names.modules
        if any(
            _says_what_there_is(known.summary(path)) != _says_what_there_is(facts.summary)
            for path, facts in files.items()
            if known.peek(path) is not facts
        ):
            self.names.settle()

    def replace(self, path: str, facts: Facts) -> bool:
        """Take over what a changed file says; returns false where that concerns all files: then nothing is of use any more."""
        before = self.names.modules.summary(path)
        changed = self.names.replace(path, facts)
        if changed is None:
            return False
        self.changed |= changed
        for kept in self._tables():
            kept.drop(changed)
        self.answers.drop(changed, mentioned_words(before, facts.summary))
        return True

    def _tables(self) -> Iterator[Table]:
        """The tables whose answers are forgotten where anything has changed that they were worked out from."""
        yield from (self.sites, self.called, self.calls, self.of_files)


def _says_what_there_is(summary: Summary) -> Summary:
    """A summary without what says nothing of classes, decorators and tables."""
    return summary._replace(calls=(), values=(), inner=(), keywords=(), partials=(), through=(), holds=(), acts=False)
