"""The forward that is trained: it is followed to the operations in it, or what is not followed is told and nothing is fixed."""

from __future__ import annotations

import pytest

from one_file import project_of
from torchrepro_lint.catalogue import catalogue
from torchrepro_lint.checks import cublas_workspace, deterministic_algorithms, not_enabled
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.config.settings import Settings
from torchrepro_lint.domain.operations.gaps import gaps_to_loss
from torchrepro_lint.domain.programs import all_programs
from torchrepro_lint.source.text import Fix, Lines, NoFix
from torchrepro_lint.trace.traces import Context

TORCH = "2.9"
HEAD = """\
import copy
from typing import Callable, Optional

import torch
import torch.nn as nn
import torch.nn.functional as F
"""
NET = """

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3)

    def forward(self, x):
        return F.interpolate(self.conv(x), scale_factor=2, mode="MODE")

    def features(self, x):
        return F.interpolate(self.conv(x), scale_factor=2, mode="MODE")
"""
MAIN = """

def main():
    torch.manual_seed(0)
    Trainer(Net(), torch.device("cuda")).fit(torch.rand(2, 3, 8, 8, device="cuda"))


if __name__ == "__main__":
    main()
"""


def trainer(make: str, call: str = "self.model(x)", annotation: str = ": nn.Module") -> str:
    return f"""

class Trainer:
    def __init__(self, model{annotation}, device):
        {make}

    def fit(self, x):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        loss = {call}.mean()
        loss.backward()
        optimizer.step()
"""


def contexts(files: dict[str, str]) -> dict[str, Context]:
    project, settings = project_of(files, "auto", TORCH), Settings()
    project.position = lambda path, offset: Lines(files[path]).position(offset)  # type: ignore[method-assign]
    return {
        path: Context(path, project.files[path], Lines(text), project, catalogue.load(TORCH), settings)
        for path, text in files.items()
    }


def found(text: str, others: dict[str, str] | None = None) -> Finding:
    (finding,) = not_enabled.check(contexts({"train.py": text, **(others or {})})["train.py"])
    return finding


def followed(text: str) -> bool:
    """Whether bicubic interpolation in the forward is named, and linear interpolation there is fixed."""
    stopped, free = found(text.replace("MODE", "bicubic")), found(text.replace("MODE", "bilinear"))
    assert isinstance(free.remedy, Fix), free.message
    assert isinstance(stopped.remedy, NoFix), stopped.message
    return "would raise an error at F.interpolate" in stopped.message and "F.interpolate" in stopped.remedy.reason


MAKES = [
    "self.model = model",
    "self.model = model.to(device)",
    "self.model = model.cuda()",
    "self.model = model.half().to(device).train()",
    "self.model = model.eval()",
    "self.model = model.apply(print)",
    "self.model = nn.parallel.DistributedDataParallel(model)",
    "self.model = nn.parallel.DistributedDataParallel(module=model, device_ids=[0])",
    "self.model = nn.DataParallel(model).to(device)",
    "self.model = torch.compile(model)",
    "self.model = torch.compile(model, dynamic=True)",
    "self.model = torch.jit.script(model)",
    "self.model = nn.SyncBatchNorm.convert_sync_batchnorm(model)",
    "self.model = copy.deepcopy(model)",
    "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP; self.model = FSDP(model)",
    "from torch.distributed.fsdp import fully_shard; self.model = fully_shard(model)",
    "from accelerate import Accelerator; self.model = Accelerator().prepare(model)",
    "from accelerate import Accelerator; self.model, self.q = Accelerator().prepare(model, 3)",
    "from accelerate import Accelerator; self.q, self.model = Accelerator().prepare(3, model)",
    "import accelerate; self.acc = accelerate.Accelerator(); net = self.acc.prepare(model); self.model = net",
    "import lightning; fabric = lightning.Fabric(); self.model = fabric.setup(model)",
    "import lightning; fabric = lightning.Fabric(); self.model, self.q = fabric.setup(model, 3)",
    "import lightning; self.model = lightning.Fabric().setup(model, move_to_device=False)",
    "from accelerate import Accelerator; self.model = Accelerator().prepare(model, device_placement=[True])",
    "import deepspeed; self.model, *_ = deepspeed.initialize(model=model)",
    "import deepspeed; self.model, self.q, _, _ = deepspeed.initialize(model=model)",
    "import peft; self.model = peft.get_peft_model(model, None)",
    "self.model = model if device is None else model.to(device)",
    "self.model = model or None",
    "self.nets = {'a': model}; self.model = self.nets['a']",
    "self.model = model.to(device); self.model = nn.DataParallel(self.model)",
]


