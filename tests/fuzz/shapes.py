"""Programs of a shape that breaks tools: too deep, too long, too old, too new."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from .corpus import Corpus
from .repeats import REPEATS

_OPENINGS = {
    "(": ")",
    "[": "]",
    "{": "}",
    "f(": ")",
    "x[": "]",
    "{1: ": "}",
    "(lambda: ": ")",
    "f'{": "}'",
    "(a, ": ")",
    "[*": "]",
}
LINKS: dict[str, Callable[[int], str]] = {
    "sum": lambda count: " + ".join(["a"] * count),
    "sum in lines": lambda count: "(" + "\n + ".join(["a"] * count) + ")",
    "conjunction": lambda count: " and ".join(["a"] * count),
    "comparison": lambda count: " < ".join(["a"] * count),
    "methods": lambda count: "a" + ".b(1)" * count,
    "methods in lines": lambda count: "(a" + "\n .b()" * count + ")",
    "attributes": lambda count: "a" + ".b" * count,
    "subscripts": lambda count: "a" + "[0]" * count,
    "calls": lambda count: "a" + "()" * count,
    "strings": lambda count: "'a' " * count,
    "strings of letters": lambda count: "f'{a}' " * count,
    "negations": lambda count: "not " * count + "a",
    "signs": lambda count: "-" * count + "1",
    "powers": lambda count: "**".join(["a"] * count),
    "conditionals": lambda count: "a if b else " * count + "c",
    "lambdas": lambda count: "lambda: " * count + "a",
    "list": lambda count: "[" + "a, " * count + "]",
    "dictionary": lambda count: "{" + "'a': torch.rand(1), " * count + "}",
    "arguments": lambda count: "f(" + "a, " * count + ")",
    "string": lambda count: "'" + "a" * count + "'",
    "digits": lambda count: "1" * count,
    "walruses": lambda count: "(a := " * count + "1" + ")" * count,
}
_OLD = """print 'seeded', x
print >>sys.stderr, "x"
exec "x = 1"
raise ValueError, "bad"
except IOError, error:
x = 0777 + 10L
s = ur'a'
if a <> b: pass
d = `x`
def f(a, (b, c)): pass
for x in xrange(3): print x,
torch.manual_seed(0777)
""".splitlines()
_NEW = """try: f()\nexcept* ValueError as e: pass
def f[T: int = str, *Ts, **P](x: T) -> T: return torch.rand(1)
class C[T](torch.nn.Module): x: T = torch.rand(2)
type X[T] = list[T] | dict[str, X]
match torch.rand(1):\n  case {'a': [x, *_], **rest} | C(y=1 as z) if (n := 2): torch.manual_seed(n)\n  case _: pass
x = f"{f"{f"{torch.rand(1)!r:>{10}}"}"}"
x = t"{torch.rand(1)} {x!r:{y}}"
try: f()\nexcept A, B: pass
with (open('a') as b, torch.no_grad(),): torch.rand(1)
x = lambda *a: (yield)
async def f():\n  async for x in y: return [z async for z in torch.rand(1)]
print(f'{x = !r:^20}{*a, *b}{"\\n".join(x)}')
@(yield)\ndef f(a, /, b, *, c): x[*a, b:c]
return *a, b
lazy import torch
for x in *a, *b: del (x), [y]
lambda x=(y:=1): x
""".splitlines()


def nested(chance: Random, corpus: Corpus) -> bytes:
    """Brackets in brackets, some never closed."""
    count, kinds = _count(chance, 5000), chance.sample(sorted(_OPENINGS), chance.choice((1, 1, 3)))
    opened = [chance.choice(kinds) for _ in range(count)]
    closed = [_OPENINGS[each] for each in reversed(opened)][: chance.choice((count, count, count - 1, 0))]
    return _placed(chance, corpus, f"x = {''.join(opened)}1{''.join(closed)}")


def chained(chance: Random, corpus: Corpus) -> bytes:
    """One expression of thousands of parts."""
    return _placed(chance, corpus, "x = " + LINKS[chance.choice(sorted(LINKS))](_count(chance, 20000)))


def branched(chance: Random, corpus: Corpus) -> bytes:
    """Thousands of branches, handlers, cases or statements; blocks in blocks."""
    count, seed = _count(chance, 3000), chance.choice(("torch.manual_seed(0)", "x = torch.rand(1)", "pass"))
    deep = min(count, 150)
    shape = chance.choice(
        (
            "if a == 0: pass\n"
            + "".join(f"elif a == {number}: {seed}\n" for number in range(count))
            + "else: torch.rand(1)\n",
            "try: pass\n" + f"except E: {seed}\n" * count,
            "match a:\n" + f"  case 1: {seed}\n" * count,
            f"if a: {seed}\n" * count,
            f"def f():\n  f(); {seed}\n" * count + "f()\n",
            "".join(f"def f{number}(): f{number + 1}()\n" for number in range(count))
            + f"def f{count}(): {seed}\nf0()\n",
            "".join(f"class C{number + 1}(C{number}): x = {seed!r}\n" for number in range(count)),
            "".join(f"x{number + 1} = x{number}\n" for number in range(count)) + f"f(x{count})\n",
            "".join(
                " " * number + chance.choice(("if a:\n", "for b in c:\n", "with d:\n", "def e():\n", "class F:\n"))
                for number in range(deep)
            )
            + " " * deep
            + f"{seed}\n",
            "; ".join([seed] * count) + "\n",
        )
    )
    return _placed(chance, corpus, shape)


def repeated(chance: Random, corpus: Corpus) -> bytes:
    """Something said up to five hundred times, each after, on top of or beside the one before."""
    return _placed(chance, corpus, REPEATS[chance.choice(sorted(REPEATS))](_count(chance, 500)))


def old(chance: Random, corpus: Corpus) -> bytes:
    """Statements of Python 2 among others."""
    return _among(chance, corpus, _OLD)


def newer(chance: Random, corpus: Corpus) -> bytes:
    """Statements that some Pythons do not know yet."""
    return _among(chance, corpus, [each.replace("\\n", "\n") for each in _NEW])


def grown(chance: Random, corpus: Corpus) -> bytes:
    """Programs that hypothesmith has made, by themselves or around others."""
    parts = [chance.choice(corpus.made) for _ in range(chance.choice((1, 1, 2)))] + [
        corpus.program(chance)
    ] * chance.choice((0, 1))
    return "\n".join(chance.sample(parts, len(parts))).encode("utf-8", "replace")


def _count(chance: Random, most: int) -> int:
    """Mostly small, sometimes all."""
    return most if chance.random() < 0.02 else max(2, int(most ** chance.random()))


def _placed(chance: Random, corpus: Corpus, text: str) -> bytes:
    before = chance.choice(("", "import torch\n", corpus.program(chance).rstrip("\\") + "\n"))
    return f"{before}{text}\n".encode("utf-8", "replace")


def _among(chance: Random, corpus: Corpus, statements: list[str]) -> bytes:
    lines = corpus.program(chance).splitlines()
    for _ in range(chance.choice((1, 1, 2, 5))):
        lines.insert(chance.randint(0, len(lines)), chance.choice(statements))
    return "\n".join(lines).encode("utf-8", "replace")
