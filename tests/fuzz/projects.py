"""Projects whose names, strings and settings would be markup or commands where somebody shows them without care.

Each carries a word that nothing else has, so that a report where it comes out as a tag, an attribute, a link or a command is known.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from random import Random
from urllib.parse import unquote

from .commands import folder, run
from .corpus import Corpus
from .failure import Failure, controls_in
from .markup import MARK, wrong_html, wrong_links, wrong_markdown

_EVIL = (
    f"<{MARK} on{MARK}=1>",
    f'"><{MARK}>',
    f"' {MARK}=1 '",
    f'" {MARK}=1 "',
    f"</script><{MARK}>",
    f"</title></style><{MARK}>",
    f"<!--{MARK}",
    f"--><{MARK}>",
    f"]]><{MARK}>",
    f"&lt;{MARK}&gt;&#60;{MARK}>",
    f"javascript:{MARK}",
    f"[{MARK}](https://{MARK})",
    f"![{MARK}](//{MARK})",
    f"](https://{MARK})",
    f"| {MARK} |",
    f"`{MARK}`",
    f"```{MARK}",
    f"``<{MARK}>",
    f"\\`<{MARK}>`",
    f"~~~<{MARK}>",
    f"::error file={MARK}::{MARK}",
    f"%0A::error::{MARK}",
    f"\x1b[31m{MARK}",
    f"\u202e{MARK}\u2066",
    f"\x85{MARK}\u2028{MARK}",
    f"{{0}}{{{MARK}}}",
    f"#{MARK} @{MARK} !{MARK}",
    f"%00%2e%2e%2f{MARK}",
)
# What says much: each program is of some of these. `S` is a string's inside, `N` a name, `P` a path without its end.
_PARTS = (
    "import os, sys, glob, random, argparse\nimport numpy as np\nimport torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\n",
    "os.environ['S'] = 'S'\n",
    "os.environ['CUBLAS_WORKSPACE_CONFIG'] = 'S'\n",
    "os.putenv('S', 'S')\n",
    "p = argparse.ArgumentParser('S')\np.add_argument('--seed-S', 'S', dest='S', default='S', help='S')\na = p.parse_args()\n",
    "torch.manual_seed(int('S'))\n",
    "random.seed('S')\nnp.random.seed(hash('S'))\n",
    "torch.backends.cudnn.benchmark = True  # S\n",
    "torch.use_deterministic_algorithms('S')\n",
    "torch.set_deterministic_debug_mode('S')\n",
    "for name in os.listdir('S'): print(name, 'S')  # S\n",
    "x = [torch.load(e) for e in glob.glob('S')]\n",
    "for N in {'S', 'S'}: print(N)\n",
    "def N(x):\n    'S'\n    return x.index_select(0, torch.tensor([0]))\nN(torch.rand(1, requires_grad=True).cuda()).sum().backward()\n",
    "class N(nn.Module):\n    'S'\n    def forward(self, x):\n        return nn.functional.interpolate(x, mode='S')\nN()(torch.rand(1).cuda()).sum().backward()\n",
    "for x in DataLoader('S', shuffle=True, num_workers=4): print(x)\n",
    "g = torch.Generator(device='S')\ntorch.rand(1, generator=g).cuda()\n",
    "if 'S' in sys.argv:\n    np.random.seed(0)\n",
    "torch.save(nn.Linear(1, 1).cuda(), 'S')\n",
    "x = getattr(torch, 'S')(1)\nfrom N import *\nimport N.N as N\nN('S')\n",
    "x = torch.compile(print, mode='max-autotune', options={'S': 'S'})\n",
    "exec('S')\n",
    "print('S'  # noqa: TRL101, S\n",
    "def broken(S:\n",
    "if __name__ == '__main__':\n    N('S', random.random())\n",
)
_TOML = (
    "[project]\nname = S\nversion = S\ndependencies = ['torch==2.1', S]\n",
    "[tool.torchrepro-lint]\nignore = [S]\n",
    "[tool.torchrepro-lint]\ntorch-version = S\n",
    "[tool.torchrepro-lint]\nexclude = [S]\nselect = ['ALL']\n",
    "[tool.torchrepro-lint.per-file-ignores]\nS = ['TRL502']\n",
    "[tool.torchrepro-lint.seeders]\nS = ['torch']\n",
)
_FORMATS = ("flake8", "full", "json", "json-lines", "sarif", "github", "gitlab", "junit", "markdown")


def project(chance: Random, corpus: Corpus) -> bytes:
    """A project as JSON: its files by their paths."""
    files = {}
    for _ in range(chance.randint(1, 3)):
        parts = "".join(_filled(chance, each) for each in _parts(chance))
        files[_path(chance)] = _notebook(parts) if chance.random() < 0.1 else parts
    if chance.random() < 0.6:
        files["pyproject.toml"] = _settings(chance)
    return json.dumps(files).encode()


def try_project(data: bytes) -> Iterator[Failure]:
    """What is wrong with what is said of a project, in any form."""
    files = {name: text.encode("utf-8", "surrogateescape") for name, text in json.loads(data).items()}
    with folder({name: text for name, text in files.items() if _fits(name)}):
        yield from _reports()
        yield from _findings()


def _reports() -> Iterator[Failure]:
    """The page, in each form, and beside what it was."""
    options = ("report", "--no-cache", "--jobs", "1", "--select", "ALL")
    old = run(*options, "--output-format", "json", "-o", "old.json")
    compared = ("--compare", "old.json", "--device", "cuda") if old.status in (0, 1) else ()
    for form, wrong in (("html", wrong_html), ("markdown", wrong_markdown), ("json", _no_json)):
        ran = run(*options, *compared, "--output-format", form)
        yield from _ended(f"the report as {form}", ran.status, ran.err)
        if ran.status in (0, 1):
            yield from (Failure("lost", f"the report as {form}: {each}") for each in wrong(ran.out))
            yield from controls_in(f"the report as {form}", ran.out)


def _findings() -> Iterator[Failure]:
    """The findings in each format; those that go by lines have one for each."""
    said: dict[str, str] = {}
    for name in _FORMATS:
        ran = run("check", "--no-cache", "--jobs", "1", "--select", "ALL", "-q", "--output-format", name)
        yield from _ended(name, ran.status, ran.err)
        if ran.status not in (0, 1):
            return
        yield from controls_in(name, ran.out)
        said[name] = ran.out
    found = json.loads(said["json"])
    for name in ("flake8", "github", "json-lines"):
        if len(said[name].splitlines()) != len(found):
            yield Failure("lost", f"{name} has other lines than findings")
    if not all(line.startswith(("::notice ", "::warning ", "::error ")) for line in said["github"].splitlines()):
        yield Failure("lost", "github has lines that are no commands of ours")
    yield from (Failure("lost", f"markdown: {each}") for each in wrong_markdown(said["markdown"]))
    yield from (Failure("lost", f"sarif: {each}") for each in wrong_links(json.loads(said["sarif"])))
    names = {os.path.relpath(one["filename"]).replace(os.sep, "/") for one in found}
    results = json.loads(said["sarif"])["runs"][0]["results"]
    places = [one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in results]
    if {unquote(each, errors="surrogateescape") for each in places} != names:
        yield Failure("lost", "sarif names other files than were read")
    if {one["location"]["path"] for one in json.loads(said["gitlab"])} != names:
        yield Failure("lost", "gitlab names other files than were read")


def _ended(what: str, status: int, err: str) -> Iterator[Failure]:
    if status not in (0, 1, 2) or "Traceback" in err or (status == 2 and not err.strip()):
        yield Failure("crash", f"{what}: status {status}: {err[-200:]}")
    yield from controls_in(f"what is said beside {what}", err)


def _no_json(text: str) -> Iterator[str]:
    json.loads(text)
    yield from ()


def _parts(chance: Random) -> list[str]:
    return [_PARTS[0], *(chance.choice(_PARTS[1:]) for _ in range(chance.randint(1, 8)))]


def _filled(chance: Random, text: str) -> str:
    """A part with its strings, names and comments."""
    while "S" in text:
        text = text.replace("S", _inside(chance, chance.choice(_EVIL)), 1)
    for name in ("N",):
        text = text.replace(name, chance.choice((MARK, f"_{MARK}_", f"{MARK}ß", f"\u0434{MARK}")))
    return text


def _inside(chance: Random, evil: str) -> str:
    """What stands between quotes; mostly so that the string stays one, with nothing that is replaced again."""
    if chance.random() < 0.05:
        return evil.upper().replace("S", "")
    return json.dumps(evil, ensure_ascii=chance.random() < 0.3)[1:-1].replace("'", "\\'").replace("S", "s")


def _settings(chance: Random) -> str:
    text = chance.choice(_TOML)
    return text.replace("S", json.dumps(chance.choice(_EVIL), ensure_ascii=True))


def _notebook(text: str) -> str:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": text}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def _path(chance: Random) -> str:
    """A path that a file system may hold."""
    parts = [chance.choice((*_EVIL, "src", "train", "é", "a b", "\udcff")) for _ in range(chance.choice((1, 1, 2)))]
    path = "/".join(each.replace("/", chance.choice("_-")) for each in parts)
    return f"{path}{chance.choice(('.py', '.py', '.py', '.ipynb', '/__init__.py', '/pyproject.toml'))}"


def _fits(name: str) -> bool:
    """Whether this file system takes such a name, and no file has the name of another's folder."""
    try:
        return len(os.fsencode(name)) < 200
    except UnicodeEncodeError:
        return False
