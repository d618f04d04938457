"""Named tuples: what a class has that is made like one of ``typing.NamedTuple``."""

from __future__ import annotations

import copy
import pickle
import typing

import pytest

from torchrepro_lint.source.named_tuples import NamedTuple


class Ours(NamedTuple):
    """A place."""

    row: int
    column: int = 1
    name: NotEvaluated = "a"  # type: ignore[name-defined]  # noqa: F821

    @property
    def next(self) -> Ours:
        return self._replace(row=self.row + 1)

    @classmethod
    def first(cls) -> Ours:
        return cls(0)


class Theirs(typing.NamedTuple):
    """A place."""

    row: int
    column: int = 1
    name: str = "a"


def test_it_has_what_a_named_tuple_has() -> None:
    for name in ("_fields", "_field_defaults", "__doc__", "__match_args__", "__slots__", "__mro__"):
        ours, theirs = getattr(Ours, name), getattr(Theirs, name)
        assert (ours[1:], theirs[1:]) == ((tuple, object),) * 2 if name == "__mro__" else ours == theirs, name
    assert set(dir(Theirs)) <= set(dir(Ours))
    assert (Ours.__name__, Ours.__qualname__, Ours.__module__) == ("Ours", "Ours", __name__)
    assert Ours(2, name="b") == (2, 1, "b") == Theirs(2, name="b")
    assert repr(Ours(2)) == repr(Theirs(2)).replace("Theirs", "Ours")
    assert hash(Ours(2)) == hash((2, 1, "a"))


def test_methods_and_properties_are_kept() -> None:
    assert Ours.first().next == Ours(1)
    match Ours(3, 4):
        case Ours(row, column=4):
            assert row == 3
        case _:
            pytest.fail("no match")


def test_it_can_be_copied_and_pickled() -> None:
    assert type(pickle.loads(pickle.dumps(Ours(2)))) is Ours
    assert copy.deepcopy(Ours(2)) == Ours(2)


def test_a_wrong_number_of_arguments_is_an_error() -> None:
    with pytest.raises(TypeError):
        Ours()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Ours(1, 2, "a", 4)  # type: ignore[call-arg]


def test_a_default_before_a_field_without_one_is_an_error() -> None:
    with pytest.raises(TypeError, match="without a default"):

        class Wrong(NamedTuple):
            row: int = 0
            column: int  # type: ignore[misc]


def test_a_class_without_fields_is_one_too() -> None:
    class Empty(NamedTuple):
        """Nothing."""

    assert Empty() == ()
