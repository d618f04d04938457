"""What is taken for the project of an open file where nothing marks one."""

from __future__ import annotations

import os
import tempfile

from torchrepro_lint.config.roots import Unmarked, unmarked


def surroundings(path: str, folder: str) -> Unmarked:
    """What lies around a file, or in the open folder (empty: none) that it is in.

    A script that is opened in someone's home is no reason to read all that is below: there it stands alone.
    """
    found = unmarked([folder or path])
    return found._replace(top=path) if _is_shared(found.top) else found


def _is_shared(directory: str) -> bool:
    """Whether a directory is someone's home, lies above it, or is that of temporary files."""
    home = os.path.realpath(os.path.expanduser("~"))
    place = os.path.realpath(directory)
    return os.path.join(home, "").startswith(os.path.join(place, "")) or place == os.path.realpath(
        tempfile.gettempdir()
    )
