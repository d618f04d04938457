"""The output of ``--show-files`` and ``--show-settings``: what a run would read, and its settings."""

from __future__ import annotations

from collections.abc import Iterable

from torchrepro_lint.config.discovery import Plan, ProjectTree, source_roots
from torchrepro_lint.config.target import Target
from torchrepro_lint.engine.checker import Checker
from torchrepro_lint.source.errors import escaped


def files(plan: Plan) -> str:
    """The files that would be reported on, one a line."""
    return "".join(f"{name}\n" for name in sorted(given.display for tree in plan.trees for _, given in tree.given))


def roots(plan: Plan) -> tuple[str, ...]:
    """The root of each project, and what decided it."""
    return tuple(f"root = {escaped(_root(tree))}" for tree in plan.trees)


def _root(tree: ProjectTree) -> str:
    """The root of a project with what decided it, and why it is not taken whole."""
    why = f"{tree.root.decided_by}, which {tree.partial}" if tree.partial else tree.root.decided_by
    return f"{tree.root.path} ({why})" if why else tree.root.path


def settings(checker: Checker, target: Target) -> str:
    """The effective settings of a project, and what decided its target torch."""
    root = checker.tree.root
    asked = f", nearest to {target.asked}" if target.asked else ""
    rows = {
        "root": _root(checker.tree),
        "settings": str(root.config or "defaults"),
        "target-torch": f"{target.version} ({target.decided_by}{asked})",
        "rules": _words(rule.code for rule in checker.rules),
        "files": f"{len(checker.tree.given)} to report on, {len(checker.tree.files)} in the project",
        "source-roots": _words(source_roots(checker.tree)),
        "exclude": _words((*root.settings.exclude, *root.settings.extend_exclude)),
        "per-file-ignores": _words(f"{glob}: {' '.join(codes)}" for glob, codes in root.settings.per_file_ignores),
        "unfixable": _words(root.settings.unfixable),
        "seeders": _words(f"{name}: {' '.join(families)}" for name, families in root.settings.seeders),
        "entry-points": _words(root.settings.entry_points),
        "device": root.settings.device,
        "min-severity": root.settings.min_severity,
        "fail-on": root.settings.fail_on,
        "unsafe-fixes": str(root.settings.unsafe_fixes).lower(),
        "output-format": root.settings.output_format or "full in a terminal, concise elsewhere",
        "parser": root.settings.parser,
    }
    return "".join(f"{key} = {escaped(value)}".rstrip() + "\n" for key, value in rows.items())


def _words(values: Iterable[str]) -> str:
    return ", ".join(values)