@pytest.mark.parametrize("annotation", [": nn.Module", ""])
@pytest.mark.parametrize("make", MAKES)
def test_a_wrapped_model_is_followed(make: str, annotation: str) -> None:
    assert followed(HEAD + NET + trainer(make, annotation=annotation) + MAIN)


@pytest.mark.parametrize("annotation", ["", ": Net", ": Optional[nn.Module] = None", ": 'nn.Module'", ": Callable"])
def test_whatever_an_annotation_says(annotation: str) -> None:
    made = trainer("self.model = model", annotation=annotation).replace("device)", "device=None)")
    assert followed(HEAD + NET + made + MAIN)


@pytest.mark.parametrize("call", ["self.model.forward(x)", "self.model.module(x)", "self.model.features(x)"])
@pytest.mark.parametrize("make", ["self.model = model.to(device)", "self.model = nn.DataParallel(model)"])
def test_methods_of_the_model_are_followed(make: str, call: str) -> None:
    assert followed(HEAD + NET + trainer(make, call) + MAIN)


def test_a_subclass_that_is_passed_for_its_base() -> None:
    base = "\n\nclass Base(nn.Module):\n    def forward(self, x):\n        raise NotImplementedError\n"
    text = HEAD + base + NET.replace("Net(nn.Module)", "Net(Base)") + trainer("self.model = model", annotation=": Base")
    assert followed(text + MAIN)
    own = trainer("self.model = model", "self.model.features(x)", ": Base")
    assert followed(
        HEAD + base.replace("forward", "features") + NET.replace("Net(nn.Module)", "Net(Base)") + own + MAIN
    )


def test_a_model_that_a_base_class_of_the_trainer_has() -> None:
    made = trainer("self.model = model.to(device)").replace("class Trainer", "class Base")
    assert followed(HEAD + NET + made + "\n\nclass Trainer(Base):\n    pass\n" + MAIN)


def test_functions_that_pass_the_model_on() -> None:
    made = """

def wrapped(model: nn.Module, device) -> nn.Module:
    return nn.DataParallel(model.to(device))


def step(model: nn.Module, x):
    loss = model(x).mean()
    loss.backward()


class Trainer:
    def __init__(self, model: nn.Module, device):
        self.model = wrapped(model, device)

    def fit(self, x):
        step(self.model, x)
"""
    assert followed(HEAD + NET + made + MAIN)


NAMED = [
    ('self.add_module("one", BLOCK)', "self.one(x)"),
    ('setattr(self, "one", BLOCK)', "self.one(x)"),
    ('self.__setattr__("one", BLOCK)', "self.one(x)"),
    ('for i in range(3):\n            setattr(self, f"block{i}", BLOCK)', 'getattr(self, f"block{x.dim() - 3}")(x)'),
    ('for i in range(3):\n            setattr(self, "block" + str(i) + "_1", BLOCK)', "self.block0_1(x)"),
    ('for i in range(3):\n            self.add_module("block%d" % i, BLOCK)', 'getattr(self, "block%d" % x.dim())(x)'),
    ('for i in range(3):\n            self.add_module("a_{}".format(i), BLOCK)', 'getattr(self, "a_{}".format(0))(x)'),
    ("self.block1, self.block2 = BLOCK, BLOCK", "getattr(self, f'block{x.dim() - 3}')(x)"),
    ("block = BLOCK\n        setattr(self, f'a{x}', nn.Sequential(block, nn.ReLU()))", "getattr(self, f'a{x}')(x)"),
    ("name = f'block{1}'\n        setattr(self, name, BLOCK)", "self.block1(x)"),
]


