"""Import resolution, whichever module of an import cycle is asked first."""

from __future__ import annotations

import itertools

import pytest

from one_file import project_of
from torchrepro_lint.resolve.imports import ImportResolver
from torchrepro_lint.resolve.search_path import ModuleTree
from torchrepro_lint.syntax.parse import parse_module


def modules(files: dict[str, str]) -> ImportResolver:
    facts = {path: parse_module(text) for path, text in files.items()}
    return ImportResolver(facts, ModuleTree(facts, (".",)))


def test_a_name_is_followed_across_re_exports() -> None:
    linked = modules({"p/__init__.py": "from .a import f as g\n", "p/a.py": "def f(): ...\n"})
    assert linked.resolve("main.py", "p.g") == ("p/a.py:f",)
    assert linked.resolve("main.py", "torch.nn") == ("torch.nn",)


CIRCLE = {
    f"{own}.py": f"try:\n    from {other} import f\nexcept ImportError:\n    def f(): ...\n"
    for own, other in (("a", "b"), ("b", "c"), ("c", "a"))
} | {"stars.py": "from a import *\nfrom more import *\n", "more.py": "from stars import *\nfrom b import f\n"}


@pytest.mark.parametrize("order", list(itertools.permutations(("a.f", "b.f", "c.f", "stars.f", "more.f"))))
def test_modules_that_import_each_other(order: tuple[str, ...]) -> None:
    linked = modules(CIRCLE)
    for name in order:
        assert linked.resolve("main.py", name) == ("a.py:f", "b.py:f", "c.py:f"), name


def test_a_name_that_only_leads_back_to_itself_is_nothing() -> None:
    assert modules({"a.py": "from b import x\n", "b.py": "from a import x\n"}).resolve("main.py", "a.x") == ()


def test_a_star_import_takes_what_a_module_has_and_that_of_another_library_stands_for_its_names() -> None:
    linked = modules(
        {
            "p/__init__.py": "from .made import *\nfrom .a import *\nfrom torch.nn import *\n",
            "p/a.py": "def f(): ...\n",
        }
    )
    assert linked.resolve("main.py", "p.f") == ("p/a.py:f", "torch.nn.f")


def test_a_module_that_is_not_there_is_not_looked_for_in_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    # Compiled or generated, it is no attribute of its package; looking there asks all star imports, whose modules are missing.
    asked: list[str] = []
    attribute = ImportResolver.attribute
    monkeypatch.setattr(ImportResolver, "attribute", lambda *args: [asked.append(args[2]), attribute(*args)][1])
    stars = "".join(f"from .m{number} import *\n" for number in range(40))
    assert modules({"p/__init__.py": stars}).resolve("main.py", "p.f") == ()
    assert set(asked) == {"f"}


def test_of_many_star_imports_those_are_asked_that_may_have_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"p/__init__.py": "".join(f"from .m{number} import *\n" for number in range(20)) + "from .gone import *\n"}
    for number in range(20):
        files |= {
            f"p/m{number}/__init__.py": "from .impl import *\n",
            f"p/m{number}/impl.py": f"def f{number}(): ...\ndef both(): ...\n"
            if number < 2
            else f"def f{number}(): ...\n",
        }
    files["p/m3/impl.py"] += "from torch.nn import *\n"  # may have any name
    files["p/m4/impl.py"] += "from p import *\n"
    files["p/m5/deep.py"] = "x = 1\n"
    files["p/m6/impl.py"] += "def _own(): ...\n"
    words = [*(f"f{number}" for number in range(20)), "both", "deep", "impl", "Linear", "_own", "m7"]

    def found() -> dict[str, tuple[str, ...]]:
        linked = modules(files)
        return {word: linked.resolve("main.py", f"p.{word}") for word in words}

    asked: list[tuple[str, str]] = []
    attribute = ImportResolver.attribute
    monkeypatch.setattr(ImportResolver, "attribute", lambda *args: [asked.append(args[1:]), attribute(*args)][1])
    few = found()
    in_impl = [path for path, word in asked if word == "f9" and path.endswith("impl.py")]
    assert len(in_impl) < 5, in_impl
    monkeypatch.setattr("torchrepro_lint.resolve.imports._MANY_STARS", 1000)
    assert few == found()
    assert few["both"] == ("p/m0/impl.py:both", "p/m1/impl.py:both", "torch.nn.both")
    assert few["deep"] == ("p/m5/deep.py:", "torch.nn.deep")
    assert few["f9"] == ("p/m9/impl.py:f9", "torch.nn.f9")
    assert few["_own"] == ()


