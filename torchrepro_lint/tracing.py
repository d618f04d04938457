"""``torchrepro-lint trace``: an entry point to its timeline."""

from __future__ import annotations

import os
import shutil

from torchrepro_lint import terminal
from torchrepro_lint.arguments import Over
from torchrepro_lint.catalogue import catalogue
from torchrepro_lint.config.discovery import Plan, Tree, plan
from torchrepro_lint.config.roots import Options
from torchrepro_lint.config.target import options, target_of, warning
from torchrepro_lint.domain.project import Context
from torchrepro_lint.domain.timeline import Timeline, timeline
from torchrepro_lint.engine.checker import Checker, read_papers
from torchrepro_lint.engine.partition import Parts
from torchrepro_lint.engine.read_project import read_tree
from torchrepro_lint.report import timeline_json, timeline_text
from torchrepro_lint.source.errors import UsageError

_WIDEST = 140
_MOST_NAMED = 5


def run_trace(entry: str, over: Over, output_format: str) -> int:
    """Print the timelines of all entry points in a file; the exit status. Raises ``UsageError``, also for no entry point."""
    tree = _tree(entry, _options(over))
    target = target_of(tree.root)
    found = timelines(tree, target.version)
    if output_format == "json":
        terminal.out(timeline_json.render(found))
    else:
        width = min(shutil.get_terminal_size((100, 0)).columns, _WIDEST)
        terminal.out(timeline_text.render(found, width, terminal.coloured()))
    if note := warning(target):
        terminal.note(note)
    return 0


def timelines(tree: Tree, torch: str) -> tuple[Timeline, ...]:
    """The timelines of the entry points in the one file that a tree is given, without those in which
    nothing happens, unless that is so in all. Raises ``UsageError`` where it has none.
    """
    ((path, given),) = tree.given
    readings = read_tree(tree, terminal.progress(len(tree.files)))
    for error in readings.errors:
        raise UsageError(error)
    reading = readings.files[path]
    if reading.facts is None:
        raise UsageError(f"{given.display}: {reading.problem.message if reading.problem else 'cannot be analysed'}")
    checker = Checker(tree, (), frozenset(), (), catalogue.load(torch), honour_comments=False, papers=read_papers(tree))
    parts = Parts(checker, readings.files)
    project = parts.of(path)
    programs = project.programs_of(path)
    if not programs:
        others = {program.entry.path for each in parts.all() for program in each.programs}
        raise UsageError(_no_entry(given.display, sorted(others)))
    context = Context(path, reading.facts, reading.lines, project, checker.catalogue, checker.tree.root.settings)
    found = tuple(timeline(context, program) for program in programs)
    return tuple(each for each in found if each.moments) or found[:1]


def _options(over: Over) -> Options:
    return options(over.torch_version)._replace(overrides=over.applied)


def _tree(entry: str, wanted: Options) -> Tree:
    if os.path.isdir(entry):
        raise UsageError(f"{entry} is a directory; name the file that is started")
    planned: Plan = plan((entry,), wanted)
    for error in planned.errors:
        raise UsageError(error)
    if not planned.trees or not planned.trees[0].given:
        raise UsageError(f"{entry} is no Python file")
    return planned.trees[0]


def _no_entry(display: str, others: list[str]) -> str:
    """``model.py is no entry point``, and which files of the project are some."""
    told = (
        f"{display} is no entry point: nothing in it starts a run (a __main__ block, a script's statements, a command)"
    )
    if not others:
        return f"{told}; name it in entry-points of the settings if it is started"
    named = ", ".join(others[:_MOST_NAMED]) + (" ..." if len(others) > _MOST_NAMED else "")
    return f"{told}; these are: {named}"
