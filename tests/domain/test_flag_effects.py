"""Effects of a run on flags, environment variables and devices, and their order."""

from __future__ import annotations

import pytest

from one_file import NAME, project_of
from torchrepro_lint.catalogue.conditions import UNKNOWN_VALUE
from torchrepro_lint.domain.flag_effects import StateEffect
from torchrepro_lint.domain.programs import all_programs, state_effects


def touched(source: str) -> list[StateEffect]:
    """What the only program of a file touches."""
    project = project_of({NAME: f"{source}\nprint()\n"})
    (program,) = all_programs(project)
    return list(state_effects(project, program))


FLAGS = [
    ("import torch\ntorch.backends.cudnn.benchmark = True", "cudnn-benchmark", True),
    ("from torch.backends import cudnn as c\nc.benchmark = 0", "cudnn-benchmark", 0),
    ("import torch\nb = torch.backends\nb.cudnn.deterministic = True", "cudnn-deterministic", True),
    ("import torch\nfast = False\ntorch.backends.cudnn.benchmark = fast", "cudnn-benchmark", False),
    ("import torch\ntorch.backends.cudnn.benchmark = input() == 'y'", "cudnn-benchmark", UNKNOWN_VALUE),
    ("import torch\ntorch.backends.cudnn.benchmark |= True", "cudnn-benchmark", UNKNOWN_VALUE),
    ("import torch\nsetattr(torch.backends.cudnn, 'benchmark', True)", "cudnn-benchmark", True),
    ("import torch\ntorch.use_deterministic_algorithms(True)", "deterministic-algorithms", True),
    ("import torch\ntorch.use_deterministic_algorithms(mode=False)", "deterministic-algorithms", False),
    ("import torch\ntorch.use_deterministic_algorithms(True, warn_only=True)", "deterministic-algorithms", "warn"),
    ("import torch\ntorch.use_deterministic_algorithms(False, warn_only=True)", "deterministic-algorithms", False),
    ("import torch\ntorch.set_deterministic(d=True)", "deterministic-algorithms", True),
    ("import torch\ntorch.set_deterministic_debug_mode('warn')", "deterministic-algorithms", "warn"),
    ("import torch\ntorch.set_deterministic_debug_mode(2)", "deterministic-algorithms", True),
    ("import torch\ntorch.set_deterministic_debug_mode(0)", "deterministic-algorithms", False),
    ("import torch\ntorch.utils.deterministic.fill_uninitialized_memory = False", "fill-uninitialized-memory", False),
    ("import torch\ntorch.compile(print, mode='max-autotune')", "max-autotune", True),
    ("import torch\ntorch.compile(print, options={'max_autotune': True})", "max-autotune", True),
    ("import torch\ntorch.compile(print, options=dict(max_autotune_gemm=True))", "max-autotune", True),
    ("import torch._inductor.config as c\nc.max_autotune = True", "max-autotune", True),
    ("import torch\ntorch._inductor.config.patch(max_autotune=True)", "max-autotune", True),
    ("import torch\ntorch._inductor.config.patch({'max_autotune_pointwise': True})", "max-autotune", True),
    ("import torch\ntorch._inductor.config.patch('max_autotune', True)", "max-autotune", True),
    ("import lightning as L\nL.Trainer(deterministic='warn')", "deterministic-algorithms", "warn"),
    ("import lightning as L\non = True\nL.Trainer(deterministic=on)", "deterministic-algorithms", True),
    ("from transformers import enable_full_determinism as e\ne(0)", "deterministic-algorithms", True),
]


@pytest.mark.parametrize(("source", "what", "value"), FLAGS)
def test_a_flag_is_set(source: str, what: str, value: object) -> None:
    found = [touch.value for touch in touched(source) if touch.what == what]
    assert found == [value]
    assert type(found[0]) is type(value)


SILENT = [
    "import torch\ntorch.compile(print, mode='reduce-overhead')",
    "import torch\ntorch.compile(print)",
    "import torch\nprint(torch.backends.cudnn.benchmark)",
    "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True",
    "import lightning as L\nL.Trainer(max_epochs=3)",
    "class cudnn: pass\ncudnn.benchmark = True",
    "import os\nprint(os.environ['A'], os.environ.get('B'), os.getenv('C', '1'))",
    "import os\nenv = dict(os.environ, A='1')\nprint(env)",
]


@pytest.mark.parametrize("source", SILENT)
def test_nothing_is_set(source: str) -> None:
    assert [touch for touch in touched(source) if touch.kind in ("flag", "variable")] == []


def test_what_a_block_of_cudnn_flags_leaves_out_is_off() -> None:
    source = "import torch\nwith torch.backends.cudnn.flags(benchmark=True):\n    print()"
    found = {touch.what: touch.value for touch in touched(source)}
    assert found == {"cudnn-enabled": False, "cudnn-benchmark": True, "cudnn-deterministic": False}


VARIABLES = [
    ("import os\nos.environ['A'] = '1'", "1"),
    ("from os import environ\nenviron['A'] = '1'", "1"),
    ("import os\nos.environ['A'] = str(1)", 1),
    ("import os\nos.environ.setdefault('A', '1')", "1"),
    ("import os\nos.putenv('A', '1')", "1"),
    ("import os\nos.environ.update(A='1')", "1"),
    ("import os\nos.environ.update({'A': '1'})", "1"),
    ("import os\nos.environ |= {'A': '1'}", "1"),
    ("import os\nos.environ['A'] = os.environ.get('A', '1')", "1"),
    ("import os\nk = 'A'\nos.environ[k] = input()", UNKNOWN_VALUE),
    ("import os\nos.environ.pop('A', None)", None),
    ("import os\nos.unsetenv('A')", None),
    ("import os\ndel os.environ['A']", None),
]


@pytest.mark.parametrize(("source", "value"), VARIABLES)
def test_a_variable_is_set_or_removed(source: str, value: object) -> None:
    (touch,) = touched(source)
    assert (touch.kind, touch.what, touch.value) == ("variable", "A", value)


def test_touches_come_in_the_order_of_the_run() -> None:
    source = (
        "import os, torch\n"
        "def prepare():\n    os.environ['CUBLAS_WORKSPACE_CONFIG'] = ':4096:8'\n    torch.backends.cudnn.benchmark = False\n"
        "model = torch.nn.Linear(1, 1).cuda()\nprepare()\nmodel(1).backward()\n"
    )
    found = [(touch.kind, touch.what) for touch in touched(source)]
    assert found == [
        ("accelerator", ""),
        ("variable", "CUBLAS_WORKSPACE_CONFIG"),
        ("flag", "cudnn-benchmark"),
        ("backward", ""),
    ]


DEVICES = [
    ("x.cuda()", True),
    ("x.to('cuda:0')", True),
    ("x.to(torch.device('cuda' if torch.cuda.is_available() else 'cpu'))", True),
    ("x.to(device)", True),
    ("torch.zeros(3, device=device)", True),
    ("torch.cuda.set_device(0)", True),
    ("x.to('cpu')", False),
    ("x.to(torch.float16)", False),
    ("torch.cuda.is_available()", False),
    ("torch.cuda.manual_seed_all(0)", False),
    ("torch.device('cuda')", False),
]


@pytest.mark.parametrize(("call", "starts"), DEVICES)
def test_an_accelerator_is_put_to_work(call: str, starts: bool) -> None:
    source = f"import torch\ndevice = torch.device('cuda')\nx = torch.zeros(3)\n{call}\n"
    assert ("accelerator" in {touch.kind for touch in touched(source)}) is starts
