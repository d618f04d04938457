"""What flake8 says of fixed files that it did not say of them before."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

# An import below other code, one that is not used, a name that is defined again, one that is not defined.
_CODES = ("E402", "F401", "F811", "F821")
_ROW = re.compile(r"from line \d+")


def added(texts: Mapping[str, tuple[str, str]]) -> list[str]:
    """A line on each message about a file's text after a fix, beyond those about the text before; numbers of lines aside."""
    with tempfile.TemporaryDirectory() as scratch:
        for number, pair in enumerate(texts.values()):
            for at, text in zip(("before", "after"), pair, strict=True):
                file = Path(scratch, at, f"{number}.py")
                file.parent.mkdir(exist_ok=True)
                file.write_text(text, encoding="utf-8", newline="")
        before, after = (_messages(Path(scratch, at)) if texts else Counter() for at in ("before", "after"))
    names = [*texts]
    return [
        f"{names[number]}: flake8 says {code} {message}{f' ({count} times)' if count > 1 else ''}"
        for (number, code, message), count in (after - before).items()
        if code != "E402" or not names[number].endswith(".ipynb")  # there, each cell may begin with imports
    ]


def _messages(folder: Path) -> Counter[tuple[int, str, str]]:
    """The number of a file, the code and the message, as often as it is said."""
    command = [sys.executable, "-m", "flake8", "--isolated", "--exit-zero", "--jobs=1", f"--select={','.join(_CODES)}"]
    ran = subprocess.run(
        [*command, "--format=%(path)s:%(code)s:%(text)s", "."], cwd=folder, check=True, capture_output=True, text=True
    )
    found: Counter[tuple[int, str, str]] = Counter()
    for line in ran.stdout.splitlines():
        path, code, message = line.split(":", 2)
        found[int(Path(path).stem), code, _ROW.sub("from above", message)] += 1
    return found
