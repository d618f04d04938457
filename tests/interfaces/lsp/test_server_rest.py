"""The server collects garbage between edits and after many requests; Python itself does not while it serves."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("pygls", reason="the extra lsp is not installed")

from torchrepro_lint.interfaces.lsp.client import Client
from torchrepro_lint.interfaces.lsp.handlers import make_server
from torchrepro_lint.interfaces.lsp.workspace import Workspace


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One for each time."""
    found: list[None] = []
    monkeypatch.setattr(Workspace, "release", lambda _: found.append(None))
    monkeypatch.setattr(Client, "supports", lambda _, __: False)
    monkeypatch.setattr(Client, "resolves_edits", lambda _: False)
    monkeypatch.setattr(Client, "shows_markdown", lambda _: True)
    return found


async def _ask(count: int) -> None:
    server = make_server()
    server._configured.set()
    for _ in range(count):
        await server.answer(lambda _: None)
    await server._in_thread(lambda: None)  # what was begun before is done


@pytest.mark.parametrize(("questions", "times"), [(99, 0), (100, 1), (250, 2)])
def test_it_rests_after_many_questions(rests: list[None], questions: int, times: int) -> None:
    asyncio.run(_ask(questions))
    assert len(rests) == times
