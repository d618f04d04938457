"""A run that is repeated after each change: its projects stay in memory, and only what a change affects is analysed again."""

from __future__ import annotations

import gc

from torchrepro_lint.config.discovery import Plan, ProjectTree
from torchrepro_lint.config.target import target_of
from torchrepro_lint.engine.diagnostic import RunOutcome
from torchrepro_lint.engine.incremental_project import LinkedProject
from torchrepro_lint.engine.read_project import ONE_PROCESS, ReadOptions
from torchrepro_lint.engine.run import merged_outcome, reported

# Replaced files that may take up memory before cycles are collected in all of it.
_COLLECT_AFTER = 100


class RepeatedRun:
    """Lints the same projects again and again. The outcome is that of ``run`` without fixing."""

    def __init__(self, honour_comments: bool, options: ReadOptions = ONE_PROCESS) -> None:
        self._honour_comments = honour_comments
        self._options = options
        self._known: dict[str, LinkedProject] = {}

    def outcome(self, plan: Plan) -> RunOutcome:
        """The outcome for the files as they are now; raises ``UsageError`` for settings that do not fit the rules."""
        targets = [target_of(tree.root) for tree in plan.trees]
        linked = {tree.root.path: self._linked(tree) for tree in plan.trees}
        self._known = linked
        outcomes = [_outcome(each) for each in linked.values()]
        return merged_outcome(plan, outcomes, targets)

    def settle(self) -> None:
        """Release what the next outcome does not need; to be called when there is time."""
        for each in self._known.values():
            each.release()
        if sum(each.dropped for each in self._known.values()) > _COLLECT_AFTER:
            gc.unfreeze()
            for each in self._known.values():
                each.reset_dropped()
        gc.collect()
        gc.freeze()

    def narrow(self, seconds: float) -> bool:
        """Prepare for the next change, for about so long; false where there is nothing to do."""
        return any(each.narrow(seconds) for each in self._known.values())

    def _linked(self, tree: ProjectTree) -> LinkedProject:
        known = self._known.get(tree.root.path)
        if known is None:
            return LinkedProject(tree, self._honour_comments, self._options, whole=True)
        known.refresh(tree)
        return known


def _outcome(linked: LinkedProject) -> RunOutcome:
    tree, files = linked.tree, linked.readings
    checks = {path: report.checked for path, _ in tree.given if (report := linked.report(path)) is not None}
    found = reported(linked.checker, files, checks)
    errors = tuple(error for path, given in tree.given if (error := linked.unreadable(path, given.display)))
    count = len(tree.given) - len(errors)
    told = (*errors, *found.faults)
    return RunOutcome(found.diagnostics, count, (), (), (), told, found.programs, found.unfollowed)
