"""Process isolation of tasks: each runs in a process of its own, with a deadline of processor time and a limit of memory.

A helper process has the analysis in memory and forks for each task, since importing it takes longer than a small repository
does. It watches its child: whatever that does, the helper answers. A helper ends with the process that started it, and its
child with it. Where processes are not forked a helper does one task itself, and is ended at the deadline by its owner.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import math
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from torchrepro_lint.engine.process_pool import FORKS, exit_cause
from torchrepro_lint.interfaces.survey.repositories import Repository
from torchrepro_lint.interfaces.survey.task import Result, Task, TaskLimits, analyse, blank_run, failed
from torchrepro_lint.source.errors import OUT_OF_MEMORY, escape_surrogates

_LENGTH = struct.Struct("<Q")
# The current directory, whose code is only read, must offer no modules.
_START = "import sys; sys.path[:] = filter(None, sys.path); from torchrepro_lint.interfaces.survey.isolation import serve; serve()"
# A task may take so many times its deadline on the clock: the deadline is one of processor time, however busy the machine is.
_PATIENCE = 3.0
# After that its helper has so many seconds to answer before it is ended, too.
_GRACE = 30.0
# A helper that is to end has so many seconds.
_LAST_WORDS = 5.0
# More bytes of rows are no result.
_MAX_RESULT = 1 << 29
# A result as bytes, and back.
packed: Callable[[Result], bytes] = msgspec.msgpack.encode
unpacked: Callable[[bytes], Result] = partial(msgspec.msgpack.decode, type=Result)
# A program that imports what an analysis needs: the helper runs it once, before its first fork.
_WARM_UP = """import numpy as np
import torch
from torch.utils.data import DataLoader

if __name__ == "__main__":
    torch.manual_seed(0)
    for batch in DataLoader([np.random.rand()], shuffle=True):
        torch.nn.Linear(1, 1)(batch).sum().backward()
    torch.save({}, "model.pt")
"""


class _Answer(NamedTuple):
    """The answer of a helper: the packed result of the child, or the reason and the words of a failure; and its usage."""

    result: bytes
    reason: str
    detail: str
    cpu_seconds: float
    peak_bytes: int


def isolated(task: Task) -> bytes:
    """The result of a task, packed for the way to another process; it never raises because of the repository."""
    started = time.monotonic()
    answer = _asked(task)
    result = failed(blank_run(task), answer.reason, answer.detail) if answer.reason else unpacked(answer.result)
    usage = {
        "wall_seconds": round(time.monotonic() - started, 3),
        "cpu_seconds": round(answer.cpu_seconds, 3),
        "peak_bytes": answer.peak_bytes,
    }
    return packed(Result({**result.run, **usage}, result.rows))


class _Helper:
    """A helper process, seen from its owner."""

    def __init__(self) -> None:
        self._scratch = tempfile.mkdtemp(prefix="torchrepro-survey-")
        self._late = False
        with open(os.path.join(self._scratch, "errors"), "wb") as errors:
            self._process = subprocess.Popen(  # noqa: S603  this Python
                [sys.executable, "-c", _START, self._scratch],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PYTHONSAFEPATH": "1"},
                start_new_session=True,
            )

    def ask(self, task: Task) -> _Answer:
        """The answer to a task; raises ``EOFError`` if the helper died before it gave one."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        timer = threading.Timer(_PATIENCE * task.limits.seconds + (_GRACE if FORKS else 0.0), self._end_late)
        timer.start()
        try:
            _write(self._process.stdin, msgspec.msgpack.encode(task._replace(repository=_as_text(task.repository))))
            return msgspec.msgpack.decode(_read(self._process.stdout), type=_Answer)
        except OSError as error:
            raise EOFError from error
        finally:
            timer.cancel()

    def why(self, task: Task) -> _Answer:
        """The failure of a helper that gave no answer; the helper is gone then."""
        status = self._process.wait() if self._late or self._process.poll() is not None else None
        errors = self._errors()
        self.end()
        if self._late:
            return _Answer(b"", "deadline", _too_late(task), 0.0, 0)
        return _Answer(b"", "crash", errors[-1] if errors else f"its process ended with status {status}", 0.0, 0)

    def _errors(self) -> list[str]:
        """What the process has complained of; nothing where somebody has tidied its files away."""
        try:
            return Path(self._scratch, "errors").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        except OSError:
            return []

    def end(self) -> None:
        """End the process and everything that it started, and remove its files."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # at which it ends its child, and itself
        try:
            self._process.wait(_LAST_WORDS if FORKS else 0.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _end_late(self) -> None:
        self._late = True
        self._process.kill()


class _Helpers:
    """The helpers of this process: those without a task, and all of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Helper] = []
        self._all: set[_Helper] = set()
        self._ended = False

    def open(self) -> None:
        """Let helpers be started again after ``end``."""
        self._ended = False

    def take(self) -> _Helper | None:
        """A helper without a task, which may be new; None after ``end``."""
        with self._lock:
            if self._ended:
                return None
            if self._idle:
                return self._idle.pop()
            helper = _Helper()
            self._all.add(helper)
            return helper

    def give_back(self, helper: _Helper) -> None:
        """Keep a helper for the next task."""
        with self._lock:
            self._idle.append(helper)

    def drop(self, helper: _Helper) -> None:
        """Forget a helper that is gone."""
        with self._lock:
            self._all.discard(helper)

    def end(self) -> None:
        """End all helpers, and the tasks that they have."""
        with self._lock:
            self._ended = True
            every, self._all, self._idle = self._all, set(), []
        for helper in every:
            helper.end()


