"""Sources for ``test_inference`` on tensors, arrays and modules, by origin and operation."""

from __future__ import annotations

TENSOR_SOURCES = {
    "arrays, frames and paths of libraries": """
import numpy as np
import pandas as pd
from pathlib import Path
np.zeros(3)  # ndarray
np.stack([np.ones(2)])  # ndarray
np.array([1]) + 1  # ndarray
np.random.default_rng(0)  # generator seeded
np.random.RandomState()  # generator
pd.read_csv("x")  # dataframe
pd.read_csv("x").index  # series
pd.DataFrame({})  # dataframe
Path("a").read_text()  # str
with open("x") as file:
    file  # file[str]
""",
    "tensors by their makers": """
import torch
torch.zeros(2, 3)  # tensor floating cpu (2, 3) contiguous no-grad
torch.arange(4)  # tensor int64 cpu (4) contiguous
torch.tensor([[1, 2], [3, 4]])  # tensor int64 cpu (2, 2) contiguous
torch.ones(2, device="cuda", dtype=torch.long)  # tensor int64 cuda (2) contiguous
torch.randn(2, requires_grad=True)  # tensor floating cpu (2) contiguous
torch.zeros_like(torch.ones(1, 2).bool())  # tensor bool cpu (1, 2) contiguous
torch.sparse_coo_tensor([[0]], torch.ones(1))  # tensor floating sparse
torch.quantize_per_tensor(torch.ones(1), 1.0, 0, torch.quint8)  # tensor cpu (1) quantized no-grad
torch.nested.nested_tensor([])  # tensor nested
torch.load("x")["w"]  # loaded
""",
    "what changes dimensions": """
import torch
x = torch.zeros(2, 3, 4)
x.unsqueeze(0)  # tensor floating cpu (1, 2, 3, 4) contiguous no-grad
x.view(6, -1)  # tensor floating cpu (6, 4) contiguous no-grad
x.sum(1)  # tensor floating cpu (2, 4) no-grad
x.permute(2, 0, 1)  # tensor floating cpu (4, 2, 3) strided no-grad
x[0]  # tensor floating cpu (3, 4) contiguous no-grad
x[:, None]  # tensor floating cpu 4-d no-grad
x.flatten(1)  # tensor floating cpu (2, 12) contiguous no-grad
x.max(0).indices  # tensor int64 cpu (3, 4)
x @ torch.zeros(4, 5)  # tensor floating cpu (2, 3, 5) no-grad
torch.cat([x, x])  # tensor floating cpu 3-d contiguous no-grad
torch.stack([x, x])  # tensor floating cpu 4-d contiguous no-grad
torch.einsum("abc->ca", x)  # tensor floating cpu 2-d no-grad
torch.cartesian_prod(torch.arange(3), torch.arange(2))  # tensor int64 cpu 2-d
torch.cartesian_prod(torch.arange(3))  # tensor int64 cpu 1-d
torch.combinations(torch.arange(4), 3)  # tensor int64 cpu 2-d
[row for row in x][0]  # tensor floating cpu (3, 4) contiguous no-grad
""",
    "what pictures are after they were pooled, resized or convolved": """
import torch
import torch.nn.functional as F
from torch import nn
def run(x, mode):
    F.interpolate(x, 8, mode="bilinear")  # tensor 4-d
    F.interpolate(x, None, 2, "trilinear")  # tensor 5-d
    F.interpolate(x, 8, mode="linear")  # tensor 3-d
    F.upsample_bilinear(x, 8)  # tensor 4-d
    F.interpolate(x, 8)  # tensor 3+d
    F.interpolate(x, 8, mode=mode)  # tensor 3+d
    F.interpolate(torch.zeros(1, 2, 3, 4), 8, mode=mode)  # tensor floating cpu 4-d no-grad
    F.conv2d(torch.zeros(1, 2, 3, 4), x)  # tensor floating cpu 4-d
    F.avg_pool2d(torch.zeros(1, 2, 3, 4), 2)  # tensor floating cpu 4-d no-grad
    F.max_pool2d(torch.zeros(2, 3, 4), 2)  # tensor floating cpu 3-d no-grad
    F.adaptive_avg_pool2d(x, 1)  # tensor 3-4-d
    F.adaptive_avg_pool2d(x, 1).flatten(1)  # tensor 2-d
    nn.Upsample(scale_factor=2, mode="bicubic")(x)  # tensor 4-d
    nn.Upsample(None, 2, "nearest")(x)  # tensor 3+d
    nn.UpsamplingBilinear2d(4)(x)  # tensor 4-d
""",
    "modules that are wrapped": """
import torch
from torch import nn
class Net(nn.Module):
    def forward(self, x):
        return torch.zeros(2, 3)
net = Net()
nn.DataParallel(net)(1)  # tensor floating cpu (2, 3) contiguous no-grad
nn.parallel.DistributedDataParallel(module=net, device_ids=[0]).module(1)  # tensor floating cpu (2, 3) contiguous no-grad
torch.compile(net, mode="default")(1)  # tensor floating cpu (2, 3) contiguous no-grad
nn.SyncBatchNorm.convert_sync_batchnorm(net)(1)  # tensor floating cpu (2, 3) contiguous no-grad
nn.DataParallel(other)(1)  # ?
net.module  # module Net
""",
    "what is measured has so many dimensions": """
import torch
def run(x, y, z, n):
    h, w = x.size(2), x.size(3)
    x.abs()  # tensor 4+d
    c = y.shape[1]
    torch.abs(y)  # tensor 2+d
    last = z.size(-1), z.shape[-2], z.size(n), z.shape[n]
    z.abs()  # tensor
    two = torch.zeros(3, 4)
    rows = two.size(0)
    two  # tensor floating cpu (3, 4) contiguous no-grad
    names = ["a"]
    first = names.shape[3]
    names  # list(str)
    h, x = x.size(4), x.size(1)
    x  # int
""",
    "batches of a loader": """
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader
from tqdm import tqdm
def run(data):
    loader = DataLoader(data, batch_size=4)
    for images, labels in tqdm(loader):
        F.interpolate(images, 8, mode="bilinear")  # tensor 4-d no-grad
        images.to("cuda").view(2, 3)  # tensor cuda (2, 3) no-grad
    for number, batch in enumerate(loader):
        F.interpolate(batch["image"], 8, mode="bilinear")  # tensor 4-d no-grad
        F.interpolate(nn.Conv2d(3, 3, 1)(batch[0]), 8, mode="bilinear")  # tensor 4-d
    for attacked, _ in loader:
        attacked.requires_grad_()
        F.interpolate(attacked, 8, mode="bilinear")  # tensor 4-d
""",
    "dtypes and devices": """
import torch
x = torch.zeros(2)
x.long()  # tensor int64 cpu (2) contiguous
x.to(torch.float16)  # tensor float16 cpu (2) contiguous no-grad
x.to("cuda:0")  # tensor floating cuda (2) contiguous no-grad
x.cuda()  # tensor floating cuda (2) contiguous no-grad
x > 0  # tensor bool cpu (2) contiguous
x.long() + 1  # tensor int64 cpu (2) contiguous
x.long() / 2  # tensor floating cpu (2) contiguous no-grad
x.type_as(torch.arange(3))  # tensor int64 cpu (2) contiguous
x.numpy()  # ndarray
x.sum().item()  # float
x.shape  # tuple(int)
x.dim()  # int
""",
    "layers, parameters and buffers": """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.weight = nn.Parameter(torch.ones(3))
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(8, 5))
        self.register_buffer("mean", torch.zeros(1, 3))
        self.words = nn.Embedding(9, 4)

    def forward(self, x: torch.Tensor, index: torch.LongTensor):
        self.conv  # module Conv2d
        self.conv(x)  # tensor 3-4-d
        self.weight  # parameter floating (3) contiguous
        self.mean  # tensor floating (1, 3) contiguous no-grad
        self.words(index)  # tensor floating 1+d
        index  # tensor integer
        return self.head(torch.zeros(2, 8))

net = Net()
net  # module Net
net(1)  # tensor floating cpu (2, 5)
net.eval().state_dict()  # loaded
""",
    "whether a gradient can be needed": """
import torch

def f(x: torch.Tensor, w: torch.Tensor):
    x.detach()  # tensor no-grad
    x.data  # tensor no-grad
    (x * w)  # tensor
    (x.detach() * w.detach())  # tensor no-grad
    with torch.no_grad():
        x + w  # tensor no-grad
        with torch.enable_grad():
            x + w  # tensor
    with torch.inference_mode():
        x.exp()  # tensor no-grad
    y = torch.randn(3, requires_grad=True)
    y  # tensor floating cpu (3) contiguous
    y.requires_grad_(False)  # tensor floating cpu (3) contiguous no-grad
    z = torch.zeros(3)
    z.requires_grad = True
    z  # tensor floating cpu (3) contiguous

@torch.no_grad()
def g(x: torch.Tensor):
    x.sin()  # tensor no-grad

def only_without(x):
    x  # tensor no-grad

def run(w: torch.Tensor):
    with torch.no_grad():
        only_without(w * 2)
""",
    "dictionaries that are put together, and options": """
def f(n: int, **options):
    known = {"a": 1}
    known.update({"b": 2})
    known  # dict[int]
    known["a"]  # int
    options  # dict
    more = {**known, "c": 3}
    more  # dict[int]
    {**known, **n}  # dict
    merged = dict(a=1, b=2)
    merged["b"]  # int
    merged["c"] = "x"
    merged["c"]  # ?
""",
    "state dictionaries that are rebuilt": """
import torch
from collections import OrderedDict

def strip(state, prefix):
    out = {}
    for key, value in state.items():
        out[key.removeprefix(prefix)] = value
    return out

def merge(*states):
    out = {}
    for one in states:
        out.update(one)
    return out

def f(path, model, live, flag):
    state = torch.load(path)
    new = OrderedDict((key[7:], value) for key, value in state.items())
    new["w"]  # loaded
    {**state, **strip(new, "a.")}["w"]  # loaded
    (state | torch.load("b"))["w"]  # loaded
    dict(state)["w"]  # loaded
    dict(zip(["w"], state.values()))["w"]  # loaded
    merged = merge(state, torch.load("b"))
    merged["w"]  # loaded
    own = model.state_dict()
    own.update(state)
    own["w"]  # loaded
    empty = {}
    if flag:
        empty = state
    empty["w"]  # loaded
    mixed = dict(state)
    mixed["w"] = live
    mixed["w"]  # ?
""",
    "guards, with and walrus": """
import torch
from torch import nn

def f(x, y, net):
    if isinstance(x, torch.Tensor):
        x  # tensor
        if x.ndim == 3:
            x  # tensor 3-d
        b, c, h, w = x.shape
        x  # tensor 4-d
    if not isinstance(y, str):
        return
    y  # str
    with nn.Linear(1, 2) as layer:
        layer  # module Linear
    if (n := len(y)) > 3:
        n  # int
    assert torch.is_tensor(net)
    net  # tensor
""",
    "containers that are given away": """
def fill(names):
    names.append(1)

def f():
    kept, given, nested = [], [], [[]]
    kept  # list
    kept.append("a")
    kept  # list[str]
    given.append("a")
    fill(given)
    given  # list
    nested[0].append(2)
    nested  # list
    for last in ["a", "b"]:
        pass
    last  # str
    try:
        found = fill(kept)
    except ValueError:
        found = "x"
        found  # str
    else:
        found = 1
    found  # ?
""",
}