def test_a_package_takes_names_from_a_module_beside_that_it_names_as_python_2_did() -> None:
    linked = modules(
        {
            "nets/__init__.py": "from resnet import *\nfrom losses import *\n",
            "nets/resnet.py": "def resnet(): ...\ndef net(): ...\nif __name__ == '__main__':\n    net()\n",
            "nets/losses.py": "def focal(): ...\n",
        }
    )
    assert linked.resolve("main.py", "nets.net") == ("nets/resnet.py:net",)
    assert linked.resolve("main.py", "nets.focal") == ("nets/losses.py:focal",)
    assert linked.resolve("main.py", "nets.resnet") == ("nets/resnet.py:resnet",)
    assert linked.loaded("nets/__init__.py", "resnet") == "nets/resnet.py"
    assert linked.loaded("nets/__init__.py", "gone") is None


SCRIPT = "if __name__ == '__main__':\n    main()\n"


def test_a_script_in_a_package_finds_the_module_of_the_package_s_name_beside_it() -> None:
    files = {
        "agent/__init__.py": "",
        "agent/agent.py": "class Agent: ...\n",
        "agent/trainer.py": "class Trainer: ...\n",
        "agent/train.py": f"from agent import Agent\nfrom trainer import Trainer\n{SCRIPT}",
    }
    assert modules(files).resolve("agent/train.py", "agent.Agent") == ("agent/agent.py:Agent",)
    # From the root, ``python -m agent.train`` and with the package on the path, it is the package.
    files["agent/train.py"] = f"from agent import Agent\nimport torch\n{SCRIPT}"
    files["agent/__init__.py"] = "from .other import Agent\n"
    files["agent/other.py"] = "class Agent: ...\n"
    assert modules(files).resolve("agent/train.py", "agent.Agent") == ("agent/other.py:Agent",)


def test_a_package_named_torch_in_a_folder_is_not_torch() -> None:
    files = {
        "layers/torch/__init__.py": "from .act import Act\n",
        "layers/torch/act.py": "import torch\nclass Act(torch.nn.Module): ...\n",
        "layers/cuda/act.py": "import torch\nfrom ..torch.act import Act\n",
        "train.py": f"import torch\nfrom layers.torch import Act\n{SCRIPT}",
    }
    linked = modules(files)
    for path in ("layers/torch/act.py", "layers/cuda/act.py", "train.py"):
        assert linked.resolve(path, "torch.nn.Module") == ("torch.nn.Module",), path
    assert linked.resolve("train.py", "layers.torch.Act") == ("layers/torch/act.py:Act",)
    # A script's own folder is searched first, and the project may be torch itself.
    assert modules(files | {"layers/run.py": SCRIPT}).resolve("layers/run.py", "torch.Act") == (
        "layers/torch/act.py:Act",
    )
    assert modules({"torch/__init__.py": "def f(): ...\n"}).resolve("torch/a.py", "torch.f") == ("torch/__init__.py:f",)


def test_a_folder_of_scripts_of_a_library_s_name_hides_nothing_of_the_library() -> None:
    files = {
        "src/app/model.py": "from transformers.utils import copy_func\n",
        "scripts/transformers/utils.py": "def get_label(): ...\n",
        "scripts/transformers/train.py": f"from utils import get_label\n{SCRIPT}",
        "scripts/run.py": f"from transformers.utils import get_label, copy_func\nimport grids.common\n{SCRIPT}",
        "scripts/grids/common.py": "",
    }
    facts = {path: parse_module(text) for path, text in files.items()}
    linked = ImportResolver(facts, ModuleTree(facts, (".", "scripts")))
    for path in ("src/app/model.py", "scripts/run.py"):
        assert linked.resolve(path, "transformers.utils.copy_func") == ("transformers.utils.copy_func",), path
    assert linked.resolve("scripts/run.py", "transformers.utils.get_label") == (
        "scripts/transformers/utils.py:get_label",
    )
    # No library is known by this name.
    assert linked.resolve("scripts/run.py", "grids.common.copy_func") == ()


def test_what_a_file_puts_on_the_search_path_comes_before_what_others_put_there() -> None:
    added = "import sys\nsys.path.append('{0}')\nfrom data import load\nfrom common import shared\n"
    files = {f"{each}.py": added.format(each) for each in ("pendulum", "spring", "two_body")}
    files |= {f"{each}/data.py": "def load(): ...\n" for each in ("pendulum", "spring", "two_body")}
    files |= {"pendulum/common.py": "def shared(): ...\n", "plain.py": "from data import load\n"}
    linked = modules(files)
    for each in ("pendulum", "spring", "two_body"):
        assert linked.resolve(f"{each}.py", "data.load") == (f"{each}/data.py:load",)
        assert linked.resolve(f"{each}.py", "common.shared") == ("pendulum/common.py:shared",)
    assert linked.resolve("plain.py", "data.load") == ("pendulum/data.py:load",)
    # The folder of the file, and the root, come before all of them.
    beside = modules(files | {"data.py": "def load(): ...\n"})
    assert beside.resolve("spring.py", "data.load") == ("data.py:load",)


