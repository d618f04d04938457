"""What a set is written like: the words of what makes one, and of annotations that promise one."""

from __future__ import annotations

from torchrepro_lint.facts import Expression, Ref
from torchrepro_lint.walk import within

MAKERS = frozenset({"set", "frozenset", "union", "intersection", "difference", "symmetric_difference"})
ANNOTATIONS = frozenset({"set", "Set", "FrozenSet", "frozenset", "AbstractSet", "MutableSet"})
# What calls make a set by, a method of a base class as ``called_word`` has it.
MAKING = MAKERS | {f"<super>.{word}" for word in MAKERS}


def names_set(annotation: Expression) -> bool:
    """Whether an annotation, or a factory, names a set anywhere."""
    if type(annotation) is Ref:  # most are
        return _word(annotation) in ANNOTATIONS
    return any(type(each) is Ref and _word(each) in ANNOTATIONS for each in within(annotation))


def _word(ref: Ref) -> str:
    return ref.path[-1] if ref.path else ref.roots[-1].rpartition(".")[2]
