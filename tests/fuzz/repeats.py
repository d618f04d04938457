"""Programs that say one thing thousands of times, each after, on top of or beside the one before."""

from __future__ import annotations

from collections.abc import Callable

_TORCH = "import os, random, argparse\nimport numpy as np\nimport torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\n"


def _lines(line: str, before: str = "", after: str = "") -> Callable[[int], str]:
    """A program with a line for each number; ``{i}`` is the number, ``{j}`` the next, ``{n}`` the last."""

    def write(count: int) -> str:
        body = "".join(line.format(i=number, j=number + 1) for number in range(count))
        return f"{_TORCH}{before}\n{body}{after.format(n=count)}\n"

    return write


def _joined(before: str, part: str, after: str, start: str = "") -> Callable[[int], str]:
    """A program with one statement of that many parts."""
    return lambda count: (
        f"{_TORCH}{start}\n{before}{''.join(part.format(i=number, j=number + 1) for number in range(count))}{after}\n"
    )


def _ring(line: str, count: int) -> str:
    """A line for each number; ``{j}`` is the next one, of the last line the first."""
    return "".join(f"{line.format(i=number, j=(number + 1) % count)}\n" for number in range(count))


_MAIN = "if __name__ == '__main__':\n  {}\n"

REPEATS: dict[str, Callable[[int], str]] = {
    "classes, each of the one before": _lines("class C{j}(C{i}): pass\n"),
    "classes, each of the two before": _lines("class C{j}(C{i}, B{i}): pass\nclass B{j}(C{i}): pass\n"),
    "modules, each of the one before": _lines(
        "class C{j}(C{i}):\n  def __init__(self):\n    super().__init__()\n    self.x{i} = nn.Linear(1, 1)\n",
        "class C0(nn.Module): pass",
        "C{n}()(torch.rand(1))",
    ),
    "classes of one": _lines("class C{j}(C0):\n  def f(self): return self.g()\n", "class C0(nn.Module): pass"),
    "functions, each calling the one before": _lines(
        "def f{j}(): f{i}()\n", "def f0(): return torch.rand(1)", "f{n}()"
    ),
    "functions, each calling the next": _lines("def f{i}(): f{j}()\n", "", "def f{n}(): return torch.rand(1)\nf0()"),
    "functions in a ring": _lines("def f{j}(): f{i}()\n", "def f0(): f100(); return torch.rand(1)", "f{n}()"),
    "functions in a ring, each returning what the next returns": lambda count: (
        f"{_TORCH}{_ring('def f{i}(x): return f{j}(x)', count)}f0(1)\n"
    ),
    "functions in a ring, each passing on the seed": lambda count: (
        f"{_TORCH}{_ring('def f{i}(x, seed=None): torch.manual_seed(seed); f{j}(x, seed)', count)}f0(1)\n"
    ),
    "functions in a ring, each calling what it is given": lambda count: (
        f"{_TORCH}{_ring('def f{i}(x, g): g(x); f{j}(x, g)', count)}f0(1, torch.rand)\n"
    ),
    "functions in a ring, each passing on the next": lambda count: (
        f"{_TORCH}{_ring('def f{i}(g, x): return g(f{j}, x)', count)}f0(f1, 1)\n"
    ),
    "lambdas in a ring": lambda count: f"{_TORCH}{_ring('f{i} = lambda x: f{j}(x)', count)}f0(1)\n",
    "generators in a ring": lambda count: (
        f"{_TORCH}{_ring('def f{i}(): yield from f{j}()', count)}for x in f0(): x = torch.rand(1)\n"
    ),
    "methods in a ring": lambda count: (
        f"{_TORCH}class C:\n{_ring('  def f{i}(self, x): return self.f{j}(x)', count)}C().f0(torch.rand(1))\n"
    ),
    "attributes in a ring": lambda count: (
        f"{_TORCH}class C:\n  def __init__(self):\n{_ring('    self.a{i} = self.a{j}', count)}C().a0(torch.rand(1))\n"
    ),
    "assignments in a ring": lambda count: (
        f"{_TORCH}def g():\n  while True:\n{_ring('    a{i} = a{j}', count)}    torch.rand(a0)\ng()\n"
    ),
    "functions, each calling both neighbours": _lines(
        "def f{i}(): f{j}(); f{i}()\n", "", "def f{n}(): return torch.rand(1)\nf0()"
    ),
    "functions, each calling the two before": _lines(
        "def f{j}(x): f{i}(x); g{i}(x)\ndef g{j}(x): f{i}(x)\n", "def f0(x): torch.rand(x)\ng0 = f0", "f{n}(1)"
    ),
    "functions, each returning what the one before returns": _lines(
        "def f{j}(x): return f{i}(x)\n", "def f0(x): return torch.rand(1)", "f{n}(1)"
    ),
    "functions, each handing on what it is given": _lines(
        "def f{j}(x, y=None): f{i}(x, y)\n", "def f0(x, y): torch.manual_seed(x); y()", "f{n}(1, torch.rand)"
    ),
    "functions, each within the one before": _lines("f{j} = lambda x: f{i}(x)\n", "f0 = torch.rand", "f{n}(1)"),
    "generators, each of the one before": _lines(
        "def f{j}():\n  yield from f{i}()\n", "def f0(): yield torch.rand(1)", "list(f{n}())"
    ),
    "assignments, each of the one before": _lines("a{j} = a{i}\n", "a0 = torch.rand(1)", "print(a{n})"),
    "assignments, each of the next": _lines("a{i} = a{j}\n", "", "a{n} = os.listdir('.')\nprint(a0[0])"),
    "assignments in a function": lambda count: (
        f"{_TORCH}def f(a0):\n"
        + "".join(f"  a{each + 1} = a{each}.to(a0)\n" for each in range(count))
        + "f(torch.rand(1))\n"
    ),
    "assignments of one variable": _lines("a = a + {i}\n", "a = torch.rand(1)"),
    "calls that assign one variable": _lines("a = f(a)\n", "def f(x): return x.index_select(0, x)\na = torch.rand(1)"),
    "calls of a method that assign one variable": _lines("a = a.f(a, {i})\n", "a = torch.rand(1)"),
    "one variable in a function": lambda count: (
        f"{_TORCH}def f(x, i):\n" + "  x = x.cumsum(0).index_select(0, i)\n" * count + "f(torch.rand(1), 0)\n"
    ),
    "variables exchanged": _lines("a, b = b, a\n", "a, b = torch.rand(1), torch.rand(1)"),
    "attributes, each of the one before": lambda count: (
        f"{_TORCH}class C(nn.Module):\n  def __init__(self):\n    self.a0 = nn.Linear(1, 1)\n"
        + "".join(f"    self.a{each + 1} = self.a{each}\n" for each in range(count))
        + f"  def forward(self, x): return self.a{count}(x)\nC()(torch.rand(1))\n"
    ),
    "layers": lambda count: (
        f"{_TORCH}class C(nn.Module):\n  def __init__(self):\n    super().__init__()\n"
        + "".join(f"    self.a{each} = nn.Linear(1, 1)\n" for each in range(count))
        + "  def forward(self, x):\n"
        + "".join(f"    x = self.a{each}(x)\n" for each in range(count))
        + f"    return x\n{_MAIN.format('C()(torch.rand(1)).backward()')}"
    ),
    "layers in a sequence": _joined(
        "m = nn.Sequential(", "nn.Conv2d(1, 1, 1), ", ")\nm(torch.rand(1)).sum().backward()"
    ),
    "methods": lambda count: (
        f"{_TORCH}class C:\n"
        + "".join(f"  def m{each}(self, x):\n    return self.m{each + 1}(x)\n" for each in range(count))
        + f"  def m{count}(self, x): return torch.rand(1)\nC().m0(1)\n"
    ),
    "methods that set one attribute": lambda count: (
        f"{_TORCH}class C:\n"
        + "".join(f"  def m{each}(self):\n    self.x = self.x or torch.rand({each})\n" for each in range(count))
        + "C().m0()\n"
    ),
    "methods called on one object": lambda count: (
        f"{_TORCH}class C:\n"
        + "".join(f"  def m{each}(self): return torch.rand(1)\n" for each in range(count))
        + "c = C()\n"
        + "".join(f"c.m{each}()\n" for each in range(count))
    ),
    "properties": lambda count: (
        f"{_TORCH}class C:\n"
        + "".join(f"  @property\n  def m{each}(self): return self.m{each + 1}\n" for each in range(count))
        + "print(C().m0)\n"
    ),
    "callers of one function": _lines(
        "def g{i}(y): return f(y, {i})\n", "def f(x, seed): torch.manual_seed(seed); return x"
    ),
    "callers of a function that selects": _lines(
        "def g{i}(y):\n  return f(y, torch.tensor([{i}]))\n",
        "def f(x, i): return x.index_select(0, i)",
        _MAIN.format("g1(torch.rand(1).cuda()).backward()"),
    ),
    "calls of one function": _lines("f({i}, torch.rand(1))\n", "def f(x, y): return y.index_select(0, x)"),
    "decorated functions": _lines("@d\ndef f{i}(): return torch.rand(1)\n", "def d(f): return f"),
    "functions, each decorated by the one before": _lines(
        "@f{i}\ndef f{j}(g): return g\n", "def f0(g): return g", "f{n}(1)"
    ),
    "decorators of one function": _joined("", "@d{i}\n", "def f(): return torch.rand(1)\nf()", "d0 = d1 = print"),
    "registered functions": _lines(
        "@register('f{i}')\ndef f{i}(): return torch.rand(1)\n",
        "TABLE = {}\ndef register(name):\n  def put(f):\n    TABLE[name] = f\n    return f\n  return put",
        "TABLE[input()]()",
    ),
    "functions in a dictionary": lambda count: (
        _TORCH
        + "".join(f"def f{each}(): return torch.rand(1)\n" for each in range(count))
        + "d = {"
        + "".join(f"'f{each}': f{each}, " for each in range(count))
        + "}\nd[input()]()\n"
        + "".join(f"d['f{each}']()\n" for each in range(count))
    ),
    "items put into a dictionary": _lines("d['a{i}'] = {i}\n", "d = {}", "DataLoader(x, **d, shuffle=True)"),
    "options": lambda count: (
        f"{_TORCH}p = argparse.ArgumentParser()\n"
        + "".join(f"p.add_argument('--seed{each}', type=int, default=None)\n" for each in range(count))
        + "a = p.parse_args()\n"
        + "".join(f"if a.seed{each} is not None: torch.manual_seed(a.seed{each})\n" for each in range(count))
        + "DataLoader(x, num_workers=a.seed1, shuffle=True)\n"
    ),
    "branches": _joined("if a == 0: pass\n", "elif a == {i}: torch.rand({i})\n", "else: pass"),
    "branches that assign": _joined(
        "if a == 0: x = 1\n", "elif a == {i}: x = torch.rand({i})\n", "print(x.index_select(0, i))"
    ),
    "conditions": _lines("if a{i}: x = torch.rand(x)\n", "x = 0"),
    "conditions that seed": _lines("if a{i}:\n  torch.manual_seed({i})\nelse:\n  x = torch.rand(1)\n"),
    "conditions that leave": lambda count: (
        f"{_TORCH}def f(x):\n"
        + "".join(f"  if x == {each}: return torch.rand(x)\n" for each in range(count))
        + "f(1)\n"
    ),
    "handlers": _joined("try: pass\n", "except E{i} as e: x = torch.rand(e)\n", "finally: print(x)"),
    "cases": _joined("match a:\n", "  case {i}: x = torch.rand({i})\n", "print(x)"),
    "loops": _lines("for x{j} in x{i}: torch.rand(x{j})\n", "x0 = os.listdir('.')"),
    "contexts": _joined("with (", "open('{i}') as f{i}, ", "): x = torch.rand(1)"),
    "contexts one after the other": _lines("with torch.no_grad(): x = x.index_select(0, i)\n", "x = torch.rand(1)"),
    "loops in a comprehension": _joined("x = [a", " for a{j} in a{i}", "]"),
    "parameters": _joined("def f(", "a{i}=None, ", "): torch.manual_seed(a1)\nf(1)"),
    "arguments by name": lambda count: (
        f"{_TORCH}def f(**kwargs): return dict(kwargs)\nDataLoader(d, {''.join(f'a{each}=1, ' for each in range(count))}shuffle=True)\n"
    ),
    "variables that are global": lambda count: (
        f"{_TORCH}" + "".join(f"def f{each}():\n  global x\n  x = torch.rand(1)\n" for each in range(count)) + "f1()\n"
    ),
    "imports": _lines("import m{i}\nfrom n{i} import *\nfrom m{i}.x import f{i} as g{i}\ng{i}()\n"),
    "imports of one module": _lines("import torch\nfrom torch import rand as r{i}\nr{i}(1)\n"),
    "loaders": _lines("l{i} = DataLoader(d{i}, shuffle=True, num_workers=2)\nfor x in l{i}: print(x)\n"),
    "loaders of one variable": _lines(
        "l = DataLoader(d, shuffle=True, num_workers=2)\n", "d = D()", "for x in l: print(x)"
    ),
    "seeds": _lines("torch.manual_seed({i}); np.random.seed({i}); random.seed()\n"),
    "draws": _lines("x = np.random.rand({i}), random.random(), torch.rand(1)\n"),
    "draws of an own generator": _lines(
        "g{i} = torch.Generator(); torch.rand(1, generator=g{i}); r = np.random.default_rng()\n"
    ),
    "listings": _lines("x{i} = os.listdir('{i}')\nprint(x{i}[0])\n"),
    "listings in one list": _lines("x += os.listdir('{i}')\n", "x = []", "print(x[0])"),
    "sets": _lines("s{i} = set(x)\nfor a in s{i}: y.append(a)\n"),
    "a set of names": _joined("s = {", "'a{i}', ", "}\nfor x in s: print(x); x = torch.rand(1)"),
    "sets of one variable": _lines("s = s | set(x)\n", "s = set()", "print(list(s)[0])"),
    "switches": _lines("torch.backends.cudnn.benchmark = True\ntorch.use_deterministic_algorithms(False)\n"),
    "selections": _lines(
        "y{i} = x.index_select(0, i)\n", "x = torch.rand(1, requires_grad=True).cuda()", "y1.backward()"
    ),
    "selections in one": _joined("y = x", ".index_select(0, i) + x", ""),
    "optimizers": _lines("o{i} = torch.optim.SGD(m.parameters(), 1)\no{i}.step()\n", "m = nn.Linear(1, 1)"),
    "entry points": _lines(_MAIN.format("x = torch.rand(1)")),
    "commands": _lines(
        "@click.command()\ndef f{i}(seed): torch.manual_seed(seed); nn.Linear(1, 1); torch.save(1, 2)\n", "import click"
    ),
    "datasets": _lines(
        "class D{i}(torch.utils.data.Dataset):\n  def __getitem__(self, i): return np.random.rand()\nDataLoader(D{i}(), num_workers=1)\n"
    ),
    "calls of a library behind an argument": _lines(
        "    x{j} = lib.step(x{i}, x{i}, x{i}, a)\n",
        "import lib\nclass C:\n  def f(self, a): return np.random.rand()\ndef g(c: C, a): return c.f(a)\n"
        "class D(torch.utils.data.Dataset):\n  def __init__(self, a): self.a = a\n  def __getitem__(self, a):\n    x0 = lib.start(self.a)",
        "    return g(x{n}, a)\nDataLoader(D(C()), num_workers=1)",
    ),
    "threads": _lines("threading.Thread(target=f{i}).start()\ndef f{i}(): return torch.rand(1)\n", "import threading"),
    "suppressions": _lines("x = torch.rand(1)  # noqa: TRL101\nx = 1  # torchrepro: ignore[TRL502] for {i}\n"),
    "comments": _lines("# {i}\n"),
    "blank lines": lambda count: _TORCH + "\n" * count + "x = torch.rand(1)\n",
    "environment": _lines("os.environ['A{i}'] = '1'\nos.environ['PYTHONHASHSEED'] = '{i}'\n"),
    "lines that go on": _joined("x = 1", " + \\\n  1", "\n"),
    "semicolons": _joined("x = torch.rand(1)", "; x = torch.rand({i})", ""),
    "deletions": _lines("del a{i}\n"),
    "assertions": _lines("assert len(os.listdir('{i}')) == 1\n"),
    "a string in lines": _joined("x = '''", "a{i}\n", "'''"),
    "annotations": _lines("x{i}: 'nn.Module | None' = None\nx{i}(1)\n"),
    "unions": _joined("def f(x: int", " | C{i}", "): return x(1)\nf(1)"),
    "a callback that is handed on": _joined(
        "def walk(fn, tree):\n",
        "  walk(fn, tree[{i}])\n",
        "  fn(tree)\ndef init(m): nn.init.normal_(m)\nwalk(init, [])\ntorch.save(1, 'y.pt')",
    ),
    "hashes": _lines("x{i} = hash(str(y{i})) % 10\ntorch.manual_seed(x{i})\n"),
    "results as they come": _lines(
        "for f in as_completed(fs{i}): out.append(f.result())\n",
        "from concurrent.futures import as_completed\nout = []",
    ),
}
