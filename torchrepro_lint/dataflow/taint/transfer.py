"""Taint kinds and sanitisers: which part of a value an arbitrary order decides, and what calls do to that order.

A call may sanitise (``sorted``, ``len``), keep, or consume the order of an argument. A running extreme is the same in any order, too.
"""

from __future__ import annotations

import re

from torchrepro_lint.resolve.names import Names
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import known_argument
from torchrepro_lint.syntax.nodes import Arg, Call, Collection, Comprehension, Expression, Operation, Record, Ref
from torchrepro_lint.syntax.qualified_names import PROGRESS_BARS, in_project
from torchrepro_lint.syntax.visitor import is_none, is_same_reference, last_identifier, subexpressions


class OrderTaint(Record, frozen=True):
    """The kind of taint: a value that has an arbitrary order, or depends on one.

    ``kind`` is ``set``, ``sequence`` (a list or an iterator), ``completion`` (a sequence where even a sum depends on the
    order), ``ranked`` (a sequence sorted by a key that ties or differs between machines, ``sort_key``: its first or last
    element is what the program means), ``fresh`` (names that are made anew in each run, which no sort puts in order), ``walk`` (of ``os.walk``: the first element is certain), ``mapping`` (a dict in arbitrary order), ``listed`` (one that has the entries of a listing as keys, where only going through it counts), ``scalar`` (a
    value picked by the order, or an index in it; of a joined text the content is what splitting it gives), ``plain`` (an ordered container), ``table`` (an ordered dict with tainted
    values: iterating it gives the keys). ``contents`` are the taints of its elements, by position, None for any.
    """

    kind: str
    contents: tuple[tuple[int | None, OrderTaint], ...] = ()

    @property
    def is_unordered(self) -> bool:
        """Whether its iteration order is arbitrary."""
        return self.kind in _UNORDERED

    @property
    def is_order_dependent(self) -> bool:
        """Whether the value, or one that it contains, depends on an observed order; a set may still be sorted."""
        return self.kind not in ("set", "plain", "table", "listed") or any(
            inner.is_order_dependent for _, inner in self.contents
        )

    @property
    def has_picked(self) -> bool:
        """Whether it is a value that an order picked, or an ordered container of such."""
        return self.kind == "scalar" or (self.kind == "plain" and any(inner.has_picked for _, inner in self.contents))

    def item(self, index: int | None) -> OrderTaint | None:
        """The taint of the element at a position; None as the position means any element."""
        found = [taint for at, taint in self.contents if at is None or index is None or at == index]
        return found[0] if found else None

    def element(self) -> OrderTaint | None:
        """The taint of the elements that iteration gives."""
        return None if self.kind == "table" else self.item(None)

    def sorted_items(self) -> OrderTaint | None:
        """The container after sorting: only its elements stay tainted."""
        return OrderTaint("plain", self.contents) if self.contents and self.kind != "table" else None

    def between(self, start: int, end: int | None) -> OrderTaint | None:
        """The list of its elements from one position to before another, None for the end; None if nothing of it is tainted."""
        if self.kind != "plain":
            return self.as_sequence()
        kept = [
            each for each in self.contents if each[0] is None or (start <= each[0] and (end is None or each[0] < end))
        ]
        return (
            OrderTaint("plain", tuple((at if at is None else at - start, each) for at, each in kept)) if kept else None
        )

    @property
    def is_keyed(self) -> bool:
        """Whether only the order of dictionaries is arbitrary, which keyword arguments do not depend on."""
        return self.kind in ("mapping", "listed", "table") and all(inner.is_keyed for _, inner in self.contents)

    def as_sequence(self) -> OrderTaint:
        """The list of its elements in iteration order."""
        if self.kind == "table":
            return OrderTaint("plain")
        return (
            self if self.kind in ("plain", "completion", "ranked", "fresh") else OrderTaint("sequence", self.contents)
        )


_UNORDERED = frozenset({"set", "sequence", "completion", "ranked", "fresh", "walk", "mapping", "listed"})