_HELPERS = _Helpers()
open_helpers, end_helpers = _HELPERS.open, _HELPERS.end
atexit.register(end_helpers)


def _asked(task: Task) -> _Answer:
    """The answer of a helper to a task; one that dies between two tasks is replaced once."""
    for attempt in (1, 2):
        helper = _HELPERS.take()
        if helper is None:
            break
        try:
            answer = helper.ask(task)
        except (EOFError, msgspec.DecodeError):
            found = helper.why(task)
            _HELPERS.drop(helper)
            if attempt == 2 or found.reason == "deadline" or not FORKS:
                return found
        else:
            if FORKS:
                _HELPERS.give_back(helper)
            else:
                helper.end()
                _HELPERS.drop(helper)
            return answer
    return _Answer(b"", "crash", "the survey was ended", 0.0, 0)


def _too_late(task: Task) -> str:
    return f"it takes longer than {_PATIENCE * task.limits.seconds:g} seconds on the clock"


def _as_text(repository: Repository) -> Repository:
    """The repository with paths that can be packed: undecodable bytes are no valid Unicode."""
    return Repository(*(os.fsencode(each).hex() for each in repository))


def _from_text(repository: Repository) -> Repository:
    return Repository(*(os.fsdecode(bytes.fromhex(each)) for each in repository))


def serve() -> None:
    """Be a helper: answer tasks from standard input on standard output until that ends."""
    scratch = Path(sys.argv[1])
    channel = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    source = os.fdopen(os.dup(0), "rb", buffering=0)
    os.dup2(null, 0)
    gc.disable()
    if FORKS:
        _warm_up(scratch)
        gc.freeze()
    with contextlib.suppress(EOFError, BrokenPipeError):
        for number in count(1):
            packed_task = msgspec.msgpack.decode(_read(source), type=Task)
            task = packed_task._replace(repository=_from_text(packed_task.repository))
            place = scratch / str(number)
            place.mkdir(parents=True)
            if not FORKS:  # of the usage of this process itself only the time is known
                done = _Answer(packed(analyse(task, place)), "", "", time.process_time(), 0)
                _write(channel, msgspec.msgpack.encode(done))
                break
            answer = _in_child(task, place, source.fileno())
            shutil.rmtree(place, ignore_errors=True)
            _write(channel, msgspec.msgpack.encode(answer))
    shutil.rmtree(scratch, ignore_errors=True)


def _warm_up(scratch: Path) -> None:
    """Load what every analysis needs."""
    folder, place = scratch / "warm-up", scratch / "0"
    folder.mkdir()
    place.mkdir()
    (folder / "train.py").write_text(_WARM_UP, encoding="utf-8")
    here = os.getcwd()
    analyse(Task(Repository("", "folder", str(folder), "", ""), "", False, TaskLimits()), place)
    os.chdir(here)


