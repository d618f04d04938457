"""A session: linked projects that stay in memory while a plugin asks for the findings of one file after another.

``RepeatedRun`` keeps them after a whole run, which is repeated after each change: only what a change affects is analysed again.
"""

from __future__ import annotations

import gc
import os
from collections import OrderedDict
from pathlib import Path

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.config.discovery import GivenFile, Plan, ProjectTree, plan, relative_path
from torchrepro_lint.config.roots import ConfigOptions, RootFinder, fallback_root
from torchrepro_lint.config.target import target_of
from torchrepro_lint.engine.checker import Checker, check
from torchrepro_lint.engine.diagnostic import RunOutcome
from torchrepro_lint.engine.import_closure import with_imported_files
from torchrepro_lint.engine.incremental_project import LinkedProject
from torchrepro_lint.engine.parsed_file import parse_bytes
from torchrepro_lint.engine.partition import Partition
from torchrepro_lint.engine.read_project import ONE_PROCESS, ReadOptions, read_tree
from torchrepro_lint.engine.run import merged_outcome, prepare, reported
from torchrepro_lint.source.decoding import Source, decode
from torchrepro_lint.source.files import is_notebook, read_program
from torchrepro_lint.source.suppressions import suppressions
from torchrepro_lint.source.text import Lines
from torchrepro_lint.syntax.nodes import Record
from torchrepro_lint.syntax.syntax_errors import has_unnormalised_names

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


_MAX_PROJECTS = 4
# The caller already runs several processes.
_READ_OPTIONS = ReadOptions(jobs=1, cached=True)
# A project without any of these words, in lower case, has no findings.
RELEVANT_WORDS = tuple(
    b"""
    torch numpy random seed lightning transformers accelerate timm monai fastai dgl sklearn scipy pandas
    networkx umap igraph community skopt gensim imblearn datasets dm_control diffusers peft ultralytics gym stable_baselines sb3 tianshou imgaug
    albumentations kornia speechbrain allennlp nemo skorch catalyst ignite mmengine mmcv detectron2 composer
    deepspeed trl setfit sentence_transformers tensorflow keras jax xformers flash_attn apex ray webdataset
    espnet flair fairseq paddle yolov5 colossalai simpletransformers optuna fwr13y horovod open_clip mmdet mmseg
    skrl pyro imitation mlflow wandb nni openrlhf trainer dassl delu zero
    """.split()
)


class FileFindings(Record, frozen=True):
    """The findings of a file, faults of the tool, the lines that offsets count in, and the root of the project."""

    findings: tuple[Finding, ...]
    errors: tuple[str, ...]
    lines: Lines
    root: str


class _LinkedProject(Record, frozen=True):
    """A project; if no file has any of ``RELEVANT_WORDS``, nothing is parsed or linked, and ``partition`` is None."""

    tree: ProjectTree
    checker: Checker
    partition: Partition | None


class Session:
    """Findings for one file after another; each project is read once, and files are not watched for changes."""

    def __init__(self, options: ConfigOptions) -> None:
        self._options = options
        self._known: OrderedDict[str, _LinkedProject] = OrderedDict()

    def findings(self, path: str, data: bytes | None = None) -> FileFindings | None:
        """The findings of a file, whose bytes are ``data`` where it is not read from disk. ``# noqa`` hides nothing.

        None for a file that is excluded or cannot be read, and where no file of the project has a relevant word. Raises
        ``UsageError``.
        """
        absolute = os.path.abspath(path)
        linked = self._linked(absolute, data)
        if linked is None or linked.partition is None:
            return None
        name, partition = relative_path(absolute, linked.tree.root.path), linked.partition
        if data is not None:
            parsed = parse_bytes(data, is_notebook(name), linked.tree.root.settings.parser)
            partition = Partition(linked.checker, {**partition.files, name: parsed}, lasting=True, before=partition)
        return _file_findings(linked.checker, name, partition) if name in partition.files else None

    def _linked(self, absolute: str, data: bytes | None) -> _LinkedProject | None:
        """The project of a file; None if the file is excluded."""
        root = RootFinder(self._options, fallback_root([absolute], os.getcwd())).of(os.path.dirname(absolute))
        known = self._known.pop(root.path, None)
        if known is None or relative_path(absolute, root.path) not in known.tree.files:
            stdin = None if data is None else GivenFile(absolute, absolute, data)
            trees = plan([absolute] if stdin is None else [], self._options, force_exclude=True, stdin=stdin).trees
            if not trees:
                return None
            tree = with_imported_files(trees[0])
            known = _LinkedProject(tree, prepare(tree, honour_comments=False)[0]._replace(finds_gaps=False), None)
        if known.partition is None and _may_have_findings(known.tree, data):
            project_files = read_tree(known.tree, options=_READ_OPTIONS)
            project_files.store()
            known = known._replace(partition=Partition(known.checker, project_files.files, lasting=True))
        self._known[root.path] = known
        while len(self._known) > _MAX_PROJECTS:
            self._known.popitem(last=False)
        return known


def _file_findings(checker: Checker, name: str, partition: Partition) -> FileFindings:
    parsed = partition.files[name]
    checked, lines = check(checker, name, parsed, partition.of(name)), parsed.lines
    comments = suppressions(lines, noqa=False) if checked.findings else ()
    names = {rule.code: rule.name for rule in checker.rules}
    visible = (
        one
        for one in checked.findings
        if not any(each.covers(lines.position(one.span.start).row, one.code, names[one.code]) for each in comments)
    )
    return FileFindings(tuple(visible), checked.errors, lines, checker.tree.root.path)


def _may_have_findings(tree: ProjectTree, data: bytes | None) -> bool:
    """Whether any file of a project has a relevant word: a prefilter."""
    return _has_word(data or b"") or any(_has_word(_bytes(Path(tree.root.path, path))) for path in tree.files)


def _has_word(data: bytes) -> bool:
    """Whether bytes have a relevant word; escapes in notebooks, and letters that Python normalises, may spell any."""
    lowered = data.lower()
    return (
        any(word in lowered for word in RELEVANT_WORDS)
        or b"\\u" in data
        or (not data.isascii() and _has_normalized_names(data))
    )


def _has_normalized_names(data: bytes) -> bool:
    source = decode(data)
    return isinstance(source, Source) and has_unnormalised_names(source.text)


def _bytes(path: Path) -> bytes:
    try:
        return read_program(path)
    except OSError:
        return b""