SET = OrderTaint("set")
LISTING = OrderTaint("sequence")
COMPLETION = OrderTaint("completion")
RANKED = OrderTaint("ranked")
FRESH = OrderTaint("fresh")
# What a sort leaves in an arbitrary order where its key ties or differs between machines, and these keys: see ``sort_key``.
RANKABLE = frozenset({"sequence", "completion", "ranked"})
TYING = frozenset({"clock", "size"})
MAPPING = OrderTaint("mapping")
LISTED = OrderTaint("listed")
SCALAR = OrderTaint("scalar")
JOINED = OrderTaint("scalar", ((None, LISTING),))
WALK = OrderTaint("walk", ((None, OrderTaint("plain", ((1, LISTING), (2, LISTING)))),))


def container_of(taint: OrderTaint, at: int | None = None) -> OrderTaint:
    """An ordered container with a tainted element, at a position or anywhere."""
    return OrderTaint("plain", ((at, taint),))


def mapping_to(taint: OrderTaint) -> OrderTaint:
    """An ordered dict with a tainted value under some key."""
    return OrderTaint("table", ((None, taint),))


def mapping_of_pairs(taint: OrderTaint) -> OrderTaint:
    """The dict that is made of pairs, each of which may contain a position: ``dict(zip(names, range(9)))``."""
    pair = taint.element()
    values = (
        [each for place in (1, 0) if (each := pair.item(place)) is not None] if pair and pair.kind == "plain" else []
    )
    inner = ((None, values[0]),) if values else ()
    if taint.is_unordered:
        return OrderTaint("listed" if taint.kind == "listed" else "mapping", inner)
    return OrderTaint("table", inner) if inner else taint


def nesting_depth(taint: OrderTaint) -> int:
    """How many containers are nested."""
    return 1 + max((nesting_depth(inner) for _, inner in taint.contents), default=0)


# Sanitisers: calls whose result does not depend on the order of their argument, or is not used as data.
_SANITISERS = lazy_pattern(
    r"builtins\.(len|set|frozenset|any|all|min|max|sorted|sum|bool|print|isinstance|issubclass|type|id|callable|hasattr|"
    r"hash|dir|vars|help|exit|quit|setattr|(\w+(Error|Exception|Warning|Interrupt|Exit|Iteration|Group)|Exception))|"
    r"(natsort|alphanumeric_sort)\.\w+|heapq\.(nsmallest|nlargest)|statistics\.(median\w*|mode)|"
    r"numpy\.(unique|sort|lexsort|isin|in1d|intersect1d|union1d|setdiff1d|min|max|amin|amax|any|all|size|shape|"
    r"broadcast_shapes|result_type|(gcd|lcm)\.reduce)|"
    r"torch\.(unique|isin|numel|broadcast_shapes|cuda\.\w+)|math\.(gcd|lcm|fsum)|"
    r"gc\.\w+|(setuptools|distutils\.core|skbuild|torch\.utils\.cpp_extension)\.\w+|"  # building a package is no training run
    r"os\.(remove|unlink|rmdir|removedirs|makedirs|mkdir|chmod|stat|kill|utime|rename|renames|replace|symlink|link|system|truncate|"
    r"access|path\.(exists|isfile|isdir|islink|getsize|getmtime|getctime|samefile|commonpath|commonprefix))|"
    r"shutil\.\w+|subprocess\.\w+|logging\.\w+(\(\)\.\w+)*|warnings\.\w+|sys\.(exit|stdout\.\w+|stderr\.\w+)|"
    r"sklearn\.preprocessing\.((Multi)?Label(Encoder|Binarizer)|O(rdinal|neHot)Encoder)\(\)\.fit|"  # sorts
    r"(concurrent\.futures|asyncio)\.(as_completed|wait)|"  # the order of their results is a source of its own
    r"huggingface_hub\.(\w+\.)*\w*Card\w*(\(\))?(\.\w+)*|"  # a page that only people read
    r"pprint\.\w+|traceback\.\w+|click\.(echo|secho)|rich\.print|atexit\.register|weakref\.WeakSet|"
    r"(tqdm(\.\w+)*\.(write|set_\w+))|IPython(\.\w+)+|filecmp\.\w+|contextlib\.suppress|typing\.\w+"
)
_SET_METHODS = frozenset(
    {"union", "intersection", "difference", "symmetric_difference", "issubset", "issuperset", "isdisjoint"}
    | {"intersection_update", "difference_update", "symmetric_difference_update"}
)
# Methods of any object that look up, report or remove something.
_SANITISING_METHODS = _SET_METHODS | frozenset(
    {"add", "discard", "remove", "get", "index", "count", "startswith", "endswith", "update", "pop", "setdefault"}
    | {"debug", "info", "warning", "warn", "error", "exception", "critical", "log", "print", "echo", "secho", "rule"}
    | {"set_description", "set_postfix", "set_description_str", "set_postfix_str", "isin", "drop", "has", "exists"}
    | {"unlink", "rmtree", "remove_file", "delete", "issorted", "fail", "skip", "subTest", "set_title"}
    | {"register_comm_hook"}
)
# Methods of pools: the results come in the order of the argument.
_MAPPING_WORDS = frozenset({"starmap", "imap", "map_async", "starmap_async", "starmap_unordered", "imap_unordered"})
REPORTING_WORDS = lazy_pattern(
    r"(assert|log|warn|print|report|display|show|check|verify|validate|remove|ignore|exclude|drop|delete|discard|clear|"
    r"upload|push_to)\w*|\w*_(warn|warning|info|debug|log|deprecation|error|print|exists|commit)|"
    r"\w*(Error|Exception|Warning)"
)
# Arguments of such names are only used for membership tests.
_MEMBERSHIP_NAMES = lazy_pattern(
    r"(leaf|autowrap|ignor|exclu|skip|no_split|allow|forbid|block|supported|keys_to_ignore|stop_?words|"
    r"target_modules|modules_to_save)\w*"  # of PEFT
)

