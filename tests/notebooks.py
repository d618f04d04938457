"""Notebooks for tests."""

from __future__ import annotations

import json
from typing import Any

PYTHON = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def code(text: str, **more: Any) -> dict[str, Any]:
    """A code cell as Jupyter saves it."""
    lines = text.splitlines(keepends=True)
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": lines, **more}


def prose(text: str = "# Title") -> dict[str, Any]:
    """A cell of Markdown."""
    return {"cell_type": "markdown", "metadata": {}, "source": [text]}


def notebook(*cells: str | dict[str, Any], indent: int | None = 1, **metadata: Any) -> str:
    """A notebook of code cells (texts) and others, as Jupyter saves it."""
    full = [code(each) if isinstance(each, str) else each for each in cells]
    data = {"cells": full, "metadata": metadata or PYTHON, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(data, indent=indent, ensure_ascii=False) + "\n" * (indent is not None)
