"""The catalogue's rows for a torch release, and the integrity of its tables."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tools.catalogue.render import compile_tables
from torchrepro_lint.catalogue.catalogue import canonical, error_names, load, signatures
from torchrepro_lint.catalogue.rows import OperationRow, Seeder
from torchrepro_lint.source import files
from torchrepro_lint.source.files import documented_versions, read_table, release

TOP = Path(__file__).parents[2]
VERSIONS = documented_versions()

# The flags that third-party calls set, besides environment variables.
FLAGS = (
    *("deterministic-algorithms", "cudnn-deterministic", "cudnn-benchmark", "cudnn-enabled", "allow-tf32"),
    *("fill-uninitialized-memory", "worker-seeds"),
)
# The generators: torch's, that of its devices alone, NumPy's, Python's; an RL environment's and an object's own.
GENERATORS = ("torch", "torch-cuda", "numpy", "python", "environment", "own")

# The behaviour of an operation with the flag on.
BEHAVIOURS = ("raises", "deterministic", "silent", "warns", "ties", "fills", "none")


def behaviours(version: str, name: str) -> set[str]:
    return {row.behaviour for row in load(version).operation(name) if set(row.devices) & {"cuda", "any"}}


def row(version: str, name: str, behaviour: str) -> OperationRow:
    return next(row for row in load(version).operation(name) if row.behaviour == behaviour)


def test_every_release_has_its_file() -> None:
    assert tuple([f"1.{minor}" for minor in range(7, 14)] + [f"2.{minor}" for minor in range(16)]) == VERSIONS
    for version in VERSIONS:
        assert read_table(f"torch-{version}.toml")["torch"].startswith(f"{version}.")


@pytest.mark.parametrize(
    ("asked", "used", "exact"),
    [
        ("2.13", "2.13", True),
        ("2.13.0+cpu", "2.13", True),
        ("1.3.1", "1.7", False),
        ("2.99", "2.15", False),
        ("3.0", "2.15", False),
        ("1.14", "1.13", False),
        ("2.16.0a0", "2.15", False),
    ],
)
def test_the_nearest_release_stands_in(asked: str, used: str, exact: bool) -> None:
    catalogue = load(asked)
    assert (catalogue.version, catalogue.exact) == (used, exact)


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("torch.cumsum", "1.12", {"silent"}),
        ("torch.cumsum", "1.13", {"raises"}),
        ("torch.cumsum", "2.5", {"raises"}),
        ("torch.cumsum", "2.6", {"deterministic"}),
        ("torch.Tensor.cumsum_", "2.13", {"deterministic"}),
        ("torch.index_select", "1.8", {"raises"}),
        ("torch.Tensor.index_select", "1.9", {"deterministic"}),
        ("torch.kthvalue", "2.9", {"raises"}),
        ("torch.kthvalue", "2.10", set()),
        ("torch.nn.ReflectionPad2d", "2.6", {"raises"}),
        ("torch.nn.ReflectionPad2d", "2.7", {"deterministic"}),
        ("torch.nn.ReflectionPad1d", "2.15", {"raises"}),
        ("torch.Tensor.index_add_", "1.8", {"raises"}),
        ("torch.Tensor.index_add_", "1.9", {"deterministic"}),
        ("torch.nn.AdaptiveAvgPool1d", "2.13", {"raises"}),
        ("torch.take", "1.8", set()),
        ("torch.take", "1.9", {"raises"}),
        ("torch.relu", "2.13", set()),
    ],
)
def test_what_holds_in_a_version(name: str, version: str, expected: set[str]) -> None:
    assert behaviours(version, name) == expected


def test_whether_the_documentation_tells() -> None:
    assert row("2.13", "torch.nn.AdaptiveMaxPool2d", "raises").listed
    assert not row("2.13", "torch.nn.AdaptiveMaxPool1d", "raises").listed
    assert not row("2.13", "torch.nn.CrossEntropyLoss", "raises").listed
    assert row("2.13", "torch.nn.NLLLoss", "raises").listed
    assert not row("1.12", "torch.cumsum", "silent").listed
    assert row("1.13", "torch.cumsum", "raises").listed
    modes = {row.when[0].values: row.listed for row in load("2.13").operation("torch.nn.functional.interpolate")}
    assert modes[("linear",)]
    assert not modes[("area",)]


def test_mps_rows_leave_the_others_alone() -> None:
    devices = {row.devices: row.behaviour for row in load("2.15").operation("torch.Tensor.index_put")}
    assert devices == {("mps",): "raises", ("any",): "deterministic", ("cpu",): "deterministic"}


def test_a_class_is_found_through_its_module() -> None:
    assert canonical("torch.nn.modules.conv.Conv2d") == "torch.nn.Conv2d"
    assert canonical("torch.nn.modules.sparse.EmbeddingBag.from_pretrained") == "torch.nn.EmbeddingBag.from_pretrained"
    assert canonical("torch.nn.functional.pad") == "torch.nn.functional.pad"
    assert load("2.13").operation("torch.nn.modules.pooling.AvgPool3d")


def test_a_documented_operation_has_spellings() -> None:
    known = {spelling.name for ones in signatures().values() for spelling in ones}
    for version in VERSIONS:
        named = {table["name"] for table in read_table(f"torch-{version}.toml")["operation"]}
        assert named <= known, version


def test_the_spellings_of_a_name_are_bound_alike() -> None:
    bound: dict[str, set[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
    for ones in signatures().values():
        for spelling in ones:
            bound.setdefault(spelling.name, set()).add((spelling.parameters, spelling.keywords))
    assert {name for name, ways in bound.items() if len(ways) > 1} == set()


def test_effective_rows_are_whole() -> None:
    for table in read_table("effective.toml")["row"]:
        assert set(table["operations"]) <= set(signatures()), table
        assert table["evidence"], table
        previous = (0, 0)
        for span in table["versions"]:
            assert previous < release(span["since"]) <= release(span.get("until", "9.9")), table
            assert span["behaviour"] in BEHAVIOURS, table
            previous = release(span.get("until", "9.9"))


def test_conditions_speak_of_parameters() -> None:
    for version in VERSIONS:
        for name in load(version).operations:
            for row in load(version).operation(name):
                spelling = row.signature
                settled = {*spelling.parameters, *spelling.keywords, *dict(spelling.defaults)}
                subjects = {condition.of for condition in row.when if "." not in condition.of}
                # A spelling may lack a parameter: what it leaves open then fails or stays unknown.
                if "torchvision" not in name:
                    assert subjects <= settled | {"size", "output_size", "spatial"}, (name, row)


@pytest.mark.parametrize("version", ["1.7", "1.12", "2.0", "2.13", "2.15"])
def test_what_raises_has_an_error_name(version: str) -> None:
    catalogue = load(version)
    nameless = {
        (row.operation, row.devices)
        for name in catalogue.operations
        for row in catalogue.operation(name)
        if row.behaviour == "raises" and not row.operation.startswith("torchvision") and not catalogue.errors(row)
    }
    # cuBLAS has a message of its own; the operators of MPS were documented before a name was found in a binary.
    assert {name for name, _ in nameless} <= {"torch.mm", "torch.mv", "torch.bmm"}


def test_error_names_belong_to_operations() -> None:
    for error in error_names():
        assert set(error.operations) <= set(signatures()), error
        assert error.calls, error
        assert error.until is None or release(error.since) <= release(error.until), error


def test_seeders() -> None:
    seeder = {name: only(name) for name in ("torch.cuda.manual_seed", "random.seed", "monai.utils.set_determinism")}
    assert seeder["torch.cuda.manual_seed"].families == ("torch-cuda",)
    assert seeder["random.seed"].default == "entropy"
    assert seeder["monai.utils.set_determinism"].none == "entropy"
    assert only("transformers.set_seed").settings[0].when
    assert only("diffusers.utils.torch_utils.enable_full_determinism").families == ()
    assert load("2.13").seeder("torch.random.fork_rng") is None


def only(name: str) -> Seeder:
    found = load("2.13").seeder(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "package", ["lightning", "lightning.pytorch", "pytorch_lightning", "lightning.fabric.utilities.seed"]
)
def test_packages_offer_a_name_in_any_module(package: str) -> None:
    assert only(f"{package}.seed_everything").default == "constant"
    assert load("2.13").seeder(f"my{package}.seed_everything") is None
    assert load("2.13").seeder(f"{package}.seed_everything.more") is None


def test_a_framework_seeds_and_draws_like_what_is_in_the_other_tables() -> None:
    catalogue = load("2.13")
    assert only("stable_baselines3.ppo.PPO").default == "nothing"
    assert [row.family for row in catalogue.consumer("stable_baselines3.PPO")] == ["torch"]
    assert {setting.flag for _, setting in catalogue.settings("pytorch_lightning.Trainer")} == {
        "CUBLAS_WORKSPACE_CONFIG",
        "cudnn-benchmark",
        "deterministic-algorithms",
    }
    assert catalogue.framework("lightning.Trainer.fit")[0].matters


@pytest.mark.parametrize("table", ["seeders", "consumers", "frameworks", "third_party"])
def test_each_row_says_what_it_was_read_from(table: str) -> None:
    (rows,) = read_table(f"{table}.toml").values()
    for row in rows:
        assert row["evidence"], row["names"]
        assert re.fullmatch(r"[\w-]+ \w+(\.\w+)*", row["source"]), row["names"]


def test_what_is_set_and_seeded_has_a_known_name() -> None:
    for table, key in (("seeders", "seeder"), ("frameworks", "framework")):
        for row in read_table(f"{table}.toml")[key]:
            assert {*row.get("families", ()), *row.get("seeds", {}).get("families", ())} <= set(GENERATORS), row[
                "names"
            ]
            flags = {flag for each in row.get("sets", ()) for flag in each["to"]}
            assert {flag for flag in flags if not flag.isupper()} <= set(FLAGS), row["names"]
            assert row.get("default", "required") in ("entropy", "constant", "nothing", "required")


def test_a_wheel_brings_its_own_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "_rules" / "catalogue").mkdir(parents=True)
    (tmp_path / "_rules" / "catalogue" / "x.toml").write_text("shipped = true")
    monkeypatch.setattr(files, "_PACKAGE", tmp_path)
    assert read_table("x.toml") == {"shipped": True}


def test_the_compiled_tables_are_what_the_tables_say() -> None:
    """``python -m tools.catalogue --compile`` writes them; the types of numbers count, too."""
    folder = TOP / "rules" / "catalogue"
    tables = {path.name: path.read_bytes() for path in folder.glob("*.toml")}
    compiled = (folder / files.COMPILED).read_bytes()
    assert compiled == compile_tables(tables)
    entries = json.loads(compiled)
    assert {name: repr(entries[name][1]) for name in tables} == {
        name: repr(files.load_toml(data)) for name, data in tables.items()
    }


def test_an_edited_table_counts_before_it_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "rules" / "catalogue"
    folder.mkdir(parents=True)
    (folder / "x.toml").write_text("row = 1")
    (folder / files.COMPILED).write_bytes(compile_tables({"x.toml": b"row = 1"}))
    monkeypatch.setattr(files, "_PACKAGE", tmp_path / "torchrepro_lint")
    monkeypatch.setattr(files, "load_toml", lambda data: {"parsed": data})
    assert read_table("x.toml") == {"row": 1}
    (folder / "x.toml").write_text("row = 2")
    assert read_table("x.toml") == {"parsed": b"row = 2"}


def test_a_table_that_was_read_does_not_change_the_next_reading() -> None:
    read_table("seeders.toml")["seeder"].clear()
    assert read_table("seeders.toml")["seeder"]