# Methods that look up what becomes of a value, a label or a column of pandas, or of a parameter.
_LOOKING_UP = frozenset({"replace", "rename", "fillna", "astype", "load_state_dict"})

_COUNTED_METRICS = lazy_pattern(
    r"sklearn\.metrics\.((balanced_)?accuracy_score|classification_report|cohen_kappa_score|(multilabel_)?confusion_matrix|"
    r"(f1|fbeta|jaccard|precision|recall)_score|hamming_loss|matthews_corrcoef|precision_recall_fscore_support|zero_one_loss)"
)

# Distances between two sequences, which only ask whether elements are equal.
_EDIT_DISTANCES = lazy_pattern(
    r"Levenshtein\.(distance|ratio|hamming|editops|opcodes)|editdistance\.(eval|distance)|polyleven\.levenshtein|"
    r"rapidfuzz\.distance\.\w+\.\w+|(nltk|nltk\.metrics(\.distance)?)\.edit_distance|torchaudio\.functional\.edit_distance"
)

# Calls whose result is in the order of an argument.
_ORDER_KEEPING = lazy_pattern(
    r"builtins\.(list|tuple|iter|reversed|filter|map)|itertools\.(chain(\.from_iterable)?|islice|cycle|takewhile|"
    r"dropwhile|filterfalse|starmap|accumulate|compress|tee|pairwise|batched|groupby|product|permutations|combinations)|"
    rf"(\w+\.)+({'|'.join(sorted(PROGRESS_BARS))})|tqdm(\.\w+)*\.trange|"
    r"collections\.deque|more_itertools\.\w+|"
    r"numpy\.(array|asarray|asanyarray|fromiter|stack|concatenate|vstack|hstack|ravel|where|char\.\w+)|scipy\.stats\.rankdata|"
    r"torch\.(tensor|as_tensor|stack|cat|concat|concatenate|LongTensor|FloatTensor|Tensor|from_numpy)|"
    r"pandas\.(Series|DataFrame|Index|concat|unique)|os\.fspath|"
    r"(multiprocessing|torch\.multiprocessing)(\.\w+)*\(\)\.(map|imap|starmap|imap_unordered|map_async|starmap_async)|"
    r"accelerate\.utils\.(operations\.)?gather(_object)?|concurrent\.futures\.\w+\(\)\.map|joblib\.Parallel\(\)|torch\.nn\.(ModuleList|Sequential|ParameterList)|asyncio\.gather|fnmatch\.filter"
)
# Calls that make a tensor of numbers.
_TENSORS = lazy_pattern(
    r"torch\.(tensor|as_tensor|asarray|(cuda\.)?(Long|Int|Short|Byte|Bool|Half|Float|Double)?Tensor)"
)
# Calls that collate samples into a batch.
_COLLATING = lazy_pattern(r"torch\.utils\.data\.(dataloader\.|_utils\.collate\.)?default_(collate|convert)")
# Calls that return the same value; of a set, a set.
_SAME = frozenset(
    {"copy.copy", "copy.deepcopy", "typing.cast", "typing_extensions.cast", "builtins.frozenset", "builtins.set"}
)
_MAPPINGS = frozenset({"builtins.dict", "builtins.dict.fromkeys", "collections.OrderedDict", "types.MappingProxyType"})
_TEXTS = lazy_pattern(
    r"builtins\.(str|repr|format|ascii|int|float|abs|round|bytes|ord|chr|divmod|pow|hex)|os\.path\.\w+|pathlib\.\w+|"
    r"re\.\w+|json\.dumps|posixpath\.\w+|ntpath\.\w+|string\.\w+|"
    r"fnmatch\.\w+|textwrap\.\w+|shlex\.\w+|html\.\w+|urllib\.parse\.\w+|"
    r"(termcolor\.(termcolor\.)?|click\.(termui\.)?|colorful\.|humanize\.|tabulate\.|rich\.markup\.)\w+"
)
_DRAWS = lazy_pattern(
    r"random\.(Random\(\)\.)?(shuffle|sample|choices?)|"
    r"numpy\.random\.(\w+\(\)\.)?(shuffle|choice|permutation|permuted)|torch\.utils\.data\.(random_split|\w*Sampler)"
)
_LOADING = lazy_pattern(r"torch\.utils\.data\.\w+")

