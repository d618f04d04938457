"""The catalogue's generator parses torch's documentation, rejects unknown sentences, and reproduces the committed tables."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

import installed
from tools.catalogue import __main__ as command
from tools.catalogue import listing
from tools.catalogue.grammar import DocumentedOperation, UnknownLineError, parse_item
from tools.catalogue.remote import RangeFile

CATALOGUE = Path(__file__).parents[2] / "rules" / "catalogue"

SOURCE = '''
def use_deterministic_algorithms(mode):
    r"""Head.

    The following normally-nondeterministic operations will act
    deterministically when ``mode=True``:

        * :class:`torch.nn.Conv1d` when called on CUDA tensor

    The following normally-nondeterministic operations will throw a
    :class:`RuntimeError` when ``mode=True``:

        * :func:`torch.nn.functional.interpolate` when attempting to differentiate a CUDA tensor
          and one of the following modes is used:

          - ``linear``
          - ``bilinear``

        * :func:`torch.bincount` when called on a CUDA tensor and ``weights``
          tensor is given

    Some text with - dashes.
    """
'''


def test_the_installed_torch_gives_the_committed_file() -> None:
    installed.torch()
    source = command.installed()
    committed = CATALOGUE / f"torch-{'.'.join(source.version.split('.')[:2])}.toml"
    assert command.generate(source).encode() == committed.read_bytes()


def test_a_list_is_read() -> None:
    bilinear = ({"of": "mode", "one_of": ["linear", "bilinear"]},)
    assert listing.parse_list(listing.docstring(SOURCE)) == [
        DocumentedOperation("torch.nn.Conv1d", "deterministic", ("cuda",), "forward", ()),
        DocumentedOperation("torch.nn.functional.interpolate", "raises", ("cuda",), "backward", bilinear),
        DocumentedOperation("torch.bincount", "raises", ("cuda",), "forward", ({"of": "weights", "given": True},)),
    ]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (":func:`torch.index_add_` when called on a CUDA tensor", [("torch.Tensor.index_add_", ("cuda",), "forward")]),
        (":class:`torch.nn.MaxUnpool1d`", [("torch.nn.MaxUnpool1d", ("any",), "forward")]),
        (
            ":func:`torch.nn.MaxPool2d`, and :func:`torch.nn.AvgPool3d` when attempting to differentiate an MPS tensor",
            [("torch.nn.MaxPool2d", ("mps",), "backward"), ("torch.nn.AvgPool3d", ("mps",), "backward")],
        ),
        (
            ":func:`torch.Tensor.scatter_reduce` when called on CUDA or MPS tensor",
            [("torch.Tensor.scatter_reduce", ("cuda", "mps"), "forward")],
        ),
    ],
)
def test_an_item_is_read(item: str, expected: list[tuple[str, tuple[str, ...], str]]) -> None:
    assert [(row.name, row.device, row.phase) for row in parse_item(item, "raises")] == expected


def test_an_unknown_phrase_is_named() -> None:
    changed = SOURCE.replace("when called on CUDA tensor", "when called on a rainy day")
    with pytest.raises(UnknownLineError, match=r"'when called on a rainy day' in ':class:`torch.nn.Conv1d`"):
        listing.parse_list(listing.docstring(changed))


def test_an_unknown_rest_of_a_phrase_is_named() -> None:
    changed = SOURCE.replace("when called on CUDA tensor", "when called on CUDA tensor at night")
    with pytest.raises(UnknownLineError, match="'at night'"):
        listing.parse_list(listing.docstring(changed))


def test_an_unknown_heading_is_named() -> None:
    changed = SOURCE.replace("will throw a", "may throw a")
    with pytest.raises(UnknownLineError, match=r"a list under an unknown heading: 'The following.* may throw a"):
        listing.parse_list(listing.docstring(changed))


def test_a_missing_list_is_an_error() -> None:
    with pytest.raises(UnknownLineError, match="deterministic or raises is missing"):
        listing.parse_list("Nothing here.")


def test_a_missing_function_is_an_error() -> None:
    with pytest.raises(UnknownLineError, match="no documented function"):
        listing.docstring("def other(): ...")


def test_check_tells_a_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "__init__.py"
    source.write_text(SOURCE)
    (tmp_path / "version.py").write_text("__version__ = '2.99.1+cpu'\n")
    arguments = ["--source", str(source), "-o", str(tmp_path)]
    assert command.main([*arguments, "--check"]) == 1
    assert "differs" in capsys.readouterr().err
    assert command.main(arguments) == 0
    assert command.main([*arguments, "--check"]) == 0
    assert 'torch = "2.99.1"' in (tmp_path / "torch-2.99.toml").read_text()


def test_what_is_not_understood_is_one_line_and_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "__init__.py"
    source.write_text(SOURCE.replace("when called on CUDA tensor", "sometimes"))
    (tmp_path / "version.py").write_text("__version__ = '2.99.1'\n")
    assert command.main(["--source", str(source), "-o", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("error: torch 2.99.1: does not understand 'sometimes'")
    assert not (tmp_path / "torch-2.99.toml").exists()


def test_all_are_the_committed_releases(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked = []

    def released(release: str) -> command.Source:
        asked.append(release)
        return command.Source(release, SOURCE)

    monkeypatch.setattr(command, "released", released)
    assert command.main(["--all", "--check", "-o", str(CATALOGUE)]) == 1
    assert (asked[0], asked[-1]) == ("1.7.1", "2.15.0")
    assert len(asked) == len(list(CATALOGUE.glob("torch-*.toml"))) == capsys.readouterr().err.count("differs")


def test_a_wheel_is_read(tmp_path: Path) -> None:
    path = tmp_path / "torch-2.99.0-cp311-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("torch/__init__.py", SOURCE)
    assert command.wheel(path) == command.Source("2.99.0", SOURCE)


def test_one_member_costs_few_bytes() -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("torch/lib/big.so", bytes(3_000_000))
        archive.writestr("torch/__init__.py", SOURCE)
    whole = data.getvalue()
    fetched = 0

    def fetch(start: int, end: int) -> bytes:
        nonlocal fetched
        fetched += end - start
        return whole[start:end]

    with zipfile.ZipFile(io.BufferedReader(RangeFile(fetch, len(whole)), 1 << 16)) as archive:
        assert archive.read("torch/__init__.py").decode() == SOURCE
    assert fetched < 500_000
