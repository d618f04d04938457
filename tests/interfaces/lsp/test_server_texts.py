"""Text synchronisation: open texts equal those of the editor after its changes."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("pygls", reason="the extra lsp is not installed")

from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types

from torchrepro_lint.interfaces.lsp.text_documents import OpenTexts
from torchrepro_lint.interfaces.lsp.workspace import length_in_units

URI = "file:///a%20b.py"
_TEXT = st.text(st.sampled_from("ab \n\r\f\x0b\x85\u2028é\U0001f600"), max_size=12)


def opened(text: str, encoding: str = "utf-16") -> OpenTexts:
    texts = OpenTexts()
    texts.encoding = encoding
    texts.open(types.TextDocumentItem(URI, "python", 1, text))
    return texts


def change(start: tuple[int, int], end: tuple[int, int], text: str) -> types.TextDocumentContentChangePartial:
    return types.TextDocumentContentChangePartial(
        range=types.Range(types.Position(*start), types.Position(*end)), text=text
    )


def changed(text: str, *changes: types.TextDocumentContentChangeEvent, encoding: str = "utf-16") -> str:
    texts = opened(text, encoding)
    texts.change(types.VersionedTextDocumentIdentifier(2, URI), changes)
    found = texts.text(URI)
    assert found is not None
    assert found.version == 2
    return found.text


@pytest.mark.parametrize("letter", "\f\x0b\x1c\x85\u2028\u2029")
def test_what_separates_lines_elsewhere_does_not_here(letter: str) -> None:
    assert changed(f"a{letter}\nb\nc\n", change((1, 0), (1, 1), "new")) == f"a{letter}\nnew\nc\n"


def test_changes_are_made_one_after_another() -> None:
    assert changed("a\nb\n", change((0, 0), (0, 0), "x\n"), change((1, 1), (2, 1), "!")) == "x\na!\n"
    whole = types.TextDocumentContentChangeWholeDocument("all")
    assert changed("a\n", change((0, 0), (1, 0), ""), whole, change((0, 3), (0, 3), "?")) == "all?"


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [((0, 99), (0, 99), "a!\nb"), ((1, 1), (1, 1), "a\nb!"), ((9, 0), (9, 9), "a\nb!"), ((1, 0), (7, 0), "a\n!")],
)
def test_places_beyond_the_end_are_the_end(start: tuple[int, int], end: tuple[int, int], expected: str) -> None:
    assert changed("a\nb", change(start, end, "!")) == expected


@settings(deadline=None)
@given(_TEXT, _TEXT, st.sampled_from(("utf-8", "utf-16", "utf-32")), st.data())
def test_any_span_can_be_replaced(text: str, new: str, encoding: str, data: st.DataObject) -> None:
    end = data.draw(st.integers(0, len(text)))
    start = data.draw(st.integers(0, end))
    if any(text[at - 1 : at + 1] == "\r\n" for at in (start, end)):  # no place in an editor
        return
    made = changed(text, change(_place(text, start, encoding), _place(text, end, encoding), new), encoding=encoding)
    assert made == text[:start] + new + text[end:]


def test_a_uri_is_one_however_it_is_quoted() -> None:
    texts = opened("a")
    assert texts.text("file:///a b.py") == texts.text(URI)
    texts.close("file:///a b.py")
    assert texts.text(URI) is None


def test_a_cell_that_is_closed_and_opened_in_one_change_is_open() -> None:
    texts = OpenTexts()
    cells = [types.NotebookCell(types.NotebookCellKind.Code, f"cell:{number}") for number in range(3)]
    texts.open_notebook(
        types.DidOpenNotebookDocumentParams(
            types.NotebookDocument("file:///a.ipynb", "jupyter-notebook", 1, cells),
            [types.TextDocumentItem(each.document, "python", 1, f"x = {each.document!r}") for each in cells],
        )
    )
    array = types.NotebookCellArrayChange(start=0, delete_count=2, cells=[cells[1]])
    structure = types.NotebookDocumentCellChangeStructure(
        array=array,
        did_open=[types.TextDocumentItem("cell:1", "sql", 1, "select 1")],
        did_close=[types.TextDocumentIdentifier("cell:0"), types.TextDocumentIdentifier("cell:1")],
    )
    texts.change_notebook(
        types.DidChangeNotebookDocumentParams(
            types.VersionedNotebookDocumentIdentifier(2, "file:///a.ipynb"),
            types.NotebookDocumentChangeEvent(cells=types.NotebookDocumentCellChanges(structure=structure)),
        )
    )
    notebook = texts.notebook("file:///a.ipynb")
    assert notebook is not None
    assert [(each.uri, each.language, each.text) for each in texts.cells(notebook)] == [
        ("cell:1", "sql", "select 1"),
        ("cell:2", "python", "x = 'cell:2'"),
    ]


def _place(text: str, offset: int, encoding: str) -> tuple[int, int]:
    """Row and column of an offset, counted otherwise than the server does."""
    rows = re.split(r"\r\n|\r|\n", text[:offset])
    return len(rows) - 1, length_in_units(rows[-1], encoding)
