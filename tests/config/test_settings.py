"""Settings files, selection of rules, and errors for invalid values."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchrepro_lint.checks.rule import Rule
from torchrepro_lint.config.roots import ConfigOptions, FallbackRoot, RootFinder
from torchrepro_lint.config.settings import (
    Selection,
    Settings,
    load_settings,
    matching_codes,
    parse_settings,
    selected_codes,
    settings_table,
)
from torchrepro_lint.config.target import target_of
from torchrepro_lint.source.errors import UsageError

RULES = tuple(
    Rule(code, name, "warning", default, lambda context: ())
    for code, name, default in (
        ("TRL101", "unseeded-torch", True),
        ("TRL301", "dataloader-worker-init", True),
        ("TRL302", "dataloader-generator", True),
        ("TRL306", "machine-dependent-workers", False),
    )
)


def codes(*layers: Selection) -> list[str]:
    return sorted(selected_codes(RULES, layers))


def test_without_settings_the_default_rules_run() -> None:
    assert codes() == ["TRL101", "TRL301", "TRL302"]


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (Selection(("ALL",)), ["TRL101", "TRL301", "TRL302", "TRL306"]),
        (Selection(("TRL3",)), ["TRL301", "TRL302", "TRL306"]),
        (Selection(("machine-dependent-workers",)), ["TRL306"]),
        (Selection(None, ("TRL306",)), ["TRL101", "TRL301", "TRL302", "TRL306"]),
        (Selection(None, (), ("TRL3",)), ["TRL101"]),
        (Selection(("TRL301",), (), ("TRL3",)), ["TRL301"]),
        (Selection(("TRL3",), (), ("TRL301",)), ["TRL302", "TRL306"]),
        (Selection(("TRL301",), (), ("dataloader-worker-init",)), []),
        (Selection(()), []),
    ],
)
def test_the_more_specific_selector_decides(layer: Selection, expected: list[str]) -> None:
    assert codes(layer) == expected


def test_a_later_layer_overrules_an_earlier_one() -> None:
    file = Selection(("TRL301",), (), ("TRL101",))
    assert codes(file, Selection(None, ("TRL101",))) == ["TRL101", "TRL301"]
    assert codes(file, Selection(None, (), ("TRL3",))) == []
    assert codes(file, Selection(("ALL",))) == ["TRL101", "TRL301", "TRL302", "TRL306"]


def test_an_unknown_rule_suggests_the_nearest() -> None:
    with pytest.raises(
        UsageError, match=r"unknown rule 'dataloader-generater' in ignore of x; did you mean 'dataloader-gen"
    ):
        codes(Selection(None, (), ("dataloader-generater",), "x"))


def test_matching_takes_codes_prefixes_and_names() -> None:
    assert matching_codes(RULES, ["TRL30", "unseeded-torch"]) == {rule.code for rule in RULES}


def test_every_key_is_read() -> None:
    data = {
        "select": ["TRL3"],
        "extend-select": ["TRL101"],
        "ignore": ["TRL302"],
        "fixable": ["ALL"],
        "unfixable": ["TRL401"],
        "per-file-ignores": {"tests/*": ["TRL1"]},
        "exclude": ["vendor"],
        "extend-exclude": ["gen"],
        "torch-version": "1.8.1",
        "device": "cuda",
        "seeders": {"acme.seed": ["torch", "numpy"]},
        "entry-points": ["scripts/*.py"],
        "source-roots": ["lib"],
        "min-severity": "warning",
        "fail-on": "error",
        "unsafe-fixes": True,
        "output-format": "json",
        "parser": "libcst",
    }
    assert parse_settings(data, "here") == Settings(
        selections=(Selection(("TRL3",), ("TRL101",), ("TRL302",), "here"),),
        unfixable=("TRL401",),
        per_file_ignores=(("tests/*", ("TRL1",)),),
        exclude=("vendor",),
        extend_exclude=("gen",),
        torch_version="1.8.1",
        device="cuda",
        seeders=(("acme.seed", ("torch", "numpy")),),
        entry_points=("scripts/*.py",),
        source_roots=("lib",),
        min_severity="warning",
        fail_on="error",
        unsafe_fixes=True,
        output_format="json",
        parser="libcst",
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"selct": []}, "here: t.selct: unknown key; did you mean 'select'?"),
        ({"per_file_ignores": {}}, "here: t.per_file_ignores: unknown key; did you mean 'per-file-ignores'?"),
        ({"zzz": 1}, "here: t.zzz: unknown key"),
        ({"select": "TRL3"}, "here: t.select: expected a list of strings"),
        ({"torch-version": 2.1}, 'here: t.torch-version: expected a string like "2.1" or "minimum"; found 2.1'),
        ({"device": "tpu"}, "here: t.device: expected one of auto, cuda, mps, cpu; found 'tpu'; did you mean 'cpu'?"),
        ({"parser": "cst"}, "here: t.parser: expected one of auto, libcst; found 'cst'; did you mean 'libcst'?"),
        ({"seeders": {"f": ["jax"]}}, "here: t.seeders: expected one of torch, numpy, python; found 'jax'"),
        ({"unsafe-fixes": "yes"}, "here: t.unsafe-fixes: expected true or false"),
        ({"exclude": ["a", "!"]}, "here: t.exclude: '!' is not a valid glob: nothing follows the exclamation mark"),
        ({"extend-exclude": ["[z-a]"]}, "here: t.extend-exclude: '[z-a]' is not a valid glob: the range z-a is empty"),
        ({"entry-points": ["[a"]}, "here: t.entry-points: '[a' is not a valid glob: a bracket is not closed"),
        (
            {"per-file-ignores": {"[z-a]": []}},
            "here: t.per-file-ignores: '[z-a]' is not a valid glob: the range z-a is empty",
        ),
        ({"per-file-ignores": ["x"]}, "here: t.per-file-ignores: expected a table of lists of strings"),
    ],
)
def test_a_mistake_names_file_and_key(data: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_settings(data, "here", "t.")
    assert str(error.value) == message


def test_files_are_read_by_their_kind(tmp_path: Path) -> None:
    shared, own = tmp_path / "pyproject.toml", tmp_path / "torchrepro-lint.toml"
    shared.write_text('[project]\nname = "x"\n', encoding="utf-8")
    own.write_text('device = "cpu"\n', encoding="utf-8")
    assert settings_table(shared) is None
    assert load_settings(shared).device == "auto"
    assert load_settings(own).device == "cpu"


@pytest.mark.parametrize("text", ["select = [\n", "a = 1\na = 2\n", "\xff"])
def test_bad_toml_is_one_line_that_names_the_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / "torchrepro-lint.toml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError) as error:
        load_settings(file)
    assert str(error.value).startswith(f"{file}: invalid TOML: ")
    assert "\n" not in str(error.value)


def test_tables_that_are_nested_too_deeply_are_a_usage_error(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text("[tool.torchrepro-lint]\nselect = " + "[" * 100_000 + "]" * 100_000 + "\n", encoding="utf-8")
    with pytest.raises(UsageError, match="nested too deeply"):
        settings_table(file)


def test_paths_that_have_only_a_disk_in_common_are_no_project(tmp_path: Path) -> None:
    disk = tmp_path.anchor
    root = RootFinder(ConfigOptions(), FallbackRoot(disk, disk)).of(str(tmp_path))
    assert (root.path, root.top) == (str(tmp_path), str(tmp_path))


def _packaged(tmp_path: Path, text: str) -> RootFinder:
    """A checkout in which a package has the requirements, and a file of it this text."""
    scripts = tmp_path / "repo" / "nets" / "scripts"
    scripts.mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    (tmp_path / "repo" / "nets" / "requirements.txt").write_text("torch==1.12.1\n", encoding="utf-8")
    for each in (scripts.parent, scripts):
        (each / "__init__.py").write_text("", encoding="utf-8")
    (scripts / "train.py").write_text(text, encoding="utf-8")
    return RootFinder(ConfigOptions(), FallbackRoot(str(tmp_path), str(tmp_path)))


@pytest.mark.parametrize("text", ["from nets.lib import misc\n", "import os\nimport nets\n"])
def test_a_package_that_imports_itself_is_no_root(tmp_path: Path, text: str) -> None:
    root = _packaged(tmp_path, text).of(str(tmp_path / "repo" / "nets" / "scripts"))
    assert (root.path, root.decided_by) == (str(tmp_path / "repo"), "nets/requirements.txt")
    assert (root.marked, root.top) == (True, root.path)
    assert target_of(root).version == "1.12"


@pytest.mark.parametrize(
    "text", ["from networks import misc\n", "from .lib import misc\n", "# from nets import misc\n"]
)
def test_a_package_that_does_not_import_itself_is_a_root(tmp_path: Path, text: str) -> None:
    root = _packaged(tmp_path, text).of(str(tmp_path / "repo" / "nets" / "scripts"))
    assert (root.path, root.decided_by) == (str(tmp_path / "repo" / "nets"), "requirements.txt")


def test_a_checkout_that_is_a_package_is_a_root(tmp_path: Path) -> None:
    repo = tmp_path / "nets"
    (repo / ".git").mkdir(parents=True)
    (repo / "requirements.txt").write_text("torch\n", encoding="utf-8")
    for name, text in (("__init__.py", ""), ("train.py", "import nets\n")):
        (repo / name).write_text(text, encoding="utf-8")
    root = RootFinder(ConfigOptions(), FallbackRoot(str(tmp_path), str(tmp_path))).of(str(repo))
    assert (root.path, root.decided_by) == (str(repo), "requirements.txt")