@pytest.mark.parametrize(("store", "call"), NAMED)
def test_a_layer_that_is_set_under_a_composed_name(store: str, call: str) -> None:
    made = f"""

class Stack(nn.Module):
    def __init__(self, x=3):
        super().__init__()
        {store.replace("BLOCK", "Net()")}

    def forward(self, x):
        return {call}
"""
    assert followed(HEAD + NET + made + trainer("self.model = model") + MAIN.replace("Net()", "Stack()"))


@pytest.mark.parametrize("store", ["setattr(self, x, Net())", "setattr(x, 'head0', Net())", "self.tail0 = Net()"])
def test_a_layer_whose_name_may_be_any_other(store: str) -> None:
    text = HEAD + NET.replace("MODE", "bilinear") + trainer("self.model = model") + MAIN.replace("Net()", "Stack()")
    text += f"""

class Stack(nn.Module):
    def __init__(self, x=None):
        super().__init__()
        {store}

    def forward(self, x):
        return getattr(self, f"head{{x.dim()}}")(x)
"""
    assert "runs is not known" in found(text).message


STEPS = [
    # A method that a base class runs on its object.
    """
class Base:
    def fit(self, x):
        self.step(self.model, x)

    def step(self, net, x):
        raise NotImplementedError


class Trainer(Base):
    def __init__(self, model, device):
        self.model = model

    def step(self, net, x):
        net(x).mean().backward()
""",
    # The same, where the base class does not have the method, and its constructor gets the model by a star.
    """
class Base:
    def __init__(self, model, *, device=None):
        self.model = model

    def fit(self, x):
        self.step(self.model, x)


class Trainer(Base):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)

    def step(self, net, x):
        net(x).mean().backward()
""",
    """
class Base:
    def __init__(self, *, model, device=None):
        self.model = model


class Middle(Base):
    def __init__(self, lr, **kwargs):
        super().__init__(**kwargs)


class Trainer(Middle):
    def __init__(self, model, device):
        Middle.__init__(self, 0.1, model=model, device=device)

    def fit(self, x):
        self.model(x).mean().backward()
""",
    # A method of an object that is passed, which gets the model.
    """
class Loss:
    def of(self, net, x):
        return net(x).mean()


class Trainer:
    def __init__(self, model, device):
        self.inner = Inner(Loss(), model)

    def fit(self, x):
        self.inner.fit(x)


class Inner:
    def __init__(self, loss, model):
        self.loss, self.model = loss, model

    def fit(self, x):
        self.loss.of(self.model, x).backward()
""",
    """
import functools


class Loss:
    def of(self, net, x, other=None):
        return net(x).mean() if other is None else other(x)


class Trainer:
    def __init__(self, model, device, loss=None):
        self.model, self.loss = model, loss or Loss()

    def fit(self, x):
        compute = functools.partial(self.loss.of, self.model, x)
        compute().backward()
""",
    # A function from a table.
    """
def first(net, x):
    return net(x).mean()


def second(net, x):
    return net(x).sum()


STEPS = {"first": first, "second": second}


class Trainer:
    def __init__(self, model, device, kind="first"):
        self.model, self.kind = model, kind

    def fit(self, x):
        step = STEPS[self.kind]
        (step(self.model, x) + STEPS.get(self.kind)(self.model, x)).backward()
""",
    # Arguments in a literal tuple or dictionary.
    """
class Inner:
    def __init__(self, lr, model, device=None):
        self.model = model


def step(net, x, scale=1):
    return net(x).mean() * scale


class Trainer:
    def __init__(self, model, device):
        kwargs = {"model": model, "lr": 0.1}
        self.inner = Inner(**kwargs)

    def fit(self, x):
        params = (self.inner.model, x)
        step(*params, 2).backward()
""",
    # A table that a function returns with something else.
    """
def make(model):
    heads = {"first": model}
    heads["other"] = model
    return 0.1, heads


def build(model):
    return make(model)


def run(heads, x):
    (heads["first"](x) + heads["other"](x)).mean().backward()


class Trainer:
    def __init__(self, model, device):
        self.model = model

    def fit(self, x):
        lr, heads = build(self.model)
        run(heads, x)
""",
    # A function for which only None is passed.
    """
def of(net, x, denoise=None):
    def processed(y):
        if denoise is not None:
            y = denoise(y)
        return y

    return processed(net(x)).mean()


def both(net, x, denoise=None):
    return of(net, x, denoise=denoise)


class Trainer:
    def __init__(self, model, device):
        self.model = model

    def fit(self, x):
        of(self.model, x, None).backward()
""",
]


