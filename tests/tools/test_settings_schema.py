"""The JSON Schemas of the settings: they are of the code, and say of settings what the tool itself says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conftest import Ran
from tools.settings_schema import schemas
from torchrepro_lint.checks import RULES
from torchrepro_lint.config.settings import DEVICES, FORMATS, PARSERS, READERS, SEVERITIES, Settings, require_glob
from torchrepro_lint.source.files import parse_toml

jsonschema = pytest.importorskip("jsonschema")
TOP = Path(__file__).parents[2]
CONFIG = TOP / "torchrepro_lint" / "config"
SCHEMAS = {name: json.loads((CONFIG / name).read_text(encoding="utf-8")) for name in schemas()}
OWN, SHARED = (
    jsonschema.Draft7Validator(SCHEMAS[name]) for name in ("torchrepro-lint.schema.json", "pyproject.schema.json")
)
GLOB = jsonschema.Draft7Validator(SCHEMAS["torchrepro-lint.schema.json"]["definitions"]["glob"])


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_files_are_of_the_code(name: str) -> None:
    text = f"{json.dumps(schemas()[name], indent=2)}\n"
    assert (CONFIG / name).read_text(encoding="utf-8") == text, "run python -m tools.settings_schema"


@pytest.mark.parametrize("name", SCHEMAS)
def test_they_are_schemas(name: str) -> None:
    assert SCHEMAS[name]["$schema"] == jsonschema.Draft7Validator.META_SCHEMA["$schema"]
    jsonschema.Draft7Validator.check_schema(SCHEMAS[name])


def test_every_key_has_a_description_and_every_default_is_the_tools() -> None:
    keys = SCHEMAS["torchrepro-lint.schema.json"]["properties"]
    assert list(keys) == list(READERS)
    assert all(len(each["description"]) > 8 and each["description"].endswith(".") for each in keys.values())
    usual = {key: READERS[key](each["default"]) for key, each in keys.items() if "default" in each}
    assert usual == {key: getattr(Settings(), key.replace("-", "_")) for key in usual}
    # Of the others there is none: a selection starts from the rules that are on, and torch is looked for in the project.
    without = {key for key in keys if getattr(Settings(), key.replace("-", "_"), None) is None}
    assert set(keys) - set(usual) == without >= {"extend-select", "ignore", "select", "torch-version"}


def test_rules_are_offered_with_their_summaries() -> None:
    offered = SCHEMAS["torchrepro-lint.schema.json"]["definitions"]["rule"]["anyOf"][0]
    described = dict(zip(offered["enum"], offered["x-taplo"]["docs"]["enumValues"], strict=True))
    for rule in RULES:
        assert described[rule.code].startswith(f"{rule.name}: ")
        assert described[rule.name].startswith(f"{rule.code}: ")
    assert list(described)[:3] == ["ALL", "TRL", "TRL0"]


GOOD: list[dict[str, Any]] = [
    {},
    {"select": []},
    {"select": ["ALL", "TRL", "TRL3", "TRL30", "TRL302", "dataloader-generator", "T"], "ignore": ["TR"]},
    {"fixable": ["TRL4"], "unfixable": ["unused-suppression"]},
    {"per-file-ignores": {"tests/*": ["TRL1"], "!src/**": [], "a\\ b": ["TRL2"], "[[:digit:]]x[!]a]": ["TRL2"]}},
    {"exclude": ["vendor", "", "# note", "!kept", "a\\[b", "[]a]"], "extend-exclude": []},
    *({"torch-version": each} for each in ("2.1", "2.1.2", "minimum", "2.6.0+cu118", "2.7.0rc1", "2.9.0.dev20250101")),
    *({"device": each} for each in DEVICES),
    *({"min-severity": each} for each in SEVERITIES),
    *({"output-format": each} for each in FORMATS),
    *({"parser": each} for each in PARSERS),
    {"seeders": {"acme.seed": ["torch", "numpy", "python"], "acme.none": []}},
    {"entry-points": ["scripts/*.py"], "source-roots": ["lib", "!", "["]},
    {"unsafe-fixes": False},
]
BAD: list[dict[str, Any]] = [
    {"selct": []},
    {"per_file_ignores": {}},
    {"tool": {"torchrepro-lint": {}}},
    {"select": "TRL3"},
    {"select": [3]},
    *(
        {key: [word]}
        for key in ("select", "extend-select", "ignore", "fixable", "unfixable")
        for word in ("TRL999", "x", "")
    ),
    {"ignore": ["trl302"]},
    {"ignore": ["TRLX", "L"]},
    {"per-file-ignores": {"a": ["TRL999"]}},
    {"per-file-ignores": {"a": "TRL1"}},
    {"per-file-ignores": ["a"]},
    {"per-file-ignores": {"[a": []}},
    *(
        {key: [each]}
        for key in ("exclude", "extend-exclude", "entry-points")
        for each in ("!", "[a", "a\\", "[!]", "a[b-")
    ),
    {"exclude": "a"},
    *({"torch-version": each} for each in (2.1, "2", "two", "2.x", "", "2.1rc1", "v2.1", "latest", "Minimum", "2.1 ")),
    *(
        {key: each}
        for key in ("device", "min-severity", "output-format", "parser")
        for each in ("tpu", "", 1, ["auto"])
    ),
    {"seeders": {"acme.seed": ["jax"]}},
    {"seeders": {"acme.seed": "torch"}},
    {"seeders": []},
    {"source-roots": "lib"},
    {"source-roots": [1]},
    {"unsafe-fixes": "yes"},
    {"unsafe-fixes": 1},
]


def written(data: Mapping[str, Any]) -> str:
    """A table in TOML."""
    return "".join(f"{key} = {_value(each)}\n" for key, each in data.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(key)} = {_value(each)}' for key, each in value.items())} }}"
    return f"[{', '.join(map(_value, value))}]" if isinstance(value, list) else json.dumps(value)


@pytest.mark.parametrize(("data", "good"), [*((each, True) for each in GOOD), *((each, False) for each in BAD)])
@pytest.mark.parametrize("file", ["torchrepro-lint.toml", "pyproject.toml"])
def test_the_schema_and_the_tool_say_the_same(
    tmp_path: Path, lint: Callable[..., Ran], file: str, data: dict[str, Any], good: bool
) -> None:
    heading = "[tool.torchrepro-lint]\n" if file == "pyproject.toml" else ""
    (tmp_path / file).write_text(heading + written(data), encoding="utf-8")
    (tmp_path / "a.py").touch()
    whole = {"project": {"name": "x"}, "tool": {"other": {"a": 1}, "torchrepro-lint": data}}
    assert parse_toml(written(data)) == data
    assert lint("--show-settings", str(tmp_path / "a.py")).status == (0 if good else 2)
    assert (SHARED.is_valid(whole) if heading else OWN.is_valid(data)) is good


@given(st.text("a[]!^-\\:# *", max_size=8))
@example("[!]]")
@example("[^\\]]")
def test_a_glob_that_the_schema_refuses_is_refused(text: str) -> None:
    """The other way round it does not hold: no pattern can tell that a range is empty."""
    if not GLOB.is_valid(text):
        with pytest.raises(ValueError, match=r"\bglob\b"):
            require_glob(text)


@pytest.mark.parametrize(
    "page",
    sorted([TOP / "README.md", *TOP.glob("docs/**/*.md"), *TOP.glob("tests/rules/*.md"), *TOP.glob("rules/*.md")]),
)
def test_settings_in_the_documentation_are_accepted(page: Path) -> None:
    blocks = re.findall(r"^```toml[^\n]*\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    shared = [parse_toml(block) for block in blocks if "[tool.torchrepro-lint" in block]
    assert [list(SHARED.iter_errors(each)) for each in shared] == [[]] * len(shared)


@pytest.fixture(scope="module")
def taplo(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Taplo, which also checks TOML in VS Code, run in a folder."""
    npm, place = shutil.which("npm"), tmp_path_factory.mktemp("taplo")
    if npm is None:
        pytest.skip("no npm to get Taplo with")
    install = [
        npm,
        "install",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        "--prefix",
        str(place),
        "@taplo/cli@0.7.0",
    ]
    try:
        subprocess.run(install, check=True, capture_output=True, timeout=120)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip("Taplo cannot be had from the registry")
    program = str(place / "node_modules" / ".bin" / "taplo")
    return lambda folder: subprocess.run([program, "check"], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["line", "rule"])