@pytest.mark.parametrize("package", [{}, {"nets/__init__.py": "", "nets/deep/__init__.py": ""}])
def test_a_module_in_a_folder_with_or_without_init(package: dict[str, str]) -> None:
    main = "import nets.small\nimport nets.deep.large\nimport nets.gone\n"
    used = "nets.small.Net(3)\ngetattr(nets.small, 'Net')(3)\nnets.deep.large.Net(3)\nnets.small.RATE.real(3)\n"
    net = "class Net:\n    def __init__(self, size): ...\nRATE = 0.1\n"
    project = project_of({"main.py": main + used, "nets/small.py": net, "nets/deep/large.py": net, **package})
    assert [site.names for site in project.calls("main.py")] == [
        ("nets/small.py:Net",),
        ("nets/small.py:Net",),
        ("builtins.getattr",),
        ("nets/deep/large.py:Net",),
        (),
    ]
    receivers = project.resolver.receiver
    func = next(site.call.func for site in project.calls("main.py") if "large" in getattr(site.call.func, "path", ()))
    assert [*receivers("main.py", func)] == ["nets/deep/large.py:"]


def test_modules_of_a_package_find_what_its_script_finds_beside_itself() -> None:
    files = {
        "src/__init__.py": "",
        "src/rows/__init__.py": "",
        "src/rows/plain.py": "from rows import common\nimport losses, json\n",
        "src/rows/common.py": "def crop(): ...\n",
        "src/losses/__init__.py": "def focal(): ...\n",
        "src/json.py": "def load(): ...\n",
        "src/train.py": f"import rows\n{SCRIPT}",
    }
    linked = modules(files)
    assert linked.resolve("src/rows/plain.py", "rows.common.crop") == ("src/rows/common.py:crop",)
    # No script imports it so, and Python's own modules stay what they are.
    assert linked.resolve("src/rows/plain.py", "losses.focal") == ("losses.focal",)
    assert linked.resolve("src/rows/plain.py", "json.load") == ("json.load",)
    # A module of the root comes first, and without a script in the folder nothing is found.
    assert modules(files | {"rows.py": "def crop(): ...\n"}).resolve("src/losses/__init__.py", "rows.crop") == (
        "rows.py:crop",
    )
    del files["src/train.py"]
    assert modules(files).resolve("src/rows/plain.py", "rows.common.crop") == ("rows.common.crop",)


@pytest.mark.parametrize(
    ("script", "put"),
    [
        ("train/main.py", "os.path.join(sys.path[0], '../common')"),
        ("main.py", "os.path.join(os.getcwd(), 'common')"),
        ("main.py", "Path.cwd() / 'common'"),
        ("main.py", "os.getcwd() + '/common'"),
        ("main.py", "f'{sys.path[0]}/common'"),
        ("train/main.ipynb", "os.path.join(os.getcwd(), '..', 'common')"),
    ],
)
def test_the_search_path_begins_at_the_script_and_in_the_working_directory(script: str, put: str) -> None:
    added = f"import os, sys\nfrom pathlib import Path\nsys.path.insert(1, str({put}))\nfrom rows import Rows\n"
    linked = modules({script: added + SCRIPT, "common/rows.py": "class Rows: ...\n"})
    assert linked.resolve(script, "rows.Rows") == ("common/rows.py:Rows",)
    # Another entry is no folder of the project's.
    linked = modules({script: added.replace(put, "sys.path[1]") + SCRIPT, "common/rows.py": "class Rows: ...\n"})
    assert linked.resolve(script, "rows.Rows") == ("rows.Rows",)


def test_a_script_finds_what_is_below_its_own_folder_first() -> None:
    added = f"import os, sys\nsys.path.append(os.path.join(os.getcwd(), 'lib'))\nfrom rows import Rows\n{SCRIPT}"
    files = {"a/main.py": added, "a/lib/rows.py": "class Rows: ...\n", "lib/rows.py": "class Rows: ...\n"}
    assert modules(files).resolve("a/main.py", "rows.Rows") == ("a/lib/rows.py:Rows",)
    del files["a/lib/rows.py"]
    assert modules(files).resolve("a/main.py", "rows.Rows") == ("lib/rows.py:Rows",)