@pytest.mark.parametrize("steps", STEPS)
def test_a_model_that_methods_and_functions_pass_on(steps: str) -> None:
    assert followed(HEAD + NET + "\n" + steps + MAIN)


def test_a_constructor_that_changes_what_it_hands_on() -> None:
    text = STEPS[2].replace("        super()", "        kwargs['model'] = missing.model\n        super()", 1)
    assert text != STEPS[2]
    assert isinstance(found((HEAD + NET + text + MAIN).replace("MODE", "bilinear")).remedy, NoFix)


GAPS = [
    ("from other import wrap; self.model = wrap(model)", "self.model(x)"),
    ("import lib; self.model = lib.wrap(model)", "self.model(x)"),
    ("self.model = globals()[model]", "self.model(x)"),
    ("self.model = torch.load('net.pt')", "self.model(x)"),
    ("self.model = torch.load('net.pt')['model'].to(device)", "self.model(x)"),
    ("self.model = missing.model", "self.model(x)"),
    ("self.model = missing.model", "self.model.features(x)"),
    ("from other import Net as Other; self.model = Other()", "self.model(x)"),
]


@pytest.mark.parametrize(("make", "call"), GAPS)
def test_what_is_not_followed_is_told_and_nothing_is_fixed(make: str, call: str) -> None:
    text = HEAD + NET.replace("MODE", "bilinear") + trainer(make, call) + MAIN
    others = {"lib.py": "def wrap(model):\n    return globals()[model.name](model)\n"}
    finding = found(text, others)
    row = text[: text.index(f"{call}.mean")].count("\n") + 1
    assert f"; what {call} (train.py:{row}) runs is not known, so check it before you call" in finding.message
    assert isinstance(finding.remedy, NoFix)
    assert (
        finding.remedy.reason
        == f"what {call} (train.py:{row}) runs is not known, and deterministic algorithms may raise an error there"
    )


def test_a_parameter_that_nothing_passes() -> None:
    text = (
        HEAD + NET.replace("MODE", "bilinear") + trainer("self.model = model") + MAIN.replace("Net()", "table['net']()")
    )
    assert "nn.Conv2d" not in text.partition("class Trainer")[2]
    text += "\n\nNet().conv(torch.rand(1, 3, 8, 8, device='cuda')).sum().backward()\n"
    assert isinstance(found(text).remedy, NoFix)


KNOWN = [
    "scale = getattr(x, 'scale', 1)\n    loss = model(x).mean() * scale",
    "model.load_state_dict(torch.load('net.pt'))\n    weight = torch.load('w.pt')\n    loss = (model(x) * weight).mean()",
    "model = torch.load('net.pt') if x is None else model\n    loss = model(x).mean()",
    "crits = [nn.MSELoss()]\n    loss = sum(crit(model(x), x) for crit in crits)",
    "loss = 0\n    for i, layer in enumerate(nn.ModuleList([model])):\n        loss = loss + layer(x).mean()",
    "loss, layers = 0, nn.ModuleList([model])\n    for i, (one, two) in enumerate(zip(layers, layers)):\n        loss = loss + two(one(x)).mean()",
    "import argparse\n    scale = argparse.ArgumentParser().parse_args().scale\n    loss = model(x).mean() * scale",
    "from collections import namedtuple\n    Out = namedtuple('Out', 'a')\n    loss = Out(model(x)).a.mean()",
    "import acme\n    env = acme.make('x')\n    loss = model(torch.as_tensor(env.reset())).mean()",
    "loss = model(x).mean()\n    (loss + 1).backward()\n    loss = model(x).mean()",
    "loss = F.mse_loss(model(x), x)",
    "loss = sum(each.mean() for each in [model(x)])",
    "losses = []\n    losses.append(model(x).mean())\n    loss = torch.stack(losses).sum()",
    "out = {'loss': model(x).mean()}\n    loss = out['loss']",
    "crit = nn.MSELoss()\n    loss = crit(model(x), x)",
    "from einops import rearrange\n    loss = rearrange(model(x), 'b c h w -> b (c h w)').mean()",
    "import kornia\n    loss = kornia.losses.ssim_loss(model(x), x, 5)",
    "from acme import ssim\n    loss = ssim(model(x), x).mean()",
    "import torchvision\n    loss = torchvision.models.resnet18().cuda()(model(x)).mean()",
    "import timm\n    loss = timm.create_model('vit').cuda()(model(x)).mean()",
    "loss = torch.utils.checkpoint.checkpoint(model, x).mean()",
    "loss = nn.Sequential(model, nn.ReLU())(x).mean()",
    "loss = 0\n    for layer in nn.ModuleList([model]):\n        loss = loss + layer(x).mean()",
    "loss = (lambda y: model(y).mean())(x)",
    "loss = model(x).view(2, -1).float().mean(dim=1).sum()",
    "scaler = torch.amp.GradScaler('cuda')\n    loss = scaler.scale(model(x).mean())",
]


