"""Damaged files: bytes, lines, letters, encodings and newlines that nobody meant."""

from __future__ import annotations

import codecs
import re
from random import Random

from .corpus import Corpus

_CONTROLS = "\x00\x01\x07\x08\x0b\x0c\x0c\x0c\x1a\x1b\x1c\x1f\x7f\x85\xa0\xad\u200b\u200e\u2028\u2029\u202e\ufeff\ufffe"
_NEWLINES = ("\n", "\r\n", "\r", "\n\r", "\x0c\n", "\\\n", "\\\r\n", "\x0b", "\x85", "\u2028", "\x1e")
_ENCODINGS = [
    "utf-8",
    "utf8",
    "utf-8-sig",
    "latin-1",
    "ascii",
    "cp1252",
    "cp037",
    "koi8-r",
    "shift_jis",
    "euc_jp",
    "iso2022_jp",
    "gb18030",
    "big5hkscs",
    "utf-7",
    "utf-16",
    "utf-16-le",
    "utf-32",
    "utf_8_sig",
    "mbcs",
    "idna",
    "punycode",
    "rot13",
    "hex",
    "base64",
    "zlib",
    "bz2",
    "uu",
    "quopri",
    "unicode_escape",
    "raw_unicode_escape",
    "undefined",
    "palmos",
    "hz",
    "johab",
    "mac-roman",
    "tis-620",
    "cp65001",
    "none",
    "../../etc/passwd",
    "ä",
    "utf-8-unix",
    "latin-1-dos",
    "8",
]
_BOMS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF8 * 2)
_COOKIES = (
    "# -*- coding: {} -*-",
    "# vim: set fileencoding={} :",
    "#coding={}",
    "#!/usr/bin/python\n# coding: {}",
    "\x0c#coding:{}",
)
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_STRING = re.compile(r"(['\"])([^'\"\\\n{}]*)\1")
_TOKEN = re.compile(r"\w+|[^\w\s]|\s+")


def flipped(chance: Random, corpus: Corpus) -> bytes:
    """Bytes that are others."""
    data = bytearray(corpus.program(chance).encode() or b"x")
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        at = chance.randrange(len(data))
        data[at] = chance.choice(
            (data[at] ^ 1 << chance.randrange(8), chance.randrange(256), ord(chance.choice("()[]{}'\"\\:#=,\n\t")))
        )
    return bytes(data)


def truncated(chance: Random, corpus: Corpus) -> bytes:
    """The end, the beginning or the middle is missing."""
    data = corpus.program(chance).encode()
    start, end = sorted(chance.randint(0, len(data)) for _ in range(2))
    return chance.choice((data[:start], data[start:], data[:start] + data[end:], data[start:end]))


def recombined(chance: Random, corpus: Corpus) -> bytes:
    """Lines of two programs in one."""
    one, other = (corpus.program(chance).splitlines(keepends=True) for _ in range(2))
    for _ in range(chance.choice((1, 1, 2, 8))):
        at, start = chance.randint(0, len(one)), chance.randint(0, len(other))
        one[at : at + chance.choice((0, 0, 1, 3))] = other[start : start + chance.choice((1, 2, 5, 30))]
    return "".join(one).encode()


def retokened(chance: Random, corpus: Corpus) -> bytes:
    """Words and signs taken from elsewhere in a program, or from another."""
    one, other = (_TOKEN.findall(corpus.program(chance)) or ["x"] for _ in range(2))
    for _ in range(chance.choice((1, 1, 2, 3, 8))):
        at = chance.randrange(len(one))
        one[at : at + chance.choice((0, 1, 1, 1, 2))] = [chance.choice(chance.choice((one, other)))]
    return "".join(one).encode()


def controls(chance: Random, corpus: Corpus) -> bytes:
    """NUL, form feeds and what else does not show."""
    text = corpus.program(chance)
    for _ in range(chance.choice((1, 1, 2, 6))):
        at = chance.randint(0, len(text))
        text = text[:at] + chance.choice(_CONTROLS) * chance.choice((1, 1, 1, 3)) + text[at:]
    return text.encode()


def encoded(chance: Random, corpus: Corpus) -> bytes:
    """A coding line or a byte order mark, true or not."""
    name = chance.choice(_ENCODINGS)
    text = (
        chance.choice(_COOKIES).format(name)
        + chance.choice(("\n", "\r\n", "\r"))
        + _strange(chance, corpus.program(chance), 1)
    )
    try:
        data = text.encode(name) if chance.random() < 0.5 else text.encode()
    except (LookupError, ValueError, TypeError):
        data = text.encode("utf-8", "replace")
    return chance.choice((b"", b"", b"", *_BOMS)) + data if isinstance(data, bytes) else b""


def newlines(chance: Random, corpus: Corpus) -> bytes:
    """Lines that end in several ways, and a last one that may not end."""
    kinds = chance.sample(_NEWLINES, chance.choice((1, 2, 2, 3))) + ["\n"] * chance.choice((0, 2, 9))
    pieces = corpus.program(chance).split("\n")
    return "".join(each + chance.choice(kinds) for each in pieces[:-1]).encode() + pieces[-1].encode()


def letters(chance: Random, corpus: Corpus) -> bytes:
    """Names and strings from all of Unicode."""
    return _strange(chance, corpus.program(chance), chance.choice((1, 3, 10))).encode("utf-8", "replace")


def _strange(chance: Random, text: str, count: int) -> str:
    for _ in range(count):
        words = sorted(set(_WORD.findall(text)))
        if words:
            text = re.sub(rf"\b{chance.choice(words)}\b", _name(chance), text)
        text = _STRING.sub(
            lambda found: found[0] if chance.random() < 0.8 else f"{found[1]}{found[2]}{_letters(chance)}{found[1]}",
            text,
        )
    return text


def _name(chance: Random) -> str:
    for _ in range(50):
        name = chance.choice(("", "a", "_")) + "".join(_letter(chance) for _ in range(chance.randint(1, 3)))
        if name.isidentifier():
            return name
    return "\ufb01\u212b\u17ff"[: chance.randint(1, 3)]  # letters that Python writes otherwise


def _letters(chance: Random) -> str:
    return (
        "".join(_letter(chance) for _ in range(chance.randint(1, 4)))
        .replace("\\", "")
        .replace("'", "")
        .replace('"', "")
    )


def _letter(chance: Random) -> str:
    top = chance.choice((0x80, 0x250, 0x3000, 0xD7FF, 0x10FFFF))
    code = chance.randrange(0x20, top)
    return "\U00020000" if 0xD800 <= code <= 0xDFFF else chr(code)
