"""The command ``ops``: look-ups, history, and all formats."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from pathlib import Path

import pytest

from conftest import Ran
from torchrepro_lint.catalogue.catalogue import load, signatures
from torchrepro_lint.catalogue.release_history import (
    STATUSES,
    conditions_text,
    find_operations,
    histories,
    history,
    release_ranges,
)
from torchrepro_lint.interfaces.report import ops_table
from torchrepro_lint.interfaces.report.ops_html import render
from torchrepro_lint.source.errors import UsageError
from torchrepro_lint.source.files import documented_versions

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]


@pytest.mark.parametrize(
    ("name", "operations"),
    [
        ("F.interpolate", ["torch.nn.functional.interpolate"]),
        ("nn.Upsample", ["torch.nn.functional.interpolate"]),
        ("torch.nn.functional.interpolate", ["torch.nn.functional.interpolate"]),
        ("index_select", ["torch.index_select"]),
        ("Tensor.cumsum()", ["torch.cumsum"]),
        ("torch.cumprod", ["torch.cumsum"]),
        ("torch.nn.modules.conv.Conv2d", ["torch.nn.Conv2d"]),
        ("conv2D", ["torch.nn.Conv2d"]),
        ("roi_pool", ["torchvision.ops.roi_pool"]),
        ("F.pad", [f"torch.nn.Re{which}Pad{n}d" for which in ("flection", "plication") for n in (1, 2, 3)]),
    ],
)
def test_an_operation_goes_by_many_names(name: str, operations: list[str]) -> None:
    assert list(find_operations(name)) == operations


@pytest.mark.parametrize("name", sorted({one.name for ones in signatures().values() for one in ones}))
def test_every_spelling_finds_its_operations(name: str) -> None:
    assert set(find_operations(name)) == {op for op, ones in signatures().items() if name in {one.name for one in ones}}


def test_an_unknown_name_suggests_near_ones(lint: Lint) -> None:
    with pytest.raises(
        UsageError, match=r"no operation 'intrpolate' .*; did you mean torch\.nn\.functional\.interpolate\?"
    ):
        find_operations("intrpolate")
    assert lint("ops", "intrpolate").status == 2
    assert lint("ops", "zzzz").err == "torchrepro-lint: no operation 'zzzz' in the catalogue\n"


def test_a_history_says_what_each_release_says() -> None:
    """Turning the catalogue on its side loses nothing and makes nothing up."""
    for one in histories():
        assert [release for period in one.periods for release in period.releases] == list(documented_versions())
        for release in documented_versions():
            found = {
                (case.behaviour, case.devices, case.phase, case.when)
                for case in one.at(release).cases
                if release in case.releases
            }
            assert found == {(r.behaviour, r.devices, r.phase, r.when) for r in load(release).operation(one.operation)}
    periods = [release_ranges(period.releases).split("\u2013") for period in history("torch.cumsum").periods]
    assert periods == [["1.7", "1.12"], ["1.13", "2.5"], ["2.6", "2.15"]]


def test_conditions_are_words() -> None:
    said = {conditions_text(case.when) for one in histories() for period in one.periods for case in period.cases}
    for text in said:
        assert not re.search(
            r"input\.|program\.|one_of|not_all|\(|\)$", text.replace("(torch does not say which)", "")
        ), text


def test_the_table_of_a_release(project: Maker, lint: Lint) -> None:
    project({"requirements.txt": "torch==2.4.0\n"})
    lines = lint("ops").out.splitlines()
    assert lines[0] == "With torch.use_deterministic_algorithms(True) in torch 2.4:"
    (cumsum,) = [line for line in lines if line.startswith("torch.cumsum ")]
    assert cumsum.split(maxsplit=2) == ["torch.cumsum", "✕", cumsum.split(maxsplit=2)[2]]
    assert cumsum.endswith("cumsum_cuda_kernel")
    newer = lint("ops", "--torch-version", "2.6").out
    assert re.search(r"^torch\.cumsum +⚑ needs the flag +CUDA forward +floating", newer, re.MULTILINE)
    ran = lint("ops", "--torch-version", "3.9", "cumsum")
    assert ran.err == "torch 3.9 (the option --torch-version) is not known; torch 2.15 is assumed instead\n"


def test_one_operation_over_all_releases(lint: Lint) -> None:
    out = lint("ops", "F.interpolate", "--torch-version", "2.3").out
    assert out.splitlines()[0] == "torch.nn.functional.interpolate"
    assert "torch.nn.Upsample" in out.splitlines()[1]
    assert len(re.findall(r"<- torch 2\.3$", out, re.MULTILINE)) == 1
    for part in ('mode="bilinear", antialias=False', "upsample_bicubic2d_backward_out_cuda", "dispatch log of 2.13"):
        assert part in out


def test_json(lint: Lint) -> None:
    table = json.loads(lint("ops", "--torch-version", "2.13", "--output-format", "json").out)
    assert (table["torch"], len(table["operations"])) == ("2.13", len(histories()))
    found = {one["name"]: one for one in table["operations"]}
    assert found["torch.median"]["status"] == "raises"
    assert found["torch.median"]["cases"][0]["errors"] == ["median CUDA with indices output"]
    assert found["torch.median"]["cases"][0]["conditions"] == [{"of": "dim", "given": [True]}]
    (one,) = json.loads(lint("ops", "cumsum", "--output-format", "json").out)["operations"]
    spans = [(period["since"], period["until"], period["status"]) for period in one["periods"]]
    assert spans[1:] == [("1.13", "2.5", "raises"), ("2.6", "2.15", "needs the flag")]


def test_markdown(lint: Lint) -> None:
    rows = lint("ops", "--output-format", "markdown").out.splitlines()[2:]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {6}
    out = lint("ops", "cumsum", "--output-format", "markdown", "--torch-version", "2.6").out
    assert "\n| **2.6\u20132.15** | ⚑ needs the flag | CUDA forward |" in out


class Page(HTMLParser):
    """What the tests ask of the page: ids, links, elements in order, and that all is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.elements.append((tag, given))
        self.ids += [given["id"]] if given.get("id") else []
        self.links += [given["href"]] if given.get("href") else []
        if tag not in ("meta", "wbr", "br", "input"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


def test_the_page_stands_alone_and_its_links_lead_somewhere() -> None:
    text = render(histories(), "2.6")
    page = Page(text)
    assert len(set(page.ids)) == len(page.ids)
    assert {link for link in page.links if link[1:] not in page.ids} == set()
    assert not re.search(r"https?:|//[a-z]|\ssrc=|@import|url\(|\sstyle=|\son\w+=", text)
    policy = next(given["content"] for tag, given in page.elements if given.get("http-equiv"))
    for tag in ("style", "script"):
        (body,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in str(policy)


def test_every_row_of_the_page_has_all_releases() -> None:
    text = render(histories(), None)
    rows = re.findall(r"<tr role=\"row\" data-text.*?</tr>", text)
    assert len(rows) == len(histories())
    for row in rows:
        assert sum(map(int, re.findall(r'colspan="(\d+)"', row))) == len(documented_versions())
    assert all(f'class="s {name}"' in text for name in STATUSES)
    assert text.count(' class="here"') == 0 != render(histories(), "2.6").count(' here"')


def test_what_comes_from_tables_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = (each for each in histories() if each.operation == "torch.nn.MaxPool2d")
    text = render((one,), None)
    assert "&lt;max_pool backward, name built at run time&gt;" in text
    assert "<max_pool" not in text


def test_equal_catalogues_give_equal_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", "0"), ("b", "1")):
        command = [sys.executable, "-m", "torchrepro_lint", "ops", "--output-format", "html", "-o", f"{name}.html"]
        subprocess.run(command, check=True, cwd=tmp_path, env={**os.environ, "PYTHONHASHSEED": seed})
        (tmp_path / "requirements.txt").write_text("torch==1.9\n")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_an_output_that_cannot_be_written_is_one_line(project: Maker, lint: Lint) -> None:
    project({"a": ""})
    Path("file").touch()
    assert lint("ops", "-o", "file/below").err == "torchrepro-lint: file/below: cannot be written: File exists\n"
    assert lint("ops", "-o", "folder/table.txt").out == ""
    assert Path("folder/table.txt").read_text(encoding="utf-8").startswith("With torch.")


@pytest.mark.parametrize("version", ["1.7", "2.13"])
def test_a_table_that_is_too_wide_has_a_block_for_each_operation(version: str) -> None:
    table = ops_table.render(histories(), version)
    widest = max(map(len, table.splitlines()))
    assert ops_table.render(histories(), version, widest) == table
    blocks = ops_table.render(histories(), version, widest - 1)
    assert re.findall(r"^torch\S+", blocks, re.MULTILINE) == re.findall(r"^torch\S+", table, re.MULTILINE)
    said = "\n".join(re.sub(r"[,:]? +", " ", line) for line in table.splitlines()[3:])
    told = re.sub(r"\n +(?=\S)", " ", blocks.partition("\n\n")[2]).replace(" error ", " ")
    words = [re.sub(r"[,:](?= |$)", "", text) for text in (said, told)]
    assert words[0].split() == words[1].split()