_OPEN_FILES = lazy_pattern(
    r"(builtins|io|gzip|bz2|lzma|codecs)\.(open|\w+File|TextIOWrapper)\(\)|pathlib\.\w+\(\)\.open\(\)"
)

# Databases: ``put`` stores under a key and appends nothing.
_DATABASES = ("lmdb.", "rocksdb.", "plyvel.", "leveldb.", "diskcache.")


def argument_effect(names: tuple[str, ...], word: str, written: bool) -> str:
    """What a call does to the order of an argument.

    ``free`` (a sanitiser), ``keep`` (the result is in that order), ``same``, ``sorted``, ``enumerate``, ``zip``, ``next``,
    ``mapping``, ``count`` and ``counted`` (of a counter, and into one), ``collate`` (a batch of the samples), ``text`` (a value made of all elements), ``draw``, ``load`` (into a
    dataset or loader), ``extend`` and ``append`` (to the receiver), ``project``, else ``unknown``. ``word`` is the last word
    of the callee's name; ``written`` says that the call has a receiver.
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
    if any(map(in_project, names)):
        return "project"
    if word == "put" and any(name.startswith(_DATABASES) for name in names):
        return "unknown"
    if written and word in _RECEIVER_EFFECTS:
        return _RECEIVER_EFFECTS[word]
    if written and word in _MAPPING_WORDS:
        return "keep"
    if (written and word in _SANITISING_METHODS) or REPORTING_WORDS.fullmatch(word):
        return "free"
    return "sorted" if re.fullmatch(r"\w*sort(ed)?(_\w+)?", word) else "unknown"


def file_printed_to(names: Names, path: str, call: Call) -> Expression | None:
    """The file that the program has opened and into which a call prints, ``print(line, file=out)``; None for other calls."""
    file = known_argument(call, None, "file")
    if file is None or names.names(path, call.func) != ("builtins.print",):
        return None
    found = names.names(path, file)
    return file if found and all(map(_OPEN_FILES.fullmatch, found)) else None


def makes_tensor(names: tuple[str, ...]) -> bool:
    """Whether a call makes a tensor of its argument: what was picked becomes data."""
    return any(map(_TENSORS.fullmatch, names))


def is_regex(names: tuple[str, ...], position: int) -> bool:
    """Whether an argument is a regular expression: alternatives may stand in any order."""
    return position == 0 and any(name.startswith("re.") and name != "re.escape" for name in names)


def looks_up(word: str, position: int) -> bool:
    """Whether a method of that name, as pandas or a module has it, looks values up in a dictionary that it gets: its order decides nothing."""
    return word in _LOOKING_UP or (word == "map" and position == 0)


def is_set_of_words(names: tuple[str, ...], word: str, position: int, keyword: str | None) -> bool:
    """Whether a call takes an argument for a set: characters to remove, the choices of an option, which a help text lists."""
    if word in ("add_argument", "add_option"):
        return keyword in ("choices", "help", "metavar")
    if word == "maketrans":
        return position == 2
    return (word in ("strip", "lstrip", "rstrip") and position == 0) or (word == "Choice" and "click.Choice" in names)


def is_counted(names: tuple[str, ...], position: int) -> bool:
    """Whether a metric gets one of two aligned lists and counts where they agree: their order decides nothing."""
    return position < 2 and bool(names) and all(map(_COUNTED_METRICS.fullmatch, names))


def is_edit_distance(names: tuple[str, ...]) -> bool:
    """Whether a call compares sequences element by element: whatever numbers stand for the elements, the result is the same."""
    return bool(names) and all(map(_EDIT_DISTANCES.fullmatch, names))


def is_membership_name(name: str | None) -> bool:
    """Whether an argument of this name is only used for membership tests."""
    return name is not None and _MEMBERSHIP_NAMES.fullmatch(name) is not None


def returns_set(word: str) -> bool:
    """Whether a method of a set returns a set."""
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
    **dict.fromkeys(("extend", "extendleft"), "extend"),
    **dict.fromkeys(("append", "appendleft", "insert", "put"), "append"),
    **dict.fromkeys(("join", "format"), "text"),
}
_PATTERNS = (
    (lazy_pattern(r"collections\.Counter"), "count"),
    (lazy_pattern(r"collections\.Counter\(\)\.update"), "counted"),
    (_SANITISERS, "free"),
    (_COLLATING, "collate"),
    (_DRAWS, "draw"),
    (_LOADING, "load"),
    (_ORDER_KEEPING, "keep"),
    (_TEXTS, "text"),
)


# The larger and the smaller of two values.
_EXTREMES = frozenset(
    {("builtins.max", ()), ("builtins.min", ())}
    | {("torch", (word,)) for word in ("max", "min", "maximum", "minimum", "fmax", "fmin")}
    | {("numpy", (word,)) for word in ("maximum", "minimum", "fmax", "fmin")}
)


def is_running_extreme(value: Expression, target: Ref) -> bool:
    """Whether a value is a running extreme, ``last = max(last, step)``: the same in any order."""
    match value:
        case Operation(op="if", operands=(test, *sides)) if _tests_none(test, target):
            # ``max(last, step) if last is not None else step``
            first = [each for each in sides if isinstance(each, Ref) and not _is_variable(each, target)]
            return any(
                is_running_extreme(each, target) and _mentions(each, *first) for each in sides if len(first) == 1
            )
        case Operation(op="if", operands=(Operation(op="<" | ">" | "<=" | ">=", operands=compared), *sides)):
            return any(_is_variable(each, target) for each in compared) and any(
                _is_variable(each, target) for each in sides
            )
        case Call(func=Ref(roots=(root,), path=path), args=args) if (root, path) in _EXTREMES and len(args) > 1:
            given = [arg.value for arg in args if arg.keyword is None and not arg.star]
            others = [each for each in given if not _is_variable(each, target)]
            return len(others) < len(given) == len(args) and all(
                roots_in(each).isdisjoint(target.roots) for each in others
            )
    return False


def _mentions(expression: Expression, ref: Ref) -> bool:
    return any(is_same_reference(each, ref) for each in subexpressions(expression))


def _tests_none(test: Expression, target: Ref) -> bool:
    """``last is None``, ``last is not None``."""
    match test:
        case Operation(op="is" | "is not", operands=(tested, other)):
            return is_none(other) and _is_variable(tested, target)
    return False


def _is_variable(expression: Expression, target: Ref) -> bool:
    return isinstance(expression, Ref) and expression.roots == target.roots and not expression.path


def keys_put(call: Call) -> list[Expression | None]:
    """The keys that a call puts into a dictionary: ``table.setdefault(key, 0)``, ``table.update({key: 0})``."""
    match call.args:
        case (Arg(value=key), *_) if last_identifier(call.func) == "setdefault":
            return [key]
        case (Arg(value=Collection(kind="dict", items=items)),):
            return [*items[::2]]
        case (Arg(value=Comprehension(kind="dict", elements=(key, *_))),):
            return [key]
    return []


def roots_in(expression: Expression) -> set[str]:
    """The roots of all references in an expression."""
    return {root for each in subexpressions(expression) if isinstance(each, Ref) for root in each.roots}
