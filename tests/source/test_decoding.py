"""Decoding: bytes to text and back."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchrepro_lint.source.decoding import Source, SourceProblem, decode, encode, with_edits
from torchrepro_lint.source.text import Edit, Span


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60), st.booleans())
def test_utf8_comes_back_byte_for_byte(text: str, marked: bool) -> None:
    data = (codecs.BOM_UTF8 if marked else b"") + text.encode()
    source = decode(data)
    if isinstance(source, Source):  # a text may happen to begin with a coding line
        assert encode(source, data) == data


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r", "\f\r\n", "\n\r"])
def test_newlines_and_a_missing_last_one_are_kept(newline: str) -> None:
    data = f"a = 1{newline}b = 2".encode()
    source = decode(data)
    assert isinstance(source, Source)
    assert source.text == f"a = 1{newline}b = 2"
    assert encode(source, data) == data


@pytest.mark.parametrize(
    ("declaration", "encoding"),
    [
        ("# -*- coding: latin-1 -*-\n", "latin-1"),
        ("#!/usr/bin/env python\n# vim: set fileencoding=cp1252 :\n", "cp1252"),
        ("# coding: shift_jis\n", "shift_jis"),
    ],
)
def test_a_coding_line_is_followed(declaration: str, encoding: str) -> None:
    letter = "é" if encoding != "shift_jis" else "テ"
    data = f"{declaration}x = '{letter}'\n".encode(encoding)
    source = decode(data)
    assert isinstance(source, Source)
    assert letter in source.text
    assert encode(source, data) == data


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    source = decode(codecs.BOM_UTF8 + b"x = 1\n")
    assert source == Source("x = 1\n", "utf-8", codecs.BOM_UTF8)


def test_bytes_that_do_not_decode_are_a_problem_at_their_place() -> None:
    problem = decode(b"x = 1\ny = '\xff'\n")
    assert isinstance(problem, SourceProblem)
    assert problem.offset == 11
    assert problem.message == "cannot be decoded as utf-8"
    assert problem.text.count("\n") == 2


@pytest.mark.parametrize("data", [b"# coding: no-such-thing\n", b"# coding: rot13\nk = 1\n"])
def test_an_encoding_that_is_none_is_a_problem(data: bytes) -> None:
    assert isinstance(decode(data), SourceProblem)


def test_a_letter_that_the_encoding_lacks_is_refused() -> None:
    source = decode(b"# coding: latin-1\n")
    assert isinstance(source, Source)
    with pytest.raises(UnicodeEncodeError):
        encode(with_edits(source, [Edit(Span(0, 0), "\u2192")]), b"")
