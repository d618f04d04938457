"""Requests of the language server to a client that does not respond."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("pygls", reason="the extra lsp is not installed")

from lsprotocol import types

from torchrepro_lint.interfaces.lsp.client import Client


class Silent:
    """A server whose editor can be asked for settings, and never answers."""

    def __init__(self, answer: Any = None) -> None:
        self.client_capabilities = types.ClientCapabilities(
            workspace=types.WorkspaceClientCapabilities(configuration=True)
        )
        self.answer = answer
        self.logged: list[str] = []

    def workspace_configuration_async(self, _params: Any) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self.answer is not None:
            future.set_result(self.answer)
        return future

    def window_log_message(self, params: types.LogMessageParams) -> None:
        self.logged.append(params.message)


def asked(server: Silent) -> list[Any] | None:
    async def ask() -> list[Any] | None:
        client = Client(server)
        client.attach_loop()
        found = await client.settings(["file:///folder"])
        await asyncio.sleep(0)
        return found

    return asyncio.run(ask())


def test_an_editor_that_does_not_answer_has_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchrepro_lint.interfaces.lsp.client._TIMEOUT", 0.0)
    server = Silent()
    assert asked(server) is None
    assert server.logged == ["torchrepro-lint: TimeoutError: "]


@pytest.mark.parametrize(("answer", "expected"), [([1, 2], [1, 2]), ([1], None), ("none", None)])
def test_an_answer_has_one_item_for_each_question(answer: Any, expected: list[int] | None) -> None:
    assert asked(Silent(answer)) == expected
