"""Summaries: what linking asks of every file."""

from __future__ import annotations

import pytest

from one_file import facts_of

HEAD = "import logging\nimport os\nimport re\nfrom collections import namedtuple\n\nimport torch\nfrom nets import register\n\n"


@pytest.mark.parametrize(
    "text",
    [
        "@register('small')\nclass Net(torch.nn.Module):\n    pass\n",
        "class Net(make_base()):\n    size = compute()\n",
        "@torch.jit.script\ndef f(x=torch.zeros(3)):\n    return x.sum()\n",
        "try:\n    import apex\nexcept ImportError:\n    @register('own')\n    def norm(x):\n        return x.mean()\n",
        "log = logging.getLogger(__name__)\nlogging.getLogger('PIL').setLevel(logging.WARNING)\n",
        "ROOT = os.path.join(os.path.dirname(__file__), 'data')\nNAME = re.compile('[a-z]+')\nRow = namedtuple('Row', 'a b')\n",
        "NAMES = frozenset(['a', 'b'])\nHOME = os.environ.get('HOME', os.getenv('PWD'))\n",
        "if __name__ == '__main__':\n    pass\n",
    ],
)
def test_definitions_are_no_calls_of_the_module(text: str) -> None:
    assert not facts_of(HEAD + text).summary.calls_at_top_level


@pytest.mark.parametrize(
    "text",
    [
        "x = torch.rand(3)\n",
        "print(len([1]))\n",
        "os.system('python train.py')\n",
        "os.environ.setdefault('PYTHONHASHSEED', '0')\n",
        "for name in os.listdir('.'):\n    pass\n",
        "@register('small')\ndef main():\n    pass\n\n\nmain()\n",
        "net = register(logging.getLogger(__name__))\n",
        "if torch.cuda.is_available():\n    pass\n",
        "if __name__ == '__main__':\n    register('small')\n",
    ],
)
def test_other_calls_are(text: str) -> None:
    assert facts_of(HEAD + text).summary.calls_at_top_level
