"""Scopes: the last expression of each program, resolved by Python's rules."""

from __future__ import annotations

import pytest

from torchrepro_lint.syntax.nodes import Call, Expression, ExpressionStatement, Lambda, Ref, SimpleStatement, SyntaxTree
from torchrepro_lint.syntax.parse import parse_module
from torchrepro_lint.syntax.visitor import expressions, statements, subexpressions

# Each program reads the word in question as `probe(word)`; beside it stand the names that it may be.
CASES = {
    "a builtin": ("probe(len)", "builtins.len"),
    "nothing binds it": ("probe(x)", "?x"),
    "a module's variable": ("x = 1\nprobe(x)", ":x"),
    "bound later": ("probe(x)\nx = 1", ":x"),
    "a function reads what the module binds later": ("def f():\n    probe(x)\nx = 1", ":x"),
    "a builtin bound by the module": ("def f():\n    probe(len)\nfrom a import len", "a.len"),
    "an import": ("import a.b.c\nprobe(a)", "a"),
    "an import under another name": ("import a.b as x\nprobe(x)", "a.b"),
    "a name of a module": ("from a.b import c\nprobe(c)", "a.b.c"),
    "relative imports": ("from . import c\nprobe(c)", ".c"),
    "relative to a parent": ("from ..a import c as d\nprobe(d)", "..a.c"),
    "a star import binds no word": ("from a import *\nprobe(x)", "?x"),
    "imports in try keep both": ("try:\n    import a as x\nexcept ImportError:\n    import b as x\nprobe(x)", "a b"),
    "an import and a fallback": ("try:\n    import a\nexcept ImportError:\n    a = None\nprobe(a)", ":a a"),
    "an import in a function": ("def f():\n    import a\n    probe(a)", "a"),
    "an import in another function": ("def f():\n    import a\nprobe(a)", "?a"),
    "a parameter": ("x = 1\ndef f(x):\n    probe(x)", ":f.<locals>.x"),
    "every kind of parameter": ("def f(a, /, b, *c, d, **e):\n    probe(e)", ":f.<locals>.e"),
    "a default is read outside": ("x = 1\ndef f(x=probe(x)): pass", ":x"),
    "a decorator is read outside": ("x = 1\n@probe(x)\ndef f(x): pass", ":x"),
    "a local variable": ("x = 1\ndef f():\n    probe(x)\n    x = 2", ":f.<locals>.x"),
    "a local of an outer function": ("def f():\n    x = 1\n    def g():\n        probe(x)", ":f.<locals>.x"),
    "global": ("x = 1\ndef f():\n    global x\n    x = 2\n    probe(x)", ":x"),
    "global binds in the module": ("def f():\n    global x\n    x = 2\ndef g():\n    probe(x)", ":x"),
    "global is known before its function": ("def g():\n    probe(x)\ndef f():\n    global x\n    x = 2", ":x"),
    "global with an import": ("def g():\n    probe(x)\ndef f():\n    global x\n    import a as x", "a"),
    "global in a nested function": ("def f():\n    x = 1\n    def g():\n        global x\n        probe(x)", "?x"),
    "nonlocal": (
        "def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = 2\n        probe(x)",
        ":f.<locals>.x",
    ),
    "nonlocal skips classes": (
        "def f():\n    x = 1\n    class C:\n        x = 2\n        def g(self):\n            nonlocal x\n            probe(x)",
        ":f.<locals>.x",
    ),
    "a class body sees its own": ("x = 1\nclass C:\n    x = 2\n    probe(x)", ":C.x"),
    "a method does not see the class": ("x = 1\nclass C:\n    x = 2\n    def f(self):\n        probe(x)", ":x"),
    "a nested class does not see the class": ("class C:\n    x = 2\n    class D:\n        probe(x)", "?x"),
    "a method is the class's": ("class C:\n    def f(self): pass\n    probe(f)", ":C.f"),
    "a comprehension in a class": ("x = 1\nclass C:\n    x = 2\n    y = [probe(x) for _ in z]", ":x"),
    "its first source is read in the class": ("class C:\n    x = 2\n    y = [_ for _ in probe(x)]", ":C.x"),
    "a comprehension's target": ("x = 1\n[probe(x) for x in y]", ":<locals>.<comp>.x"),
    "a target does not leak": ("x = 1\n[x for x in y]\nprobe(x)", ":x"),
    "a comprehension's own source is outside": ("x = 1\n[x for x in probe(x)]", ":x"),
    "an inner source is inside": ("[y for x in z for y in probe(x)]", ":<locals>.<comp>.x"),
    "a comprehension's test": ("[x for x in z if probe(x)]", ":<locals>.<comp>.x"),
    "a comprehension in a function": ("def f(y):\n    return {x: probe(x) for x in y}", ":f.<locals>.<comp>.x"),
    "the second comprehension": ("[x for x in y]\n[probe(x) for x in y]", ":<locals>.<comp>2.x"),
    "walrus": ("(x := 1)\nprobe(x)", ":x"),
    "walrus in a comprehension binds outside": ("[x := y for y in z]\nprobe(x)", ":x"),
    "walrus is known before it": ("def f():\n    probe(x)\nif (x := g()): pass", ":x"),
    "walrus makes a local": ("x = 1\ndef f():\n    probe(x)\n    while x := g(): pass", ":f.<locals>.x"),
    "walrus in a lambda is the lambda's": ("f = lambda: (x := 1)\nprobe(x)", "?x"),
    "a lambda's parameter": ("x = 1\nf = lambda x: probe(x)", ":<lambda>.<locals>.x"),
    "a lambda's default": ("x = 1\nf = lambda x=probe(x): x", ":x"),
    "for": ("for x, (y, *z) in w:\n    pass\nprobe(z)", ":z"),
    "with": ("with a as (x, y.z):\n    probe(x)", ":x"),
    "except": ("try: pass\nexcept E as x:\n    probe(x)", ":x"),
    "del keeps the binding": ("x = 1\ndel x\nprobe(x)", ":x"),
    "an annotation binds": ("def f():\n    x: int\n    probe(x)", ":f.<locals>.x"),
    "augmented": ("def f():\n    x += 1\n    probe(x)", ":f.<locals>.x"),
    "a captured name": ("match y:\n    case x: probe(x)", ":x"),
    "a captured part": ("match y:\n    case C(a=[1, *x]): probe(x)", ":x"),
    "a captured rest": ("match y:\n    case {'k': 1, **x}: probe(x)", ":x"),
    "a captured alternative": ("match y:\n    case 1 | 2 as x: probe(x)", ":x"),
    "a pattern's class is read": ("match y:\n    case C(): pass\nprobe(C)", "?C"),
    "a function and a variable": ("def x(): pass\nx = 1\nprobe(x)", ":x"),
    "a method's name in another": ("class C:\n    def f(self): pass\n    def g(self):\n        probe(f)", "?f"),
}


