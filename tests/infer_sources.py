"""Sources for ``test_inference``: a comment states the inferred type of the expression before it."""

from __future__ import annotations

SOURCES = {
    "displays and literals": """
[1, 2]  # list(int, int)
(1, "a")  # tuple(int, str)
{1, 2}  # set[int]
{"a": 1}  # dict[int]
[1, "a"][1]  # str
[x for x in "ab"]  # list[str]
{int(x) for x in "12"}  # set[int]
None or {1}  # set[int]
""",
    "values that may be None": """
from typing import Optional, Union
def f(a: Optional[str], b: str | None, c: str = None, d: Optional[set[str]] = None, e: "Optional[str]" = "x"):
    a  # str or None
    b  # str or None
    c  # str or None
    d  # set[str] or None
    e  # str or None
    {a, "x"}  # set[str or None]
    {"x", None}  # set[str or None]
    a or "x"  # str
    "x" if a is None else a  # str
    a if a else "x"  # str
    a and a.strip()  # str or None
    a.strip()  # str
def g(names: set[str | None], rows: dict[str, list[str]], pairs: list[tuple[str, int | None]]):
    names  # set[str or None]
    {x for x in names}  # set[str or None]
    {x for x in names if x is not None}  # set[str]
    {x for x in names if x and len(x) > 1}  # set[str]
    rows.get("a")  # list[str] or None
    rows.get("a", [])  # list[str]
    pairs  # list[tuple(str, int or None)]
    found = set()
    found.add("a")
    found  # set[str]
    found.add(None)
    found  # set[str or None]
    found | {"b"}  # set[str or None]
    {"b"} | found  # set[str or None]
    {"b"} - found  # set[str]
def tested(a: str | None, b: str | None, c: str | None, d: str | None):
    if a is None:
        a = "x"
    a  # str
    if not b:
        return
    b  # str
    assert c is not None
    c  # str
    if d:
        d  # str
    else:
        d  # str or None
    d  # str or None
    b = None if d else "y"
    b  # str or None
def looped(names: list[str | None]):
    last = None
    for name in names:
        name  # str or None
        if name is None:
            continue
        name  # str
        last  # str or None
        last = name
    last  # str or None
def ends(x: str):
    if x:
        return "a"
def bare(x: str):
    if not x:
        return
    return x
def always(x: str):
    if x:
        return "a"
    raise ValueError
def said(x: str) -> str:
    if x:
        return "a"
    return None
def ask(x: str):
    ends(x)  # str or None
    bare(x)  # str or None
    always(x)  # str
    said(x)  # str
class C:
    def __init__(self):
        self.first = None
        self.names: Optional[str] = None
    def set(self):
        self.first = "a"
    def get(self):
        self.first  # str or None
        self.names  # none
""",
    "calls of Python": """
import glob, os
from pathlib import Path
set(os.listdir("."))  # set[str]
frozenset([1]) | {2}  # frozenset[int]
Path(".").glob("*")  # iterator[path]
Path(".").parent / "x"  # path
sorted({1})  # list[int]
[(i, n) for i, n in enumerate(glob.glob("*"))]  # list[tuple(int, str)]
len([1]) / 2  # float
"a b".split()  # list[str]
open("x")  # file[str]
""",
    "assignments in order": """
x = set()
x  # set
x = {1}
x  # set[int]
a, (b, *c) = 1, ("s", 2, 3)
b  # str
c  # list
a, b = b, a
a  # str
b  # int
""",
    "branches are joined": """
def f(a: list[str], b):
    if b:
        x = set(a)
    else:
        x = {1}
    x  # set
    y = None
    if b:
        y = set(a)
    y  # set[str] or None
    z = 1
    if b:
        z = "a"
    z  # ?
    if isinstance(b, (set, frozenset)):
        b  # set
    b  # ?
    assert isinstance(b, str)
    b  # str
""",
    "loops are gone round once more": """
def f(names: list[str]):
    x, y, last = None, {1}, 0
    for n in names:
        x  # set[str] or None
        last  # ?
        x = {n} if x is None else x | {n}
        y = set(names)
        last = n
    x  # set[str] or None
    y  # set
""",
    "annotations": """
from typing import Dict, Optional, Union
import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

def f(a: Optional[set[str]], b: "Dict[str, Tensor]", c: Union[int, str], d: torch.LongTensor, e: "Path | None", *g: int):
    a  # set[str] or None
    b["x"]  # tensor
    c  # ?
    d  # tensor integer
    g  # tuple[int]

def h(x: Float[Tensor, "b 3 h w"], y: Int[torch.Tensor, "*b n"], z: np.ndarray, t: tuple[int, ...]) -> set[int]:
    x  # tensor floating (_, 3, _, _)
    y  # tensor integer
    z  # ndarray
    t[0]  # int

h(1, 2, 3, 4)  # set[int]
""",
    "attributes and returns": """
from pathlib import Path
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    def __init__(self, root):
        self.root = Path(root)
        self.names = sorted(self.root.iterdir())
        self.seen = set()
    @property
    def count(self):
        return len(self.names)
    def first(self):
        return self.names[0]

data = Data(".")
data  # dataset Data
data.root  # path
data.names  # list[path]
data.seen  # set
data.count  # int
data.first()  # path
DataLoader(data)  # loader
""",
    "what every call passes": """
import os

def one(names, n=3):
    names  # list[str]
    n  # int

def other(names):
    names  # ?

one(os.listdir("."))
one(sorted(os.listdir("a")), 4)
other(os.listdir("."))
other({1})
""",
    "generators": """
import torch
torch.Generator()  # generator
torch.Generator().manual_seed(1)  # generator seeded
""",
    "the device of a with statement": """
import torch

def made(name):
    with torch.device("cuda"):
        torch.zeros(2)  # tensor floating cuda (2) contiguous no-grad
        torch.zeros(2, device="cpu")  # tensor floating cpu (2) contiguous no-grad
        with torch.device("cpu"):
            torch.arange(2)  # tensor int64 cpu (2) contiguous
    with torch.device(name):
        torch.zeros(2)  # tensor floating (2) contiguous no-grad
    torch.zeros(2)  # tensor floating (2) contiguous no-grad
    there = torch.device("cuda:1")
    with there, torch.no_grad():
        torch.ones(2)  # tensor floating cuda (2) contiguous no-grad
""",
    "a device for CUDA's own calls is none for tensors": """
import torch

def made(index):
    with torch.cuda.device(index):
        torch.zeros(2)  # tensor floating cpu (2) contiguous no-grad
""",
    "what functions give back": """
import torch

def init(layer, gain=1.0):
    torch.nn.init.ones_(layer.weight)
    return layer

def restore(model, optimizer, path):
    state = torch.load(path)
    model.load_state_dict(state["model"])
    return model, optimizer, state["epoch"]

def grown(rows, more=()):
    fill(rows)
    return rows

def other(layer):
    layer = layer.weight
    return layer

def either(layer, flag):
    if flag:
        layer = 3
    return layer

def wrapped(function):
    def inner(*args):
        return str(function(*args))
    return inner

@wrapped
def decorated(layer):
    return layer

class Net:
    def put(self, layer):
        return layer

    def two(self):
        self.put(1)  # int
        self.put("a")  # str

init(torch.nn.Linear(3, 1))  # module Linear
init(torch.nn.ReLU())  # module ReLU
init(gain=2.0, layer=torch.zeros(2))  # tensor floating cpu (2) contiguous no-grad
model, optimizer, epoch = restore(torch.nn.Linear(3, 1), 3, "a")
model  # module Linear
optimizer  # int
again, _, _ = restore(torch.nn.ReLU(), 3.5, "b")
again  # module ReLU
grown([1, 2])  # list
grown(torch.nn.ReLU())  # module ReLU
other(torch.nn.Linear(3, 1))  # ?
either(torch.nn.ReLU(), unknown)  # ?
decorated(torch.nn.ReLU())  # ?
init(*unknown)  # ?
model = restore(model, 3, "c")[0]
model  # module Linear
""",
    "starred targets": """
def rows(): return 1, ("s", 2.0, b"")
a, *b = 1, ["s"]
a  # int
b  # list
c, (d, *e, f) = rows()
d  # str
f  # bytes
*g, (h, i) = 1, 2, ("s", 3)
g  # list
h  # str
i  # int
""",
    "what methods that are called through their class give back": """
class Rows:
    def mine(self, rows):
        return rows
Rows.mine(Rows(), b"")  # bytes
Rows().mine("a")  # str
""",
}
