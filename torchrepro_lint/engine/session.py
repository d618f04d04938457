"""Projects that stay linked between the files of one process: what a plugin asks file by file."""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.config.discovery import Given, Tree, plan, relative
from torchrepro_lint.config.roots import Options, Roots, unmarked
from torchrepro_lint.engine.checker import Checker, check
from torchrepro_lint.engine.partition import Parts
from torchrepro_lint.engine.read_project import Means, read_tree
from torchrepro_lint.engine.reading import read
from torchrepro_lint.engine.run import prepare
from torchrepro_lint.source.decoding import Source, decode, is_notebook
from torchrepro_lint.source.files import program
from torchrepro_lint.source.suppressions import suppressions
from torchrepro_lint.source.text import Lines
from torchrepro_lint.syntax.tokens import renamed

_KEPT = 4
# Of processes there are as many as whoever asks has started.
_MEANS = Means(jobs=1, cached=True)
# Something of this is written in any project that a rule has a word on; all is in lower case.
WORDS = tuple(
    b"""
    torch numpy random seed lightning transformers accelerate timm monai fastai dgl sklearn scipy pandas
    networkx umap imblearn datasets diffusers peft ultralytics gym stable_baselines sb3 tianshou imgaug
    albumentations kornia speechbrain allennlp nemo skorch catalyst ignite mmengine mmcv detectron2 composer
    deepspeed trl setfit sentence_transformers tensorflow keras jax xformers flash_attn apex ray webdataset
    espnet flair fairseq paddle yolov5 colossalai simpletransformers optuna fwr13y horovod open_clip mmdet mmseg
    skrl pyro imitation mlflow wandb nni openrlhf
    """.split()
)


class Answer(NamedTuple):
    """What is said of a file, faults of the tool, and the lines that offsets count in."""

    findings: tuple[Finding, ...]
    errors: tuple[str, ...]
    lines: Lines


class _Linked(NamedTuple):
    """A project as it was found; where no file has any of ``WORDS`` nothing is parsed or linked."""

    tree: Tree
    checker: Checker
    parts: Parts | None


class Session:
    """Answers for one file after another, reading each project once; files are not watched for changes."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._known: OrderedDict[str, _Linked] = OrderedDict()

    def findings(self, path: str, data: bytes | None = None) -> Answer | None:
        """What is to be said of a file, whose bytes are ``data`` where it is not read from disk. ``# noqa`` hides nothing.

        None for a file that the settings leave out or that cannot be read, and where no file of the project has a word
        that any rule asks for. Raises ``UsageError``.
        """
        place = os.path.abspath(path)
        linked = self._linked(place, data)
        if linked is None or linked.parts is None:
            return None
        name, parts = relative(place, linked.tree.root.path), linked.parts
        if data is not None:
            reading = read(data, is_notebook(name), linked.tree.root.settings.parser)
            parts = Parts(linked.checker, {**parts.files, name: reading}, lasting=True, before=parts)
        return _answer(linked.checker, name, parts) if name in parts.files else None

    def _linked(self, place: str, data: bytes | None) -> _Linked | None:
        """The project of a file; None where its settings leave the file out."""
        root = Roots(self._options, unmarked([place])).of(os.path.dirname(place))
        known = self._known.pop(root.path, None)
        if known is None or relative(place, root.path) not in known.tree.files:
            stdin = None if data is None else Given(place, place, data)
            trees = plan([place] if stdin is None else [], self._options, force_exclude=True, stdin=stdin).trees
            if not trees:
                return None
            known = _Linked(trees[0], prepare(trees[0], honour_comments=False)[0], None)
        if known.parts is None and _matters(known.tree, data):
            readings = read_tree(known.tree, means=_MEANS)
            readings.store()
            known = known._replace(parts=Parts(known.checker, readings.files, lasting=True))
        self._known[root.path] = known
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return known


def _answer(checker: Checker, name: str, parts: Parts) -> Answer:
    reading = parts.files[name]
    checked, lines = check(checker, name, reading, parts.of(name)), reading.lines
    hiding = suppressions(lines, noqa=False) if checked.findings else ()
    names = {rule.code: rule.name for rule in checker.rules}
    kept = (
        one
        for one in checked.findings
        if not any(each.covers(lines.position(one.span.start).row, one.code, names[one.code]) for each in hiding)
    )
    return Answer(tuple(kept), checked.errors, lines)


def _matters(tree: Tree, data: bytes | None) -> bool:
    """Whether any file of a project has a word that some rule asks for."""
    return _has_word(data or b"") or any(_has_word(_bytes(Path(tree.root.path, path))) for path in tree.files)


def _has_word(data: bytes) -> bool:
    """Escapes in notebooks, and letters that Python reads as others, may spell any word."""
    lowered = data.lower()
    return any(word in lowered for word in WORDS) or b"\\u" in data or (not data.isascii() and _renames(data))


def _renames(data: bytes) -> bool:
    source = decode(data)
    return isinstance(source, Source) and renamed(source.text)


def _bytes(path: Path) -> bytes:
    try:
        return program(path)
    except OSError:
        return b""
