"""HTML documents with their style and script inline, and a content security policy that allows nothing else."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files


def document(title: str, style: str, script: str, body: str) -> str:
    """The document; ``title`` and ``body`` are HTML. It contains no workflow command for GitHub's log."""
    title, body = (each.replace("##[", "#&#35;[") for each in (title, body))
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}<script>{script}</script>
</body>
</html>
"""


def resource(name: str) -> str:
    """The text of a data file of this package."""
    return files(__package__ or "").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