@pytest.mark.parametrize(("program", "names"), CASES.values(), ids=CASES.keys())
def test_a_word_stands_for(program: str, names: str) -> None:
    assert probed(parse_module(f"{program}\n")) == tuple(names.split())


def probed(facts: SyntaxTree) -> tuple[str, ...]:
    """The names of what the call of ``probe`` is given."""
    bodies = [facts.body, *(each.body for each in facts.functions), *(each.body for each in facts.classes)]
    every = [part for body in bodies for each in statements(body) for part in _parts(expressions(each))]
    every += [param.default for each in facts.functions for param in each.params if param.default is not None]
    for part in every:
        match part:
            case Call(func=Ref(roots=("?probe",)), args=(arg,)):
                assert isinstance(arg.value, Ref)
                return arg.value.roots
    raise AssertionError("no probe")


def _parts(values: object) -> list[Expression]:
    return [part for value in values for part in subexpressions(value)]  # type: ignore[attr-defined]


def test_lambdas_and_definitions_have_their_own_names() -> None:
    facts = parse_module("f = lambda: 1\ng = lambda: 2\ndef h():\n    return lambda: 3\n")
    assert [each.name for each in facts.functions] == [":<lambda>", ":<lambda>2", ":h", ":h.<locals>.<lambda>"]
    last = facts.functions[2].body[0]
    assert isinstance(last, SimpleStatement)
    assert isinstance(last.values[0], Lambda)
    assert last.values[0].function == ":h.<locals>.<lambda>"
    assert not any(isinstance(each, ExpressionStatement) for each in facts.body)
