"""The package index: the wheels of a torch release, from the index that pip is configured for."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import urljoin
from urllib.request import Request, urlopen

_JSON = "application/vnd.pypi.simple.v1+json"
_TIMEOUT = 60  # seconds


class Wheel(NamedTuple):
    """A wheel of the index; ``size`` is in bytes, 0 if the index does not give it."""

    version: str
    url: str
    size: int


def smallest_wheel(release: str) -> Wheel:
    """The smallest wheel of a release: ``2.13.0``, or the newest patch release of ``2.13``.

    Raises ``LookupError`` when the index has no wheel of it.
    """
    wheels = [wheel for wheel in _wheels() if _is_of(wheel.version, release)]
    if not wheels:
        raise LookupError(f"the package index has no wheel of torch {release}")
    newest = max(wheels, key=lambda wheel: _version_key(wheel.version)).version
    return min(wheel for wheel in wheels if wheel.version == newest and wheel.size == _smallest_size(wheels, newest))


def _smallest_size(wheels: list[Wheel], version: str) -> int:
    return min(wheel.size for wheel in wheels if wheel.version == version)


def _is_of(version: str, release: str) -> bool:
    return version == release or (release.count(".") == 1 and version.startswith(f"{release}."))


def _version_key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _wheels() -> list[Wheel]:
    request = Request(f"{_index()}/torch/", headers={"Accept": f"{_JSON}, text/html;q=0.1"})  # noqa: S310
    with urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310
        body = answer.read().decode()
        if _JSON in answer.headers.get("Content-Type", ""):
            links = [(file["url"], file.get("size", 0)) for file in json.loads(body)["files"]]
        else:
            links = [(link, 0) for link in _links(body)]
        return [wheel for link, size in links if (wheel := _wheel(urljoin(answer.url, link), size))]


def _wheel(url: str, size: int) -> Wheel | None:
    """The wheel of a link; final releases only."""
    match = re.search(r"/torch-(\d+\.\d+\.\d+)-[^/]*\.whl(?:#|$)", url)
    return Wheel(match[1], url.partition("#")[0], size) if match else None


def _links(page: str) -> list[str]:
    links: list[str] = []

    class _Anchors(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            links.extend(value for name, value in attrs if tag == "a" and name == "href" and value)

    _Anchors().feed(page)
    return links


def _index() -> str:
    """The URL of pip's index: from ``PIP_INDEX_URL``, pip's configuration, or pip's default."""
    url = os.environ.get("PIP_INDEX_URL", "")
    for key in ("global.index-url", "install.index-url"):
        url = (
            url
            or subprocess.run(  # noqa: S603
                [sys.executable, "-m", "pip", "config", "get", key], capture_output=True, text=True, check=False
            ).stdout.strip()
        )
    return (url or _built_in()).rstrip("/")


def _built_in() -> str:
    """The default index of pip, read from pip itself; empty without pip."""
    code = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    return found.stdout.strip()
