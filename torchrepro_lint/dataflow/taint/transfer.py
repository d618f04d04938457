"""Taint kinds and sanitisers: which part of a value an arbitrary order decides, and what calls do to that order.

A call may sanitise (``sorted``, ``len``), keep, or consume the order of an argument. Methods that are called by a
computed name, ``getattr(self, f"get_{word}_names")()``, are matched by pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.source.globs import sequence_with_gaps, split_at_gaps
from torchrepro_lint.syntax.nodes import (
    Call,
    Constant,
    DefinitionStatement,
    Expression,
    Operation,
    Ref,
    Statement,
    SyntaxTree,
)
from torchrepro_lint.syntax.visitor import expressions, operands_of, statements

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.uses import DefUse


class OrderTaint(NamedTuple):
    """A value that holds an arbitrary order, or is decided by one.

    ``kind`` is ``set``, ``sequence`` (anything that is gone along: a list, an iterator), ``completion`` (the same, where
    even a sum depends on the order), ``walk`` (of ``os.walk``: the first element is certain), ``mapping`` (a dict in such an order), ``scalar`` (a value that such an order has picked, or
    a position in it), ``plain`` (a container that is in order itself), ``table`` (a dict that is, and whose values are known: who goes
    along it gets its keys). ``inner`` are the shapes of what it holds, by
    position, None for any.
    """

    kind: str
    contents: tuple[tuple[int | None, OrderTaint], ...] = ()

    @property
    def is_unordered(self) -> bool:
        """Whether going along it is in no certain order."""
        return self.kind in _UNORDERED

    @property
    def is_order_dependent(self) -> bool:
        """Whether an order was taken for it, there or in what it holds; who gets a set may still sort it."""
        return self.kind not in ("set", "plain", "table") or any(inner.is_order_dependent for _, inner in self.contents)

    def item(self, index: int | None) -> OrderTaint | None:
        """The shape of the element at a position; None as the position means any element."""
        found = [taint for at, taint in self.contents if at is None or index is None or at == index]
        return found[0] if found else None

    def element(self) -> OrderTaint | None:
        """The shape of any element that it gives to who goes along it."""
        return None if self.kind == "table" else self.item(None)

    def sorted_items(self) -> OrderTaint | None:
        """The same in a certain order."""
        return OrderTaint("plain", self.contents) if self.contents and self.kind != "table" else None

    def as_sequence(self) -> OrderTaint:
        """The list of its elements in the order in which it gives them."""
        if self.kind == "table":
            return OrderTaint("plain")
        return self if self.kind in ("plain", "completion") else OrderTaint("sequence", self.contents)


_UNORDERED = frozenset({"set", "sequence", "completion", "walk", "mapping"})

SET = OrderTaint("set")
LISTING = OrderTaint("sequence")
COMPLETION = OrderTaint("completion")
MAPPING = OrderTaint("mapping")
SCALAR = OrderTaint("scalar")
WALK = OrderTaint("walk", ((None, OrderTaint("plain", ((1, LISTING), (2, LISTING)))),))


def container_of(taint: OrderTaint, at: int | None = None) -> OrderTaint:
    """A container that holds a value of that shape, at a position or anywhere."""
    return OrderTaint("plain", ((at, taint),))


def mapping_to(taint: OrderTaint) -> OrderTaint:
    """A dict that holds a value of that shape under some key."""
    return OrderTaint("table", ((None, taint),))


def nesting_depth(taint: OrderTaint) -> int:
    """How many containers are around the innermost shape."""
    return 1 + max((nesting_depth(inner) for _, inner in taint.contents), default=0)


# Calls whose result does not depend on the order of their argument, or that nobody reads as data.
_SANITISERS = re.compile(
    r"builtins\.(len|set|frozenset|any|all|min|max|sorted|sum|bool|print|isinstance|issubclass|type|id|callable|hasattr|"
    r"hash|dir|vars|help|exit|quit|setattr|(\w+(Error|Exception|Warning|Interrupt|Exit|Iteration|Group)|Exception))|"
    r"(natsort|alphanumeric_sort)\.\w+|heapq\.(nsmallest|nlargest)|statistics\.(median\w*|mode)|"
    r"numpy\.(unique|sort|lexsort|isin|in1d|intersect1d|union1d|setdiff1d|min|max|amin|amax|any|all|size|shape)|"
    r"torch\.(unique|isin|numel|cuda\.\w+)|collections\.Counter|math\.(gcd|lcm)|"
    r"gc\.\w+|(setuptools|distutils\.core|skbuild|torch\.utils\.cpp_extension)\.\w+|"  # what builds a package is no run
    r"os\.(remove|unlink|rmdir|removedirs|makedirs|mkdir|chmod|stat|kill|utime|rename|renames|replace|symlink|link|system|truncate|"
    r"access|path\.(exists|isfile|isdir|islink|getsize|getmtime|getctime|samefile|commonpath|commonprefix))|"
    r"shutil\.\w+|subprocess\.\w+|logging\.\w+(\(\)\.\w+)*|warnings\.\w+|sys\.(exit|stdout\.\w+|stderr\.\w+)|"
    r"pprint\.\w+|traceback\.\w+|click\.(echo|secho)|rich\.print|atexit\.register|weakref\.WeakSet|"
    r"(tqdm(\.\w+)*\.(write|set_\w+))|IPython(\.\w+)+|filecmp\.\w+|contextlib\.suppress|typing\.\w+"
)
_SET_METHODS = frozenset(
    {"union", "intersection", "difference", "symmetric_difference", "issubset", "issuperset", "isdisjoint"}
    | {"intersection_update", "difference_update", "symmetric_difference_update"}
)
# Methods, of whatever object, that look something up, say something or take something away.
_SANITISING_METHODS = _SET_METHODS | frozenset(
    {"add", "discard", "remove", "get", "index", "count", "startswith", "endswith", "update", "pop", "setdefault"}
    | {"debug", "info", "warning", "warn", "error", "exception", "critical", "log", "print", "echo", "secho", "rule"}
    | {"set_description", "set_postfix", "set_description_str", "set_postfix_str", "isin", "drop", "has", "exists"}
    | {
        "unlink",
        "rmtree",
        "remove_file",
        "delete",
        "issorted",
        "fail",
        "skip",
        "subTest",
        "set_title",
        "register_comm_hook",
    }
)
# Methods of pools, whatever their class: the results come in the order of what they go along.
_MAPPING_WORDS = frozenset({"starmap", "imap", "map_async", "starmap_async", "starmap_unordered", "imap_unordered"})
_REPORTING_WORDS = re.compile(
    r"(assert|log|warn|print|report|display|show|check|verify|validate|remove|ignore|exclude|drop|delete|discard|clear|"
    r"upload|push_to)\w*|\w*_(warn|warning|info|debug|log|deprecation|error|print|exists|commit)|"
    r"\w*(Error|Exception|Warning)"
)
# What is given under such a name is only asked whether it holds something.
_MEMBERSHIP_NAMES = re.compile(
    r"(leaf|autowrap|ignor|exclu|skip|no_split|allow|forbid|block|supported|keys_to_ignore|stop_?words)\w*"
)

# Calls whose result goes along in the order of an argument.
_ORDER_KEEPING = re.compile(
    r"builtins\.(list|tuple|iter|reversed|filter|map)|itertools\.(chain(\.from_iterable)?|islice|cycle|takewhile|"
    r"dropwhile|filterfalse|starmap|accumulate|compress|tee|pairwise|batched|groupby|product|permutations|combinations)|"
    r"tqdm(\.\w+)*\.(tqdm|trange|tqdm_notebook)|tqdm\.(tqdm|auto)|rich\.progress\.track|alive_progress\.alive_it|"
    r"collections\.deque|more_itertools\.\w+|"
    r"numpy\.(array|asarray|asanyarray|fromiter|stack|concatenate|vstack|hstack|ravel|char\.\w+)|"
    r"torch\.(tensor|as_tensor|stack|cat|concat|concatenate|LongTensor|FloatTensor|Tensor|from_numpy)|"
    r"pandas\.(Series|DataFrame|Index|concat|unique)|os\.fspath|"
    r"(multiprocessing|torch\.multiprocessing)(\.\w+)*\(\)\.(map|imap|starmap|imap_unordered|map_async|starmap_async)|"
    r"concurrent\.futures\.\w+\(\)\.map|joblib\.Parallel\(\)|torch\.nn\.(ModuleList|Sequential|ParameterList)|asyncio\.gather"
)
# A batch of samples: what each of them holds, from all.
_COLLATING = re.compile(r"torch\.utils\.data\.(dataloader\.|_utils\.collate\.)?default_(collate|convert)")
# The same value again, a set a set.
_SAME = frozenset(
    {"copy.copy", "copy.deepcopy", "typing.cast", "typing_extensions.cast", "builtins.frozenset", "builtins.set"}
)
_MAPPINGS = frozenset({"builtins.dict", "builtins.dict.fromkeys", "collections.OrderedDict", "types.MappingProxyType"})
_TEXTS = re.compile(
    r"builtins\.(str|repr|format|ascii|int|float|abs|round|bytes|ord|divmod|pow|hex)|os\.path\.\w+|pathlib\.\w+|"
    r"re\.\w+|json\.dumps|posixpath\.\w+|ntpath\.\w+|string\.\w+|"
    r"fnmatch\.\w+|textwrap\.\w+"
)
_DRAWS = re.compile(
    r"random\.(Random\(\)\.)?(shuffle|sample|choices?)|"
    r"numpy\.random\.(\w+\(\)\.)?(shuffle|choice|permutation|permuted)|torch\.utils\.data\.\w+"
)

# Databases, in which what is put goes under a key, and into no row.
_DATABASES = ("lmdb.", "rocksdb.", "plyvel.", "leveldb.", "diskcache.")


def argument_effect(names: tuple[str, ...], word: str, written: bool) -> str:
    """What a call of these names does to an argument's order.

    ``free`` (nothing depends on it), ``keep`` (the result is in that order), ``same``, ``enumerate``, ``zip``, ``next``,
    ``mapping``, ``collate`` (a batch of what it holds), ``text`` (a value made of all of it), ``draw``,
    ``extend`` and ``append`` (to the receiver), ``project``, else ``unknown``. ``word`` is the last word of what is called; ``written`` says that the call has a receiver.
    """
    for name in names:
        if name.startswith("builtins.") and name in _BUILTINS:
            return _BUILTINS[name]
        if name in _SAME:
            return "same"
        if name in _MAPPINGS:
            return "mapping"
        for pattern, what in _PATTERNS:
            if pattern.fullmatch(name):
                return what
    if any(":" in name for name in names):
        return "project"
    if word == "put" and any(name.startswith(_DATABASES) for name in names):
        return "unknown"
    if written and word in ("extend", "append", "appendleft", "extendleft", "insert", "join", "put", "format"):
        return _RECEIVER_EFFECTS[word]
    if written and word in _MAPPING_WORDS:
        return "keep"
    if (written and word in _SANITISING_METHODS) or _REPORTING_WORDS.fullmatch(word):
        return "free"
    return "sorted" if re.fullmatch(r"\w*sort(ed)?(_\w+)?", word) else "unknown"


def is_regex(names: tuple[str, ...], position: int) -> bool:
    """Whether an argument is a regular expression: a class of characters, or alternatives, in whatever order."""
    return position == 0 and any(name.startswith("re.") and name != "re.escape" for name in names)


def is_membership_name(name: str | None) -> bool:
    """Whether a keyword, by its name, takes something that is only asked whether it holds a thing."""
    return name is not None and _MEMBERSHIP_NAMES.fullmatch(name) is not None


def returns_set(word: str) -> bool:
    """Whether a method of a set gives another set."""
    return word in ("union", "intersection", "difference", "symmetric_difference", "copy")


_BUILTINS = {
    "builtins.enumerate": "enumerate",
    "builtins.zip": "zip",
    "builtins.next": "next",
    "builtins.sorted": "sorted",
    "builtins.set": "free",
    "builtins.frozenset": "free",
}
_RECEIVER_EFFECTS = {
    "extend": "extend",
    "extendleft": "extend",
    "append": "append",
    "appendleft": "append",
    "insert": "append",
    "put": "append",
    "join": "text",
    "format": "text",
}
_PATTERNS = (
    (_SANITISERS, "free"),
    (_COLLATING, "collate"),
    (_DRAWS, "draw"),
    (_ORDER_KEEPING, "keep"),
    (_TEXTS, "text"),
)


# So many letters of a name must be given, or it might be any.
_LEAST_LETTERS = 4


class DynamicCalls:
    """Answers for all files that call what ``getattr`` gives."""

    def __init__(self, uses: DefUse, files: tuple[str, ...]) -> None:
        self._uses, self._files = uses, files

    def calls(self, word: str) -> list[tuple[str, Call]]:
        """The calls of what ``getattr`` finds under a name that may be this one, each with its file."""
        return [(path, call) for pattern, path, call in self._patterns if pattern.fullmatch(word)]

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], str, Call]]:
        found = []
        for path in self._files:
            # What is called has no word of its own: it is the result of another call.
            if {"getattr", ""} <= set(self._uses.summary(path).calls):
                for call in _called_results(self._uses.facts(path)):
                    pattern = _pattern(call.func)
                    if pattern is not None:
                        found.append((pattern, path, call))
        return found


def _called_results(facts: SyntaxTree) -> Iterator[Call]:
    """The calls of what another call returns, in the bodies that may call what ``getattr`` does."""
    results = set(facts.calling(""))
    for number in facts.calling("getattr"):
        if number is None:
            bodies = (facts.body, *(each.body for each in facts.functions))
        elif number in results:
            bodies = (facts.functions[number - 1].body if number else facts.body,)
        else:
            continue
        for body in bodies:
            yield from _in_order(_evaluated(body))


def _evaluated(body: tuple[Statement, ...]) -> Iterator[Expression]:
    """What the statements of a body evaluate, those of classes in it, too."""
    for statement in statements(body):
        yield from expressions(statement)
        if isinstance(statement, DefinitionStatement):
            yield from _evaluated(statement.body)


def _in_order(some: Iterable[Expression]) -> Iterator[Call]:
    """The calls of calls in expressions, outer ones first."""
    for expression in some:
        left = [expression]
        while left:
            each = left.pop()
            if type(each) is Call and type(each.func) is Call:
                yield each
            left += reversed(operands_of(each))


def _pattern(call: Expression) -> re.Pattern[str] | None:
    match call:
        case Call(func=Ref(roots=("builtins.getattr",), path=()), args=(_, name, *_)):
            texts = _texts(name.value)
            if sum(map(len, texts)) >= _LEAST_LETTERS:
                pieces = ["".join(map(re.escape, piece)) for piece in split_at_gaps(texts, "")]
                return re.compile(sequence_with_gaps(pieces, r"\w*", count()))
    return None


def _texts(name: Expression) -> list[str]:
    """The parts of a text, empty for what is not known; nothing where all of it is known, or none."""
    if isinstance(name, Operation) and name.op in ("f", "+"):
        return [
            each.value if isinstance(each, Constant) and isinstance(each.value, str) else "" for each in name.operands
        ]
    return []
