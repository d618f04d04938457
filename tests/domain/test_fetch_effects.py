"""Effects of worker processes through datasets that wrap one another, each effect queried once."""

from __future__ import annotations

import pytest

from tests.one_file import NAME, findings
from torchrepro_lint.checks.dataloader import worker_init
from torchrepro_lint.dataflow.environment import BoundArguments, Closure, Environment
from torchrepro_lint.domain.loaders.callable_effects import CallableEffects
from torchrepro_lint.syntax.nodes import Constant, Ref

_PLAIN = """
class Plain(Dataset):
    def __getitem__(self, index):
        return {sample}


"""
_WRAPPER = """
class Wrapper{number}(Dataset):
    def __init__(self, inner):
        self.inner = inner

    def __getitem__(self, index):
        return self.inner[index]


"""


def _program(wrappers: int, sample: str, build: str) -> str:
    classes = "".join(_WRAPPER.format(number=number) for number in range(wrappers))
    head = "import random\nimport sys\n\nfrom torch.utils.data import DataLoader, Dataset\n\n"
    made = f"def build(data):\n{build}    return data\n\n\n"
    return f"{head}{_PLAIN.format(sample=sample)}{classes}{made}loader = DataLoader(build(Plain()), num_workers=2)\n"


def _by_choice(wrappers: int) -> str:
    return "".join(f"    if sys.argv[{number}]:\n        data = Wrapper{number}(data)\n" for number in range(wrappers))


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The methods of each effect that is worked out from here on."""
    asked: list[object] = []
    worked = CallableEffects._summarise
    monkeypatch.setattr(CallableEffects, "_summarise", lambda *args: [asked.append(args[1]), worked(*args)][1])
    return asked


@pytest.mark.parametrize(("sample", "codes"), [("random.random()", ["TRL301"]), ("index", [])])
def test_each_wrapper_is_asked_once_however_many_ways_lead_to_it(
    sample: str, codes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _counted(monkeypatch)
    assert [each.code for each in findings(worker_init, _program(12, sample, _by_choice(12)))] == codes
    assert len(asked) <= 26, len(asked)  # of 4,096 ways through twelve wrappers


@pytest.mark.parametrize(("sample", "codes"), [("random.random()", ["TRL301"]), ("index", [])])
def test_wrappers_that_may_wrap_each_other(sample: str, codes: list[str]) -> None:
    build = "    for word in sys.argv:\n        data = Wrapper0(data) if word else Wrapper1(data)\n"
    assert [each.code for each in findings(worker_init, _program(2, sample, build))] == codes


@pytest.mark.parametrize(("sample", "codes"), [("random.random()", ["TRL301"]), ("index", [])])
def test_many_datasets_of_one_class_are_judged_together(
    sample: str, codes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _counted(monkeypatch)
    choices = "".join(f"    if sys.argv[{number}]:\n        data = Wrapper0(data)\n" for number in range(9))
    program = _program(2, sample, f"{choices}    data = Wrapper1(data)\n")
    assert [each.code for each in findings(worker_init, program)] == codes
    assert len(asked) == 3, asked  # Wrapper1, Wrapper0 for all nine calls, Plain


def _scope(*, word: str = "x", at: int = 4, owner: str = "a.py:Net", inner: Environment | None = None) -> Environment:
    value = Closure(NAME, Ref(at, at + 1, (":data",), (), at), inner or Environment.of())
    return Environment.of({word: (value,)}, {"kwargs": BoundArguments({"y": (value,)}, (value,))}, owner)


def test_environments_with_the_same_contents_are_one() -> None:
    first = _scope(inner=_scope())
    assert _scope(inner=_scope()) is first
    others = [
        _scope(),
        _scope(inner=_scope(owner="")),
        _scope(inner=_scope(), word="y"),
        _scope(inner=_scope(), at=5),
        _scope(inner=_scope(), owner="a.py:Other"),
        Environment.of(first.arguments, {}, first.receiver_class),
        Environment.of(first.arguments, {"kwargs": BoundArguments(complete=False)}, first.receiver_class),
        first.with_arguments({"x": (Closure(NAME, Constant(4, 5, 4)),)}),
    ]
    assert len({first, *others}) == len(others) + 1
    assert first.with_arguments(first.arguments) is first