@pytest.mark.parametrize("loss", KNOWN)
def test_what_is_in_the_repository_or_in_a_known_package_is_no_gap(loss: str) -> None:
    text = f"{HEAD}{NET}\n\ndef main():\n    torch.manual_seed(0)\n    model = Net().cuda()\n    x = torch.rand(2, 3, 8, 8).cuda()\n"
    text += f"    {loss}\n    loss.backward()\n\n\nmain()\n"
    finding = found(text.replace("MODE", "bilinear"))
    assert isinstance(finding.remedy, Fix), finding.message
    assert "would raise an error at F.interpolate" in found(text.replace("MODE", "bicubic")).message


@pytest.mark.parametrize(
    "start",
    [
        "mp.spawn(train, args=(Net(), 3), nprocs=2)",
        "mp.spawn(train, (Net(), 3), 2)",
        "mp.Process(target=train, args=(0, Net(), 3)).start()",
        "threading.Thread(target=train, args=(0, Net(), 3)).start()",
    ],
)
def test_a_model_that_is_passed_to_a_process(start: str) -> None:
    text = f"""{HEAD}import threading
import torch.multiprocessing as mp
{NET}

def train(rank, model: nn.Module, epochs):
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(model.to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = model(torch.rand(2, 3, 8, 8, device="cuda")).mean()
    loss.backward()
    optimizer.step()


if __name__ == "__main__":
    {start}
"""
    assert followed(text)


def test_data_that_is_not_followed_is_no_gap() -> None:
    text = f"""{HEAD}{NET}

def main(cfg, loaders):
    torch.manual_seed(0)
    model = Net().cuda()
    for index, batch in enumerate(loaders[cfg.name](cfg)):
        x = batch["x"].cuda()
        loss = model(x).mean()
        loss.backward()
        cfg.logger.log(loss.item())


main(*__import__("setup").parse())
"""
    assert isinstance(found(text.replace("MODE", "bilinear")).remedy, Fix)


def test_a_loss_from_nowhere_is_a_gap() -> None:
    text = f"{HEAD}{NET.replace('MODE', 'bilinear')}\n\ndef step(loss):\n    loss.backward()\n\n\n"
    text += "torch.manual_seed(0)\nmodel = Net().cuda()\nmodel(torch.rand(1, 3, 8, 8).cuda())\nstep(*queue)\n"
    finding = found(text)
    assert "what loss.backward() (train.py:22) goes back through is not known" in finding.message
    assert isinstance(finding.remedy, NoFix)


def test_strict_mode_is_not_written_over_a_gap_by_other_rules() -> None:
    make = "from other import wrap; self.model = wrap(model)"
    for switch, code in (
        ("torch.use_deterministic_algorithms(True, warn_only=True)", "TRL204"),
        ("torch.use_deterministic_algorithms(False)", "TRL204"),
        ("torch.use_deterministic_algorithms()", "TRL204"),
        ("torch.use_deterministic_algorithms(True)", "TRL205"),
    ):
        check = deterministic_algorithms.check if code == "TRL204" else cublas_workspace.check
        for made, kind in ((make, NoFix), ("self.model = model", Fix)):
            text = HEAD + f"{switch}\n" + NET.replace("MODE", "bilinear") + trainer(made) + MAIN
            (finding,) = check(contexts({"train.py": text})["train.py"])
            assert (finding.code, type(finding.remedy)) == (code, kind), (switch, made)
            assert kind is Fix or "self.model(x) (train.py:" in finding.remedy.reason  # type: ignore[union-attr]


