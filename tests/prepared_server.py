"""Language servers that start at once: each is a fork of a process that has imported what a server imports.

The types of the protocol take a fresh process most of a second, and the tests start dozens of servers. Those of suppressions and those
with Neovim start the server as users do.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from multiprocessing.reduction import DupFd
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any, BinaryIO

from benchmarks.language_client import Client

CAN_FORK = "forkserver" in multiprocessing.get_all_start_methods()


def prepared_client(root: Path, settings: Any = None) -> Client:
    """An editor with a server that starts at once, or in a fresh process where there are no forks."""
    return Client(root, settings, ForkedServer(root) if CAN_FORK else None)


class ForkedServer:
    """A server in a fork, as far as a client uses its process (see ``subprocess.Popen``)."""

    def __init__(self, root: Path) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(
            ["torchrepro_lint.interfaces.cli.app", "torchrepro_lint.interfaces.lsp.handlers"]
        )
        its_input, given = os.pipe()
        read, its_output = os.pipe()
        self._process = context.Process(
            target=_serve, args=(str(root), DupFd(its_input), DupFd(its_output)), daemon=True
        )
        self._process.start()
        os.close(its_input)
        os.close(its_output)
        self.stdin: BinaryIO = os.fdopen(given, "wb")
        self.stdout: BinaryIO = os.fdopen(read, "rb")

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, once it has ended."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise TimeoutExpired("server", timeout or 0)
        return self._process.exitcode

    def kill(self) -> None:
        """End it."""
        self._process.kill()


def _serve(root: str, its_input: Any, its_output: Any) -> None:
    for number, pipe in enumerate((its_input, its_output)):
        opened = pipe.detach()
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115  multiprocessing has closed it
    os.chdir(root)
    sys.argv[:] = ["torchrepro-lint", "server", "--stdio"]
    from torchrepro_lint.__main__ import main

    main()