def _in_child(task: Task, place: Path, source: int) -> _Answer:
    """The answer of a child, which is ended at the deadline, or when ``source``, where the owner writes, is closed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _run_child(task, place, writing)
    os.close(writing)
    pieces, reason, detail = _gathered(task, reading, source)
    os.close(reading)
    for end in (os.killpg, os.kill):  # the group is its own once the child has said so
        with contextlib.suppress(OSError):
            if reason or end is os.killpg:
                end(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    if reason == "owner":
        shutil.rmtree(place.parent, ignore_errors=True)
        os._exit(1)
    result = b"".join(pieces)
    peak = usage.ru_maxrss * 1024  # of Linux, in kilobytes
    if not reason and not result.endswith(_END):
        reason, detail = _exit_cause(status, task.limits)
        # Some libraries end the process where they get no memory.
        if reason == "crash" and peak > _NEARLY_ALL * task.limits.memory:
            reason, detail = "memory", f"{OUT_OF_MEMORY}: {detail}"
    return _Answer(b"" if reason else result.removesuffix(_END), reason, detail, usage.ru_utime + usage.ru_stime, peak)


# A process that ends with this share of its memory in use has most likely got no more. The limit counts addresses, of which
# some are never used.
_NEARLY_ALL = 0.7
# What ends a whole result: a child that is killed while it writes leaves a part.
_END = b"\xc1end"


def _gathered(task: Task, reading: int, source: int) -> tuple[list[bytes], str, str]:
    """What a child writes until it closes the pipe, or why it must be ended."""
    end = time.monotonic() + _PATIENCE * task.limits.seconds
    pieces: list[bytes] = []
    size = 0
    while True:
        ready, _, _ = select.select([reading, source], [], [], max(0.0, end - time.monotonic()))
        if reading in ready:
            piece = os.read(reading, 1 << 20)
            if not piece:
                return pieces, "", ""
            pieces.append(piece)
            size += len(piece)
            if size > _MAX_RESULT:
                return [], "too large", f"its rows have more than {_MAX_RESULT:,} bytes"
        elif source in ready:  # nothing is sent during a task, so that its owner is gone
            return [], "owner", ""
        elif time.monotonic() >= end:
            return [], "deadline", _too_late(task)


def _run_child(task: Task, place: Path, writing: int) -> None:
    """The child's part: limits, the analysis, and the result; it never returns."""
    try:
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)
        _limit(task.limits)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(packed(analyse(task, place)) + _END)
        os._exit(0)
    except MemoryError:
        os._exit(_NO_MEMORY)
    except BaseException as error:  # noqa: BLE001  whatever it is, the parent must not go on twice
        with contextlib.suppress(BaseException):
            sys.stderr.write(f"{type(error).__name__}: {escape_surrogates(str(error))}\n")
            sys.stderr.flush()
        os._exit(1)


_NO_MEMORY = 101
# PR_SET_PDEATHSIG of Linux: a signal for when the parent ends, in whatever way.
_END_WITH_PARENT = 1


def _limit(limits: TaskLimits) -> None:
    """Limit this process, and each that it starts: memory, processor time, the size of a file; no core dumps."""
    import resource

    seconds = math.ceil(limits.seconds)
    for kind, most in (
        (resource.RLIMIT_AS, limits.memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, limits.unpack.read_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (value, hard if kind == resource.RLIMIT_CPU else value))


def _exit_cause(status: int, limits: TaskLimits) -> tuple[str, str]:
    """The reason and the words for a child that ended without a result."""
    code = os.waitstatus_to_exitcode(status)
    if code == _NO_MEMORY:
        return "memory", OUT_OF_MEMORY
    if code in (-signal.SIGXCPU, -signal.SIGVTALRM):
        return "deadline", f"it takes longer than {limits.seconds:g} seconds"
    return "crash", exit_cause(code)


def _write(stream: IO[bytes], data: bytes) -> None:
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def _read(stream: IO[bytes]) -> bytes:
    """One message. Raises ``EOFError`` at the end of the stream."""
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    return _exactly(stream, length)


def _exactly(stream: IO[bytes], length: int) -> bytes:
    pieces = []
    while length:
        piece = stream.read(min(length, 1 << 20))
        if not piece:
            raise EOFError
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)