def test_taplo_takes_them_as_the_page_says(
    taplo: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, where: str
) -> None:
    page = (TOP / "docs" / "editors" / "schema.md").read_text(encoding="utf-8")
    line, rule = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    for name in SCHEMAS:
        shutil.copy(CONFIG / name, tmp_path)
    own = re.sub(r"https://\S+/", "./", line)
    shared = f"[project]\nname = 'x'\n\n[tool.torchrepro-lint]\n{own}"
    name, text = ("torchrepro-lint.toml", own) if where == "line" else ("pyproject.toml", shared.replace("#:", "# "))
    if where == "rule":
        (tmp_path / ".taplo.toml").write_text(rule, encoding="utf-8")
    (tmp_path / name).write_text(text, encoding="utf-8")
    ran = taplo(tmp_path)
    assert ran.returncode == 0, ran.stderr
    (tmp_path / name).write_text(text.replace("TRL403", "TRL999"), encoding="utf-8")
    ran = taplo(tmp_path)
    assert ran.returncode == 1
    assert '"TRL999" is not valid' in ran.stdout + ran.stderr


def test_the_command_prints_them(lint: Callable[..., Ran]) -> None:
    assert json.loads(lint("schema").out) == SCHEMAS["torchrepro-lint.schema.json"]
    assert json.loads(lint("schema", "--pyproject").out) == SCHEMAS["pyproject.schema.json"]


def test_the_check_tells_a_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tools import settings_schema

    monkeypatch.setattr(settings_schema, "_FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["settings_schema"])
    settings_schema.main()
    monkeypatch.setattr(sys, "argv", ["settings_schema", "--check"])
    for change, status in ((lambda _: None, 0), (lambda file: file.write_text("{}", encoding="utf-8"), 1)):
        change(tmp_path / "pyproject.schema.json")
        with pytest.raises(SystemExit) as ended:
            settings_schema.main()
        assert ended.value.code == status
