"""Whether a call passes the receiver of a method implicitly, so that its arguments start at the second parameter."""

from __future__ import annotations

import pytest

from tests.one_file import NAME, project_of

_CLASSES = """
class Net:
    def __init__(self, width): ...
    def run(self, data): ...
    @staticmethod
    def load(path): ...
    @classmethod
    def make(cls, size): ...

class Wide(Net):
    def __init__(self, width):
        super().__init__(width)
        Net.__init__(self, width)

net = Net(1)
"""


@pytest.mark.parametrize(
    ("call", "received"),
    [
        ("net.run(1)", {"1": "data"}),
        ("Net.run(net, 1)", {"net": "self", "1": "data"}),
        ("Net.load(1)", {"1": "path"}),
        ("net.load(1)", {"1": "path"}),
        ("Net.make(1)", {"1": "size"}),
        ("Net(1)", {"1": "width"}),
        ("super().__init__(width)", {"width": "width"}),
        ("Net.__init__(self, width)", {"self": "self", "width": "width"}),
    ],
)
def test_arguments_start_behind_the_receiver(call: str, received: dict[str, str]) -> None:
    text = f"{_CLASSES}{call}\n"
    project = project_of({NAME: text})
    resolver = project.resolver
    site = next(each for each in project.calls(NAME) if text[each.call.start : each.call.end] == call)
    (name,) = site.names
    (function,) = resolver.functions(next(iter(resolver.methods(name, "__init__")), name))
    found = resolver.call_graph.receiving(NAME, site.call, function)
    assert {text[arg.start : arg.end]: param.name for arg, param in found} == received
