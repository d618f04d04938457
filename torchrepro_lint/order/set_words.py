"""What a set is written like: the words of what makes one, and of annotations that promise one."""

from __future__ import annotations

from torchrepro_lint.facts import Expression, Ref
from torchrepro_lint.walk import within

MAKERS = frozenset({"set", "frozenset", "union", "intersection", "difference", "symmetric_difference"})
_ANNOTATIONS = frozenset({"set", "Set", "FrozenSet", "frozenset", "AbstractSet", "MutableSet"})


def names_set(annotation: Expression) -> bool:
    """Whether an annotation, or a factory, names a set anywhere."""
    if type(annotation) is Ref:  # most are
        return _word(annotation) in _ANNOTATIONS
    return any(type(each) is Ref and _word(each) in _ANNOTATIONS for each in within(annotation))


def _word(ref: Ref) -> str:
    return ref.path[-1] if ref.path else ref.roots[-1].rpartition(".")[2]