def test_strict_mode_is_not_written_where_it_would_stop() -> None:
    for switch in ("torch.use_deterministic_algorithms(False)", "torch.use_deterministic_algorithms()"):
        text = HEAD + f"{switch}\n" + NET.replace("MODE", "bicubic") + trainer("self.model = model") + MAIN
        (finding,) = deterministic_algorithms.check(contexts({"train.py": text})["train.py"])
        assert isinstance(finding.remedy, NoFix)
        assert finding.remedy.reason.startswith(
            "deterministic algorithms would raise an error at F.interpolate (train.py:"
        )


def test_without_a_backward_pass_there_is_no_gap() -> None:
    text = (
        HEAD
        + NET.replace("MODE", "bilinear")
        + "\n\nfrom other import wrap\n\nwrap(Net()).cuda()(torch.rand(1, 3, 8, 8))\n"
    )
    context = contexts({"train.py": text})["train.py"]
    assert [gaps_to_loss(context.project, each) for each in all_programs(context.project)] == [()]


def test_an_object_of_many_classes_may_be_anything() -> None:
    numbers = range(40)
    nets = "".join(
        f"\n\nclass Net{number}(nn.Module):\n    def forward(self, x):\n        return x\n" for number in numbers
    )
    passed = "".join(f'    Trainer(Net{number}(), "cuda").fit(torch.rand(2))\n' for number in numbers)
    main = MAIN.replace("    torch.manual_seed(0)\n", f"    torch.manual_seed(0)\n{passed}")
    text = HEAD + NET.replace("MODE", "bilinear") + nets + trainer("self.model = model.to(device)") + main
    finding = found(text)
    assert isinstance(finding.remedy, NoFix)
    assert "is not known" in finding.message


TASKS = """

class Task:
    @classmethod
    def make(cls, options):
        return cls()

    def step(self, optimizer, loss):
        optimizer.backward(loss)


class Optimizer:
    def backward(self, loss):
        loss.backward()
"""
TASK = """

class Task{number}(BASE):
    @classmethod
    def make(cls, options):
        return cls()
"""
STEP = """
    def step(self, optimizer, loss):
        optimizer.backward(loss)
"""
TASK_MAIN = """

def make_task(name):
    return KINDS[name].make(name)


class Trainer:
    def __init__(self, task, net):
        self.task = task
        self.net = net

    def fit(self, x):
        self.task.step(Optimizer(), self.net(x).mean())


def main():
    torch.manual_seed(0)
    trainer = Trainer(make_task(input()), nn.Conv2d(3, 3, 3).cuda())
    trainer.fit(torch.rand(2, 3, 8, 8, device="cuda"))


if __name__ == "__main__":
    main()
"""


def _of_many_tasks(count: int, base: str = "Task") -> str:
    body = TASK if base == "Task" else TASK + STEP
    classes = "".join(body.format(number=number).replace("BASE", base) for number in range(count))
    kinds = ", ".join(f'"{number}": Task{number}' for number in range(count))
    return HEAD + TASKS + classes + f"\n\nKINDS = {{{kinds}}}\n" + TASK_MAIN


@pytest.mark.parametrize("count", [20, 80])
def test_an_object_of_many_classes_of_one_base_runs_the_methods_that_they_share(count: int) -> None:
    assert "nn.Conv2d" in found(_of_many_tasks(count)).message


@pytest.mark.parametrize(("count", "base"), [(80, "object"), (150, "Task")])
def test_an_object_of_more_classes_or_of_no_common_base_may_be_anything(count: int, base: str) -> None:
    context = contexts({"train.py": _of_many_tasks(count, base)})["train.py"]
    assert list(not_enabled.check(context)) == []
