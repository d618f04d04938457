"""Messages: texts that know the lines of files they name."""

from __future__ import annotations

import copy
import pickle

from torchrepro_lint.source.text import Message, Reference, with_paths

TOLD = Message("os.listdir decides `names` (", Reference("data/files.py", "12"), "), see ", Message(Reference("a.py")))


def test_as_a_string_its_paths_start_from_the_root() -> None:
    assert TOLD == "os.listdir decides `names` (data/files.py:12), see a.py"
    assert str(Message(Reference("train.ipynb", "cell 3:2"))) == "train.ipynb:cell 3:2"


def test_messages_within_a_message_become_its_parts() -> None:
    assert TOLD.parts == (
        "os.listdir decides `names` (",
        Reference("data/files.py", "12"),
        "), see ",
        Reference("a.py"),
    )
    assert Message("", Message()).parts == ()


def test_paths_are_shown_as_a_report_wants_them() -> None:
    assert with_paths(TOLD, "../{}".format) == "os.listdir decides `names` (../data/files.py:12), see ../a.py"
    assert with_paths("a.py:12 is no reference", "../{}".format) == "a.py:12 is no reference"


def test_a_message_crosses_processes() -> None:
    for other in (pickle.loads(pickle.dumps(TOLD)), copy.deepcopy(TOLD)):
        assert (other, other.parts) == (TOLD, TOLD.parts)
