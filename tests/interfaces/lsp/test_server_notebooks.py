"""Notebooks in the language server: cells are added, removed and moved, and change their language."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls", reason="the extra lsp is not installed")

from benchmarks.language_client import Client
from prepared_server import prepared_client

Project = Callable[[Mapping[str, str | bytes]], Path]
FLAG = "torch.backends.cudnn.benchmark = True"
DRAW = "x = torch.randn(3)\ntorch.save(x, 'x.pt')"


class Book:
    """An open notebook. ``shown`` are the codes of the diagnostics of each cell by name, as they were shown last."""

    def __init__(self, client: Client, path: Path) -> None:
        self.client, self.path, self.version = client, path, 1
        self.shown: dict[str, list[str]] = {}

    def open(self, *texts: tuple[str, str, str]) -> None:
        """Cells by name, language and text."""
        cells = [cell(name, language) for name, language, _ in texts]
        notebook = {"uri": self.path.as_uri(), "notebookType": "jupyter-notebook", "version": 1, "cells": cells}
        documents = [document(*each) for each in texts]
        self.client.notify("notebookDocument/didOpen", {"notebookDocument": notebook, "cellTextDocuments": documents})

    def change(self, **cells: Any) -> None:
        self.version += 1
        identifier = {"uri": self.path.as_uri(), "version": self.version}
        self.client.notify("notebookDocument/didChange", {"notebookDocument": identifier, "change": {"cells": cells}})

    def splice(self, start: int, deleted: int, *names: tuple[str, str], **more: Any) -> None:
        array = {"start": start, "deleteCount": deleted, "cells": [cell(*each) for each in names]}
        self.change(structure={"array": array, **more})

    def wait(self, **expected: list[str]) -> None:
        """Wait until these are all the cells with diagnostics."""
        while {name: codes for name, codes in self.shown.items() if codes} != expected:
            told = self.client.wait("textDocument/publishDiagnostics")
            self.shown[told["uri"].removeprefix("cell:")] = [one["code"] for one in told["diagnostics"]]

    def actions(self, name: str, row: int) -> list[dict[str, Any]]:
        place = {"line": row, "character": 0}
        params = {
            "textDocument": {"uri": f"cell:{name}"},
            "range": {"start": place, "end": place},
            "context": {"diagnostics": []},
        }
        found: list[dict[str, Any]] = self.client.request("textDocument/codeAction", params)["result"]
        return found


def cell(name: str, language: str) -> dict[str, Any]:
    return {"kind": 1 if language == "markdown" else 2, "document": f"cell:{name}"}


def document(name: str, language: str, text: str) -> dict[str, Any]:
    return {"uri": f"cell:{name}", "languageId": language, "version": 1, "text": text}


@pytest.fixture
def book(project: Project) -> Iterator[Book]:
    root = project({"pyproject.toml": "", "a.ipynb": json.dumps({"cells": [], "metadata": {}, "nbformat": 4})})
    client = prepared_client(root)
    client.start({"notebookDocument": {"synchronization": {}}}, options={"delay": 0})
    yield Book(client, root / "a.ipynb")
    client.end()


def test_cells_come_go_and_move(book: Book) -> None:
    book.open(("a", "python", "import torch"), ("b", "python", DRAW), ("c", "python", FLAG))
    book.wait(b=["TRL101"], c=["TRL201"])
    seed = document("d", "python", "torch.manual_seed(0)")
    book.splice(1, 0, ("d", "python"), didOpen=[seed])  # above the draw
    book.wait(c=["TRL201"])
    book.splice(1, 2, ("b", "python"), ("d", "python"))  # they change places
    book.wait(b=["TRL104"], c=["TRL201"])
    book.splice(2, 2, didClose=[{"uri": "cell:c"}, {"uri": "cell:d"}])
    book.wait(b=["TRL101"])
    book.change(textContent=[{"document": {"uri": "cell:b", "version": 2}, "changes": [{"text": "x = 1"}]}])
    book.wait()


def test_a_cell_in_another_language_is_none_of_ours(book: Book) -> None:
    book.open(("a", "python", "import torch"), ("b", "python", FLAG))
    book.wait(b=["TRL201"])
    other = document("b", "sql", FLAG)
    book.splice(1, 1, ("b", "sql"), didClose=[{"uri": "cell:b"}], didOpen=[other])
    book.wait()
    book.splice(1, 1, ("b", "python"), didClose=[{"uri": "cell:b"}], didOpen=[document("b", "python", FLAG)])
    book.wait(b=["TRL201"])
    book.splice(1, 1, ("b", "markdown"), didClose=[{"uri": "cell:b"}], didOpen=[document("b", "markdown", FLAG)])
    book.wait()


def test_a_cell_that_is_broken_says_so_and_the_others_are_analysed(book: Book) -> None:
    book.open(("a", "python", "import torch"), ("b", "python", FLAG), ("c", "python", "def f(:"))
    book.wait(b=["TRL201"], c=["TRL001"])
    book.change(textContent=[{"document": {"uri": "cell:c", "version": 2}, "changes": [{"text": "%timeit f()"}]}])
    book.wait(b=["TRL201"])


def test_actions_stay_in_the_cells_that_they_concern(book: Book) -> None:
    call = "%matplotlib inline\ntorch.use_deterministic_algorithms(\n)  # on"
    book.open(
        ("a", "python", "import torch"), ("b", "python", FLAG), ("c", "markdown", "# Title"), ("d", "python", call)
    )
    book.wait(b=["TRL201"], d=["TRL204"])
    found = {one["title"]: one["edit"]["changes"] for one in book.actions("d", 1)}
    assert {tuple(changes) for changes in found.values()} == {("cell:d",)}
    hiding = next(changes for title, changes in found.items() if title.startswith("Ignore"))
    (edit,) = hiding["cell:d"]
    assert edit["range"]["start"] == {"line": 1, "character": len("torch.use_deterministic_algorithms(")}
    assert edit["newText"] == "  # noqa: TRL204"
    assert any(title.startswith("Apply all safe") for title in found)
    assert all(list(one["edit"]["changes"]) == ["cell:b"] for one in book.actions("b", 0) if one["kind"] == "quickfix")
    assert book.actions("c", 0)[:-1] == []


def test_a_notebook_that_is_closed_shows_nothing(book: Book) -> None:
    book.open(("a", "python", f"import torch\n{FLAG}"))
    book.wait(a=["TRL201"])
    closed = {"notebookDocument": {"uri": book.path.as_uri()}, "cellTextDocuments": [{"uri": "cell:a"}]}
    book.client.notify("notebookDocument/didClose", closed)
    book.wait()
