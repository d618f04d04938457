"""The language server over its pipes, as an editor speaks to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls", reason="the extra lsp is not installed")

from benchmarks.language_client import PATIENCE, Client
from prepared_server import prepared_client

Project = Callable[[Mapping[str, str | bytes]], Path]
Start = Callable[..., Client]

MODEL = "import torch\n\n\ndef draw():\n    return torch.randn(3)\n"
TRAIN = """import torch
from model import draw

if __name__ == "__main__":
    x = draw()
    torch.save(x, "x.pt")
"""
FLAG = "import torch\n\ntorch.backends.cudnn.benchmark = True\n"
ALL = {"line": 0, "character": 0}, {"line": 10_000, "character": 0}


@pytest.fixture
def start() -> Iterator[Callable[..., Client]]:
    """A server for a folder; it has ended when the test has."""
    clients = []

    def begin(root: Path, settings: Any = None, **more: Any) -> Client:
        client = prepared_client(root, settings)
        clients.append(client)
        client.capabilities = client.start(**more)
        return client

    yield begin
    for client in clients:
        client.end()


def codes(found: list[dict[str, Any]]) -> list[str]:
    return [one["code"] for one in found]


def actions(
    client: Client, path: Path, only: list[str] | None = None, at: Any = ALL, diagnostics: Any = ()
) -> list[dict[str, Any]]:
    """What can be done between two places of a document, or in all of it, and about diagnostics."""
    context = {"diagnostics": list(diagnostics), **({"only": only} if only is not None else {})}
    where = dict(zip(("start", "end"), at, strict=True))
    params = {"textDocument": {"uri": path.as_uri()}, "range": where, "context": context}
    answer: list[dict[str, Any]] = client.request("textDocument/codeAction", params)["result"]
    return answer


def applied(text: str, edits: list[dict[str, Any]]) -> str:
    """A text in ASCII with edits made."""
    lines = text.splitlines(keepends=True)
    starts = [sum(map(len, lines[:row])) for row in range(len(lines) + 1)]
    for edit in sorted(edits, key=lambda each: (each["range"]["start"]["line"], each["range"]["start"]["character"]))[
        ::-1
    ]:
        start, end = (
            starts[edit["range"][each]["line"]] + edit["range"][each]["character"] for each in ("start", "end")
        )
        text = text[:start] + edit["newText"] + text[end:]
    return text


def test_a_session(project: Project, start: Start) -> None:
    root = project({"model.py": MODEL, "train.py": TRAIN, "pyproject.toml": ""})
    client = start(root)
    client.open(root / "train.py", TRAIN)
    (found,) = client.diagnostics(root / "train.py", 1)
    assert found["code"] == "TRL101"
    assert found["severity"] == 2
    assert found["source"] == "torchrepro-lint"
    assert found["range"] == {"start": {"line": 4, "character": 4}, "end": {"line": 4, "character": 14}}
    assert found["codeDescription"]["href"].endswith("TRL101-unseeded-torch.md")
    places = [
        (one["location"]["uri"], one["location"]["range"]["start"]["line"]) for one in found["relatedInformation"]
    ]
    assert places[-1] == ((root / "model.py").as_uri(), 4)
    client.change(root / "train.py", TRAIN.replace("    x =", "    torch.manual_seed(0)\n    x ="), 2)
    assert client.diagnostics(root / "train.py", 2) == []
    client.close(root / "train.py")
    assert client.stop() == 0


def test_closing_clears_and_typing_an_error_says_so(project: Project, start: Start) -> None:
    root = project({"model.py": MODEL, "train.py": TRAIN, "pyproject.toml": ""})
    client = start(root)
    client.open(root / "train.py", TRAIN)
    client.open(root / "model.py", MODEL)
    assert codes(client.diagnostics(root / "train.py", 1)) == ["TRL101"]
    client.change(root / "model.py", MODEL + "def f(:\n", 2)
    (broken,) = client.diagnostics(root / "model.py", 2)
    assert (broken["code"], broken["severity"]) == ("TRL001", 1)
    assert codes(client.diagnostics(root / "train.py", 1)) == ["TRL101"]
    client.close(root / "model.py")
    assert client.diagnostics(root / "model.py") == []


def test_a_fix_and_all_fixes_and_a_comment(project: Project, start: Start) -> None:
    text = "import torch\n\nx = torch.use_deterministic_algorithms()\ntorch.backends.cudnn.benchmark = True  # why\n"
    root = project({"train.py": text, "pyproject.toml": ""})
    client = start(root)
    client.open(root / "train.py", text)
    assert codes(client.diagnostics(root / "train.py", 1)) == ["TRL204", "TRL201"]
    found = actions(client, root / "train.py")
    uri = (root / "train.py").as_uri()
    results = {one["title"]: applied(text, one["edit"]["changes"][uri]) for one in found}
    missing, flag = text.replace("algorithms()", "algorithms(True)"), text.replace("mark = True", "mark = False")
    assert sorted(results.values()) == sorted(
        [
            missing,
            flag,
            text.replace("()\n", "()  # noqa: TRL204\n"),
            text.replace("# why", "# why  # noqa: TRL201"),
            missing,  # the only one that is safe
        ]
    )
    kinds = [one["kind"] for one in found]
    assert kinds == ["quickfix"] * 4 + ["source.fixAll.torchrepro-lint"]
    assert [one["title"].endswith("(unsafe)") for one in found if one["kind"] == "quickfix"].count(True) == 1
    assert [one["diagnostics"][0]["code"] for one in found[:4]] == ["TRL204", "TRL204", "TRL201", "TRL201"]
    assert [one["kind"] for one in actions(client, root / "train.py", ["source.fixAll"])] == kinds[-1:]
    assert [one["kind"] for one in actions(client, root / "train.py", ["quickfix"])] == kinds[:4]
    assert actions(client, root / "train.py", ["refactor"]) == []


def test_actions_are_those_of_a_place_and_of_diagnostics_that_are_named(project: Project, start: Start) -> None:
    """Neovim sends where the cursor is, with the diagnostics of the whole line."""
    root = project({"train.py": FLAG, "pyproject.toml": ""})
    client = start(root)
    client.open(root / "train.py", FLAG)
    (found,) = client.diagnostics(root / "train.py")
    path, cursor = root / "train.py", {"line": 0, "character": 0}
    assert actions(client, path, at=(cursor, cursor)) == []
    assert actions(client, path, at=(cursor, cursor), diagnostics=[{**found, "source": "other"}]) == []
    titles = [one["title"] for one in actions(client, path, at=(cursor, cursor), diagnostics=[found])]
    assert titles == [one["title"] for one in actions(client, path, at=found["range"].values())] != []


def test_all_fixes_are_made_when_they_are_chosen(project: Project, start: Start) -> None:
    text = "import torch\n\ntorch.use_deterministic_algorithms()\n"
    root = project({"train.py": text, "pyproject.toml": ""})
    support = {"resolveSupport": {"properties": ["edit"]}, "dataSupport": True}
    client = start(root, capabilities={"textDocument": {"codeAction": support}})
    assert client.capabilities["codeActionProvider"]["resolveProvider"] is True
    client.open(root / "train.py", text)
    (action,) = actions(client, root / "train.py", ["source.fixAll"])
    assert "edit" not in action
    client.change(root / "train.py", "# new\n" + text, 2)
    resolved = client.request("codeAction/resolve", action)["result"]
    edits = resolved["edit"]["changes"][(root / "train.py").as_uri()]
    assert applied("# new\n" + text, edits) == "# new\n" + text.replace("()", "(True)")
    client.close(root / "train.py")
    assert client.request("codeAction/resolve", action)["result"]["edit"] == {"changes": {}}


def test_a_folder_that_is_renamed_in_the_editor_is_looked_for_again(project: Project, start: Start) -> None:
    train = TRAIN.replace("from model", "from lib.model")
    root = project({"old/model.py": MODEL, "train.py": train, "pyproject.toml": ""})
    operations = {"workspace": {"fileOperations": {"didRename": True, "didDelete": True}}}
    client = start(root, capabilities=operations)
    assert client.capabilities["workspace"]["fileOperations"].keys() == {"didRename", "didDelete"}
    client.open(root / "train.py", train)
    assert client.diagnostics(root / "train.py") == []
    (root / "old").rename(root / "lib")
    files = [{"oldUri": (root / "old").as_uri(), "newUri": (root / "lib").as_uri()}]
    client.notify("workspace/didRenameFiles", {"files": files})
    assert codes(client.diagnostics(root / "train.py")) == ["TRL101"]
    (root / "lib" / "model.py").unlink()
    (root / "lib").rmdir()
    client.notify("workspace/didDeleteFiles", {"files": [{"uri": (root / "lib").as_uri()}]})
    assert client.diagnostics(root / "train.py") == []


def test_a_fix_of_two_files(project: Project, start: Start) -> None:
    helper = "import torch\n\n\ndef seed_everything(seed):\n    torch.manual_seed(seed)\n"
    main = (
        "import numpy as np\nimport torch\nfrom seeding import seed_everything\n\n"
        'if __name__ == "__main__":\n    seed_everything(1)\n    x = np.random.rand(3)\n    torch.save(x, "x.pt")\n'
    )
    root = project({"seeding.py": helper, "main.py": main, "pyproject.toml": ""})
    capabilities = {"workspace": {"workspaceEdit": {"documentChanges": True}}}
    client = start(root, capabilities=capabilities)
    unsaved = "# unsaved\n" + helper
    client.open(root / "main.py", main, 7)
    client.open(root / "seeding.py", unsaved, 3)
    assert codes(client.diagnostics(root / "main.py", 7)) == ["TRL102"]
    fix = next(one for one in actions(client, root / "main.py") if "noqa" not in str(one["edit"]))
    edits = {one["textDocument"]["uri"]: one for one in fix["edit"]["documentChanges"]}
    assert edits[(root / "seeding.py").as_uri()]["textDocument"]["version"] == 3
    fixed = applied(unsaved, edits[(root / "seeding.py").as_uri()]["edits"])
    assert "np.random.seed(seed)" in fixed
    client.change(root / "seeding.py", fixed, 4)
    assert client.diagnostics(root / "main.py", 7) == []


@pytest.mark.parametrize(
    ("encoding", "columns"), [("utf-8", (12, 49, 60)), ("utf-16", (10, 47, 55)), ("utf-32", (9, 46, 53))]
)
def test_positions_with_emoji(encoding: str, columns: tuple[int, int, int], project: Project, start: Start) -> None:
    text = "import torch\n\nx = '\U0001f600'; torch.backends.cudnn.benchmark = True  # \U0001f600 é\n"
    root = project({"train.py": text, "pyproject.toml": ""})
    client = start(root, capabilities={"general": {"positionEncodings": [encoding]}})
    assert client.capabilities["positionEncoding"] == encoding
    client.open(root / "train.py", text)
    (found,) = client.diagnostics(root / "train.py", 1)
    place = found["range"]
    assert (place["start"]["character"], place["end"]["character"]) == columns[:2]
    (hide,) = (one for one in actions(client, root / "train.py") if "noqa" in str(one["edit"]))
    (edit,) = hide["edit"]["changes"][(root / "train.py").as_uri()]
    assert edit["range"]["start"] == {"line": 2, "character": columns[2]}
    inside = {"line": 2, "character": columns[0]}
    hover = client.request(
        "textDocument/hover", {"textDocument": {"uri": (root / "train.py").as_uri()}, "position": inside}
    )
    assert hover["result"]["contents"]["value"].startswith("**TRL201 cudnn-benchmark**")
    assert client.stop() == 0


def test_a_large_file_of_the_project_is_read_in_the_servers_own_process(project: Project, start: Start) -> None:
    """Elsewhere it has a process of its own; the server waits for its editor in a thread, so its fork would wait for ever."""
    large = "import torch\n" + f"# {'x' * 98}\n" * 10_000 + "draw = torch.randn\n"
    train = TRAIN.replace("from model import draw", "from large import draw").replace("draw()", "draw(3)")
    root = project({"large.py": large, "train.py": train, "pyproject.toml": ""})
    client = start(root)
    client.open(root / "train.py", train)
    assert codes(client.diagnostics(root / "train.py")) == ["TRL101"]


def test_hover_says_nothing_where_nothing_is(project: Project, start: Start) -> None:
    root = project({"train.py": FLAG, "pyproject.toml": ""})
    client = start(root)
    client.open(root / "train.py", FLAG)
    params = {"textDocument": {"uri": (root / "train.py").as_uri()}, "position": {"line": 0, "character": 1}}
    assert client.request("textDocument/hover", params)["result"] is None


def test_a_client_says_how_it_shows_a_hover_and_actions_say_what_they_do(project: Project, start: Start) -> None:
    root = project({"train.py": FLAG, "pyproject.toml": ""})
    client = start(root, capabilities={"textDocument": {"hover": {"contentFormat": ["plaintext"]}}})
    client.open(root / "train.py", FLAG)
    params = {"textDocument": {"uri": (root / "train.py").as_uri()}, "position": {"line": 2, "character": 1}}
    contents = client.request("textDocument/hover", params)["result"]["contents"]
    assert contents["kind"] == "plaintext"
    assert contents["value"].startswith("TRL201 cudnn-benchmark\n\n")
    found = [(one["title"], one["kind"], one.get("isPreferred")) for one in actions(client, root / "train.py")]
    (fix, *others) = found
    assert fix[0].endswith(" (unsafe)")
    assert fix[1:] == ("quickfix", None)
    assert others == [("Ignore TRL201 here", "quickfix", None)]


def test_malformed_messages_do_not_end_the_server(project: Project, start: Start) -> None:
    root = project({"train.py": FLAG, "pyproject.toml": ""})
    client = start(root)
    for body in (b"{", b"[]", b"{}", b'{"jsonrpc": "2.0", "method": 1}', b'{"jsonrpc": "2.0", "id": 99}', b"\xff\xfe"):
        client.send_raw(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    client.send_raw(b"Nonsense: 1\r\n\r\n")
    client.notify("textDocument/didChange", {"textDocument": {"uri": "file:///never/opened.py", "version": 1}})
    client.notify("textDocument/didOpen", {"textDocument": {"uri": "untitled:Untitled-1"}})
    client.notify("no/such", {})
    assert client.request("no/such", {})["error"]["code"] == -32601
    assert client.request("textDocument/didClose", {"textDocument": {"uri": "file:///x.py"}})["error"]["code"] == -32600
    assert "error" in client.request("textDocument/codeAction", {"textDocument": 1})
    client.open(root / "train.py", FLAG)
    assert codes(client.diagnostics(root / "train.py", 1)) == ["TRL201"]
    assert client.stop() == 0


@pytest.mark.parametrize(
    "length", [b"999999999999", b"9" * 5000, b"100000001", b"-1", b"1x"], ids=lambda length: length[:12].decode()
)
def test_a_length_that_no_message_has_is_no_header(project: Project, start: Start, length: bytes) -> None:
    root = project({"train.py": FLAG, "pyproject.toml": ""})
    client = start(root)
    client.send_raw(b"Content-Length: %s\r\n\r\nabc\r\n" % length)
    assert client.request("no/such", {})["error"]["code"] == -32601
    client.open(root / "train.py", FLAG)
    assert codes(client.diagnostics(root / "train.py", 1)) == ["TRL201"]
    assert client.stop() == 0


@pytest.mark.parametrize("header", [b"content-length: %d", b"CONTENT-LENGTH:%d", b"Content-Length:  00%d "])
def test_a_header_is_known_however_it_is_written(project: Project, start: Start, header: bytes) -> None:
    client = start(project({"pyproject.toml": ""}))
    body = b'{"jsonrpc": "2.0", "id": "mine", "method": "shutdown"}'
    client.send_raw(header % len(body) + b"\r\nContent-Type: any\r\n\r\n" + body)
    assert client.request("shutdown", None)["error"]["message"] == "the server has been shut down"


def test_a_cancelled_request_is_answered_and_the_next_one_too(project: Project, start: Start) -> None:
    root = project({"train.py": FLAG, "pyproject.toml": ""})
    client = start(root)
    client.open(root / "train.py", FLAG)
    uri = {"textDocument": {"uri": (root / "train.py").as_uri()}}
    numbers = [
        client.send_request("textDocument/hover", {**uri, "position": {"line": 2, "character": 3}}) for _ in range(3)
    ]
    client.notify("$/cancelRequest", {"id": numbers[1]})
    client.notify("$/cancelRequest", {"id": 12345})
    answers = [client.answer(number) for number in numbers]
    assert "result" in answers[0]
    assert answers[1]["error"]["code"] == -32800
    assert answers[2]["result"]["contents"]["value"].startswith("**TRL201 ")


def test_an_edit_is_not_lost_with_a_request_that_is_cancelled(project: Project, start: Start) -> None:
    root = project({"train.py": FLAG, "pyproject.toml": ""})
    client = start(root, options={"delay": 0})
    client.open(root / "train.py", FLAG)
    where = {"textDocument": {"uri": (root / "train.py").as_uri()}, "position": {"line": 2, "character": 3}}
    first = client.send_request("textDocument/hover", where)  # keeps the server busy: it reads the project
    client.change(root / "train.py", "import torch\n", 2)
    client.notify("$/cancelRequest", {"id": client.send_request("textDocument/hover", where)})
    client.answer(first)
    assert client.diagnostics(root / "train.py", 2) == []


def test_a_form_feed_does_not_end_a_line(project: Project, start: Start) -> None:
    text = "import torch\n\f\nx = 1\ntorch.backends.cudnn.benchmark = True\n"
    root = project({"train.py": text, "pyproject.toml": ""})
    client = start(root)
    client.open(root / "train.py", text)
    (found,) = client.diagnostics(root / "train.py", 1)
    assert found["range"]["start"] == {"line": 3, "character": 0}
    span = {"start": {"line": 3, "character": 33}, "end": {"line": 3, "character": 37}}
    document = {"uri": (root / "train.py").as_uri(), "version": 2}
    client.notify(
        "textDocument/didChange", {"textDocument": document, "contentChanges": [{"range": span, "text": "False"}]}
    )
    assert client.diagnostics(root / "train.py", 2) == []


def test_an_exit_that_was_not_announced_is_a_failure(project: Project, start: Start) -> None:
    client = start(project({"pyproject.toml": ""}))
    client.notify("exit", None)
    assert client.process.wait(PATIENCE) == 1


def test_the_server_ends_with_its_editor_whatever_it_does(project: Project, start: Start) -> None:
    root = project({"train.py": FLAG, "pyproject.toml": ""})
    client = start(root, options={"delay": 0})
    client.open(root / "train.py", FLAG)
    assert client.process.stdin
    client.process.stdin.close()
    assert client.process.wait(PATIENCE) == 1


def test_after_the_end_was_announced_requests_are_refused(project: Project, start: Start) -> None:
    root = project({"train.py": FLAG, "pyproject.toml": ""})
    client = start(root)
    assert client.request("shutdown", None)["result"] is None
    where = {"textDocument": {"uri": (root / "train.py").as_uri()}, "position": {"line": 2, "character": 3}}
    assert client.request("textDocument/hover", where)["error"]["code"] == -32600
    client.notify("exit", None)
    assert client.process.wait(PATIENCE) == 0


def test_files_that_change_on_disk_are_read_again(project: Project, start: Start) -> None:
    root = project({"model.py": MODEL, "train.py": TRAIN, "pyproject.toml": ""})
    dynamic = {"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}}}
    client = start(root, capabilities=dynamic)
    client.open(root / "train.py", TRAIN)
    assert codes(client.diagnostics(root / "train.py")) == ["TRL101"]
    (asked,) = [one for one in client.asked if one["method"] == "client/registerCapability"]
    assert asked["params"]["registrations"][0]["method"] == "workspace/didChangeWatchedFiles"
    for change, expected in ((2, []), (1, ["TRL101"]), (3, [])):
        (root / "model.py").unlink() if change == 3 else (root / "model.py").write_text(
            MODEL if change == 1 else "import torch\n\n\ndef draw():\n    return 3\n"
        )
        changes = [{"uri": (root / "model.py").as_uri(), "type": change}]
        client.notify("workspace/didChangeWatchedFiles", {"changes": changes})
        assert codes(client.diagnostics(root / "train.py")) == expected


def test_an_editor_is_told_while_a_project_is_read(project: Project, start: Start) -> None:
    root = project({"train.py": FLAG, "pyproject.toml": ""})
    client = start(root, capabilities={"window": {"workDoneProgress": True}})
    client.open(root / "train.py", FLAG)
    begun = client.wait("$/progress")
    assert begun["value"]["title"] == "torchrepro-lint: reading the project"
    ended = client.wait("$/progress")
    assert (ended["token"], ended["value"]["kind"]) == (begun["token"], "end")
    (asked,) = [one["params"] for one in client.asked if one["method"] == "window/workDoneProgress/create"]
    assert asked["token"] == begun["token"]


def test_settings_come_from_the_editor(project: Project, start: Start) -> None:
    root = project({"train.py": FLAG, "pyproject.toml": ""})
    asks = {"workspace": {"configuration": True, "didChangeConfiguration": {"dynamicRegistration": True}}}
    client = start(root, settings={"ignore": ["TRL201"], "delay": 0}, capabilities=asks)
    client.open(root / "train.py", FLAG)
    assert client.diagnostics(root / "train.py") == []
    client.settings = {"minSeverity": "nonsense"}
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    assert "expected one of note, warning, error" in client.wait("window/showMessage")["message"]
    assert codes(client.diagnostics(root / "train.py")) == ["TRL201"]


def test_settings_may_come_when_the_server_starts(project: Project, start: Start) -> None:
    root = project({"train.py": FLAG, "pyproject.toml": ""})
    client = start(root, options={"ignore": ["TRL201"]})
    client.open(root / "train.py", FLAG)
    assert client.diagnostics(root / "train.py", 1) == []


def test_without_a_folder_a_file_is_a_project(project: Project, start: Start) -> None:
    root = project({"model.py": MODEL, "train.py": TRAIN})
    client = start(root, folders=[])
    client.open(root / "train.py", TRAIN)
    assert codes(client.diagnostics(root / "train.py", 1)) == ["TRL101"]


def test_folders_come_and_go(project: Project, start: Start) -> None:
    root = project({"a/pyproject.toml": "", "b/train.py": FLAG, "b/pyproject.toml": ""})
    client = start(root, folders=[root / "a"], capabilities={"workspace": {"workspaceFolders": True}})
    added = [{"uri": (root / "b").as_uri(), "name": "b"}]
    client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": added, "removed": []}})
    client.open(root / "b" / "train.py", FLAG)
    assert codes(client.diagnostics(root / "b" / "train.py", 1)) == ["TRL201"]


def test_cells_of_a_notebook(project: Project, start: Start) -> None:
    texts = ["import torch\n%matplotlib inline", "# \U0001f600", "x = 1\ntorch.backends.cudnn.benchmark = True"]
    root = project({"pyproject.toml": "", "a.ipynb": json.dumps({"cells": [], "metadata": {}, "nbformat": 4})})
    client = start(root, capabilities={"notebookDocument": {"synchronization": {}}})
    cells = [
        {"kind": 1 if each.startswith("# ") else 2, "document": f"cell:{number}"} for number, each in enumerate(texts)
    ]
    documents = [
        {
            "uri": f"cell:{number}",
            "languageId": "markdown" if each.startswith("# ") else "python",
            "version": 1,
            "text": each,
        }
        for number, each in enumerate(texts)
    ]
    notebook = {"uri": (root / "a.ipynb").as_uri(), "notebookType": "jupyter-notebook", "version": 1, "cells": cells}
    client.notify("notebookDocument/didOpen", {"notebookDocument": notebook, "cellTextDocuments": documents})
    shown = client.wait("textDocument/publishDiagnostics", lambda params: params["uri"] == "cell:2")
    (found,) = shown["diagnostics"]
    assert (found["code"], found["range"]["start"]) == ("TRL201", {"line": 1, "character": 0})
    params = {
        "textDocument": {"uri": "cell:2"},
        "range": {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 0}},
        "context": {"diagnostics": []},
    }
    edits = [one["edit"]["changes"] for one in client.request("textDocument/codeAction", params)["result"]]
    assert all(list(each) == ["cell:2"] for each in edits)
    assert sorted(applied(texts[2], each["cell:2"]) for each in edits) == [
        texts[2].replace("True", "False"),
        f"{texts[2]}  # noqa: TRL201",
    ]
    change = {
        "cells": {
            "textContent": [{"document": {"uri": "cell:2", "version": 2}, "changes": [{"text": "x = 1"}]}],
        }
    }
    version = {"uri": (root / "a.ipynb").as_uri(), "version": 2}
    client.notify("notebookDocument/didChange", {"notebookDocument": version, "change": change})
    shown = client.wait("textDocument/publishDiagnostics", lambda params: params["uri"] == "cell:2")
    assert shown["diagnostics"] == []
