"""Bounded reads: the bytes of regular files up to a limit, without waiting."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from torchrepro_lint.source import files
from torchrepro_lint.source.files import FileSignature, TooLarge

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")


@pytest.mark.parametrize("data", [b"", b"\r\n\x1a\x00", bytes(200_000)])
def test_all_bytes_are_read_as_they_are(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    assert files.read_bounded(tmp_path / "a", len(data)) == data


def test_one_byte_too_many_is_told_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(bytes(1001))
    monkeypatch.setattr(os, "open", None)
    with pytest.raises(TooLarge) as caught:
        files.read_bounded(tmp_path / "a", 1000)
    assert caught.value.strerror == "more than 1,000 bytes"


@pytest.mark.parametrize("seen", [0, 1000])
def test_a_file_that_grows_is_read_no_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: int) -> None:
    (tmp_path / "a").write_bytes(bytes(300_000))
    monkeypatch.setattr(files, "file_signature", lambda _: FileSignature(seen, 0, 0, 0))
    with pytest.raises(TooLarge):
        files.read_bounded(tmp_path / "a", 299_999)
    assert len(files.read_bounded(tmp_path / "a", 300_000)) == 300_000


@posix
def test_what_is_no_regular_file_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(os, "open", None)
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(OSError, match=r"Is a directory|Not a regular file"):
            files.read_bounded(path, 1000)


@posix
def test_what_has_nothing_to_say_for_now_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the log of the kernel, which is a regular file; a pipe is taken for one here."""
    os.mkfifo(tmp_path / "pipe")
    writer = os.open(tmp_path / "pipe", os.O_RDWR)
    monkeypatch.setattr(stat, "S_ISREG", lambda _: True)
    try:
        with pytest.raises(BlockingIOError):
            files.read_program(tmp_path / "pipe")
    finally:
        os.close(writer)
