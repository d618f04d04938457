"""The parser of the list of operations in the docstring of ``torch.use_deterministic_algorithms``."""

from __future__ import annotations

import ast
import inspect
import re
from typing import NamedTuple

from tools.catalogue.grammar import DocumentedOperation, Test, UnknownLineError, parse_item

FUNCTIONS = ("use_deterministic_algorithms", "set_deterministic")
_WORKSPACES: Test = {"of": "program.CUBLAS_WORKSPACE_CONFIG", "none_of": [":4096:8", ":16:8"]}


class _Section(NamedTuple):
    """A section of the list: the end of its heading, and what that says of the items below."""

    heading: re.Pattern[str]
    behaviour: str
    device: str = ""
    when: tuple[Test, ...] = ()


_SECTIONS = (
    _Section(re.compile(r"operations will act deterministically when `+(?:d|mode)=True`+:$"), "deterministic"),
    _Section(re.compile(r"operations will throw a :class:`RuntimeError` when `+(?:d|mode)=True`+:$"), "raises"),
    _Section(
        re.compile(r"RuntimeError` will be raised from these operations when called with CUDA tensors:$"),
        "raises",
        "cuda",
        (_WORKSPACES,),
    ),
)
_TOP = re.compile(r"\s+\* ")
_NESTED = re.compile(r"\s+- ")


def docstring(source: str) -> str:
    """The docstring of the documented function in the text of ``torch/__init__.py``, without its indentation.

    Raises ``UnknownLineError`` when neither the function nor its predecessor of 1.7 has one.
    """
    functions = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    for name in FUNCTIONS:
        if name in functions and (text := ast.get_docstring(functions[name])):
            return text
    raise UnknownLineError(f"torch/__init__.py has no documented function {' or '.join(FUNCTIONS)}")


def parse_list(text: str) -> list[DocumentedOperation]:
    """All operations of a docstring, in its order. Raises ``UnknownLineError`` with a line that is not understood."""
    found: list[DocumentedOperation] = []
    seen: set[str] = set()
    section: _Section | None = None
    for paragraph in _paragraphs(inspect.cleandoc(text)):
        if not paragraph.startswith("* "):
            section = _section(paragraph)
            seen |= {section.behaviour} if section else set()
        elif section is None:
            raise UnknownLineError(f"an item outside the known lists: {paragraph!r}")
        else:
            found += parse_item(paragraph[2:], section.behaviour, section.device, section.when)
    if missing := {"deterministic", "raises"} - seen:
        raise UnknownLineError(f"the list of operations that are {' or '.join(sorted(missing))} is missing")
    return found


def _section(paragraph: str) -> _Section | None:
    for section in _SECTIONS:
        if section.heading.search(paragraph):
            return section
    if re.search(r"operations.*:$", paragraph):
        raise UnknownLineError(f"a list under an unknown heading: {paragraph!r}")
    return None


def _paragraphs(text: str) -> list[str]:
    """Paragraphs and list items, each joined to one line; nested items belong to the item above them."""
    found: list[str] = []
    blank = True
    for line in text.splitlines():
        words = " ".join(line.split())
        item = bool(_TOP.match(line))
        nested = bool(_NESTED.match(line)) and bool(found) and found[-1].startswith("* ")
        ends_list = bool(found) and found[-1].startswith("* ") and not line[:1].isspace()
        if words and (item or (blank and not nested) or ends_list):
            found.append(words)
        elif words:
            found[-1] += f" {words}"
        blank = not words
    return found
