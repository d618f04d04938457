"""Orders of sets, directories and results, and what hashes decide: TRL501 to TRL505.

In modules that import torch, but for what a script that prepares data writes into a file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from benchmarks.plants import Edit, Operator, Plant, Source, word

_TORCH = r"^(?:import|from) torch\b"
_FOLDERS = ("root", "folder", "directory", "data_dir", "data_path", "image_dir", "root_dir", "dir_path", "data_root")
_NAMES = ("names", "labels", "classes", "tokens", "words", "texts", "class_names", "keys", "columns", "files")
_TEXTS = ("name", "key", "split", "filename", "model_name", "word", "text", "label")


def bare(*functions: str) -> Callable[[Source], Iterator[Plant]]:
    """TRL503: a listing is no longer sorted, where what is made of it keeps its order."""

    def find(source: Source) -> Iterator[Plant]:
        for call in source.calls("sorted"):
            inner = call.args[0] if len(call.args) == 1 and not call.keywords else None
            if isinstance(inner, ast.Call) and word(inner.func) in functions and _matters(source, call):
                yield Plant((Edit(*source.span(call), source.segment(inner)),))

    return find


def unsorted(source: Source) -> Iterator[Plant]:
    """TRL503: a list of files is no longer sorted in place; reported where it is listed."""
    for call in source.calls("sort"):
        function = source.function(call)
        statement = source.statement(call)
        if function is None or not isinstance(statement, ast.Expr) or not isinstance(call.func, ast.Attribute):
            continue
        for each in ast.walk(function):
            match each:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=listing) as value) if word(
                    listing
                ) in ("listdir", "glob") and name == ast.unparse(call.func.value):
                    start, end = source.span(value)
                    yield Plant((Edit(start, end, source.segment(value)), Edit(*source.span(statement), "pass")))


def bare_set(source: Source) -> Iterator[Plant]:
    """TRL502: a set is no longer sorted, where what is made of it keeps its order."""
    for call in source.calls("sorted"):
        inner = call.args[0] if len(call.args) == 1 and not call.keywords else None
        if isinstance(inner, ast.Call) and word(inner.func) == "set" and inner.args and _matters(source, call):
            yield Plant((Edit(*source.span(call), f"list({source.segment(inner)})"),))


def displayed(source: Source) -> Iterator[Plant]:
    """TRL502: a loop that builds something goes along a set of strings instead of a list of them."""
    for loop in source.nodes:
        if isinstance(loop, ast.For) and isinstance(loop.iter, (ast.List, ast.Tuple)) and _builds(loop.body):
            items = loop.iter.elts
            if len(items) > 1 and all(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in items):
                yield Plant((Edit(*source.span(loop.iter), f"{{{', '.join(map(source.segment, items))}}}"),))


_MODULES = (
    "os",
    "glob",
    "collections",
    "pathlib",
    "concurrent.futures",
    "multiprocessing",
    "queue",
    "threading",
    "uuid",
    "json",
)


def inserted(
    parameters: tuple[str, ...], *lines: str, modules: tuple[str, ...] = (*_MODULES, "torch")
) -> Callable[[Source], Iterator[Plant]]:
    """Lines in a function that has such a parameter, of a module that imports torch."""

    def find(source: Source) -> Iterator[Plant]:
        imported = source.importing(*(f"{module} as planted_{module.rpartition('.')[2]}" for module in modules))
        for statement, name in source.places(*parameters):
            yield Plant((source.before(statement, [line.format(name) for line in lines]), imported))

    return find


def prepared(parameters: tuple[str, ...], *lines: str) -> Callable[[Source], Iterator[Plant]]:
    """The same in a module without torch."""
    find = inserted(parameters, *lines, modules=_MODULES)
    return lambda source: iter(()) if re.search(r"\btorch\b", source.text) else find(source)


def hash_seed(source: Source) -> Iterator[Plant]:
    """TRL501: the hash seed is set beside the others."""
    for call in source.calls("manual_seed"):
        statement = source.statement(call)
        if (
            isinstance(statement, ast.Expr)
            and statement.value is call
            and ast.unparse(call.func) == "torch.manual_seed"
        ):
            line = source.before(statement, ['planted_os.environ["PYTHONHASHSEED"] = "0"'])
            if not line.text.split("planted_os")[0].strip():
                yield Plant((line, source.importing("os as planted_os")))


def unordered(source: Source) -> Iterator[Plant]:
    """TRL505: results as they are finished instead of in order."""
    for call in source.calls("imap", "map"):
        if (
            isinstance(call.func, ast.Attribute)
            and "pool" in ast.unparse(call.func.value).lower()
            and _matters(source, call)
        ):
            start, end = source.span(call.func)
            yield Plant((Edit(start, end, f"{source.segment(call.func.value)}.imap_unordered"),), source.span(call))


def _matters(source: Source, call: ast.Call) -> bool:
    """Whether a list is taken apart by its place, is kept in one, or a loop along it builds something."""
    parent = source.parents[call]
    match parent:
        case ast.For(body=statements):
            return parent.iter is call and _builds(statements)
        case ast.Subscript() | ast.Return():
            return True
        case ast.comprehension():
            outer = source.parents[parent]
            return isinstance(outer, ast.ListComp) and isinstance(source.parents[outer], (ast.Assign, ast.Return))
        case ast.Call(func=ast.Name(id="enumerate" | "zip")):
            return True
    return False


def _builds(statements: list[ast.stmt]) -> bool:
    """Whether a body appends to what outlives a round, or gives one by one."""
    nodes = [node for statement in statements for node in ast.walk(statement)]
    fresh = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return any(
        isinstance(node, ast.Yield)
        or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "append"
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id not in fresh
        )
        for node in nodes
    )


def _writes(name: str, code: str, parameters: tuple[str, ...], *lines: str) -> Operator:
    return Operator(name, code, (rf"\b(?:{'|'.join(parameters)})\b",), prepared(parameters, *lines))


def _adds(name: str, code: str, parameters: tuple[str, ...], *lines: str) -> Operator:
    return Operator(name, code, (_TORCH, rf"\b(?:{'|'.join(parameters)})\b"), inserted(parameters, *lines))


OPERATORS = (
    Operator("sorted() around os.listdir is taken away", "TRL503", (_TORCH, r"listdir"), bare("listdir")),
    Operator("sorted() around a glob is taken away", "TRL503", (_TORCH, r"glob"), bare("glob", "rglob", "iterdir")),
    Operator(".sort() of a listing is taken away", "TRL503", (_TORCH, r"\.sort\("), unsorted),
    _adds(
        "the first of os.listdir is loaded",
        "TRL503",
        _FOLDERS,
        "planted = planted_os.listdir({})",
        "planted_torch.load(planted[0])",
    ),
    _adds(
        "entries are numbered",
        "TRL503",
        _FOLDERS,
        "planted = {{path.name: place for place, path in enumerate(planted_pathlib.Path({}).iterdir())}}",
        "planted_torch.save(planted, 'planted.pt')",
    ),
    _adds(
        "os.walk fills a list",
        "TRL503",
        _FOLDERS,
        "planted = []",
        "for folder, _, names in planted_os.walk({}):",
        "    planted.extend(planted_os.path.join(folder, name) for name in names)",
        "planted_torch.load(planted[-1])",
    ),
    _adds(
        "files are concatenated",
        "TRL503",
        _FOLDERS,
        "planted = planted_torch.cat([planted_torch.load(path) for path in planted_glob.glob(f'{{{}}}/*.pt')])",
        "planted_torch.save(planted, 'planted.pt')",
    ),
    Operator("sorted(set()) becomes list(set())", "TRL502", (_TORCH, r"sorted\(set"), bare_set),
    Operator("a loop goes along a set of strings", "TRL502", (_TORCH, r"for \w+ in [\[(][\"']"), displayed),
    _adds(
        "a set is numbered",
        "TRL502",
        _NAMES,
        "planted = {{name: place for place, name in enumerate(set({}))}}",
        "planted_torch.save(planted, 'planted.pt')",
    ),
    _adds(
        "a loop along a set appends",
        "TRL502",
        _NAMES,
        "planted = []",
        "for each in set({}):",
        "    planted.append(each)",
        "planted_torch.save(planted, 'planted.pt')",
    ),
    _adds(
        "a loop along a set trains",
        "TRL502",
        _NAMES,
        "planted = planted_torch.nn.Linear(2, 2)",
        "steps = planted_torch.optim.SGD(planted.parameters(), lr=0.1)",
        "for each in set({}):",
        "    loss = planted_torch.nn.functional.mse_loss(planted(planted_torch.ones(1, 2)), planted_torch.ones(1, 2) * len(each))",
        "    loss.backward()",
        "    steps.step()",
    ),
    _adds(
        "a loop along a set calls what trains",
        "TRL502",
        _NAMES,
        "planted = planted_torch.nn.Linear(2, 2)",
        "steps = planted_torch.optim.SGD(planted.parameters(), lr=0.1)",
        "def planted_step(text):",
        "    planted(planted_torch.ones(1, 2) * len(text)).sum().backward()",
        "    steps.step()",
        "for each in set({}):",
        "    planted_step(each)",
    ),
    _adds(
        "a loop along a set draws",
        "TRL502",
        _NAMES,
        "planted = {{}}",
        "for each in set({}):",
        "    planted[each] = planted_torch.randn(2)",
    ),
    _adds(
        "a comprehension along a set initialises",
        "TRL502",
        _NAMES,
        "planted = {{each: planted_torch.nn.Linear(2, 2) for each in set({})}}",
    ),
    _adds(
        "sets in a table are gone along",
        "TRL502",
        _NAMES,
        "groups = planted_collections.defaultdict(set)",
        "for each in {}:",
        "    groups[len(each)].add(each)",
        "planted = [one for _, members in groups.items() for one in members]",
        "planted_torch.save(planted, 'planted.pt')",
    ),
    _adds(
        "a set in an attribute is numbered",
        "TRL502",
        _NAMES,
        "class Planted:",
        "    def __init__(self, items):",
        "        self.items = set(items)",
        "    def numbers(self):",
        "        return {{item: place for place, item in enumerate(self.items)}}",
        "planted_torch.save(Planted({}).numbers(), 'planted.pt')",
    ),
    _adds(
        "pop takes an element out of a set",
        "TRL502",
        _NAMES,
        "planted = set({})",
        "planted_torch.save(planted.pop(), 'planted.pt')",
    ),
    _adds(
        "max breaks ties by a set's order",
        "TRL502",
        _NAMES,
        "planted = list({})",
        "planted_torch.save(max(set(planted), key=planted.count), 'planted.pt')",
    ),
    _adds(
        "a counter of sets says what is most common",
        "TRL502",
        _NAMES,
        "planted = planted_collections.Counter(set({}))",
        "planted_torch.save(planted.most_common(3), 'planted.pt')",
    ),
    _adds(
        "keys in common are gone along",
        "TRL502",
        _NAMES,
        "planted = dict.fromkeys({}, 0)",
        "planted_torch.save([each for each in planted.keys() & set({})], 'planted.pt')",
    ),
    _adds(
        "zip numbers a set",
        "TRL502",
        _NAMES,
        "planted = dict(zip(set({}), range(9)))",
        "planted_torch.save(planted, 'planted.pt')",
    ),
    _adds("hash() is a bucket", "TRL504", _TEXTS, "planted = [0] * 8", "planted[hash({}) % 8] += 1"),
    _adds(
        "hash() decides a split",
        "TRL504",
        _TEXTS,
        "planted = 'test' if hash({}) % 10 == 0 else 'train'",
        "print(planted)",
    ),
    Operator("the hash seed is set inside", "TRL501", (_TORCH, r"torch\.manual_seed"), hash_seed),
    Operator("a pool's map becomes imap_unordered", "TRL505", (_TORCH, r"\.i?map\("), unordered),
    _adds(
        "results are taken as completed",
        "TRL505",
        _NAMES,
        "with planted_futures.ThreadPoolExecutor() as pool:",
        "    jobs = [pool.submit(len, each) for each in {}]",
        "    planted = [job.result() for job in planted_futures.as_completed(jobs)]",
        "planted_torch.save(planted, 'planted.pt')",
    ),
    _adds(
        "a queue that several threads fill",
        "TRL505",
        _NAMES,
        "planted_arrived = planted_queue.Queue()",
        "def planted_work(each):",
        "    planted_arrived.put(len(each))",
        "for each in {}:",
        "    planted_threading.Thread(target=planted_work, args=(each,)).start()",
        "planted = [planted_arrived.get() for _ in {}]",
        "planted_torch.save(planted, 'planted.pt')",
    ),
    _adds(
        "the done set of wait",
        "TRL505",
        _NAMES,
        "with planted_futures.ThreadPoolExecutor() as pool:",
        "    planted_done, _ = planted_futures.wait([pool.submit(len, each) for each in {}])",
        "planted = [job.result() for job in planted_done]",
        "planted_torch.save(planted, 'planted.pt')",
    ),
    _adds(
        "threads append to a list",
        "TRL505",
        _NAMES,
        "planted = []",
        "def planted_work(each):",
        "    planted.append(len(each))",
        "with planted_futures.ThreadPoolExecutor() as pool:",
        "    list(pool.map(planted_work, {}))",
        "planted_torch.save(planted, 'planted.pt')",
    ),
    _adds(
        "a listing is sorted by time",
        "TRL503",
        _FOLDERS,
        "planted = sorted(planted_pathlib.Path({}).glob('*.png'), key=planted_os.path.getmtime)",
        "planted_torch.save([planted_torch.load(path) for path in planted], 'planted.pt')",
    ),
    _adds(
        "a listing is sorted by size",
        "TRL503",
        _FOLDERS,
        "planted = planted_glob.glob(f'{{{}}}/*.png')",
        "planted.sort(key=lambda path: planted_os.stat(path).st_size)",
        "planted_torch.save([planted_torch.load(path) for path in planted], 'planted.pt')",
    ),
    _adds(
        "files under new names are sorted",
        "TRL503",
        _FOLDERS,
        "planted_torch.save(1, planted_os.path.join({}, str(planted_uuid.uuid4())))",
        "planted = [planted_torch.load(path) for path in sorted(planted_os.listdir({}))]",
        "planted_torch.save(planted, 'planted.pt')",
    ),
    _adds(
        "names are sorted by hash",
        "TRL504",
        _NAMES,
        "planted = {{name: place for place, name in enumerate(sorted(map(str, {}), key=hash))}}",
        "planted_torch.save(planted, 'planted.pt')",
    ),
    _adds(
        "objects are sorted by address",
        "TRL504",
        _NAMES,
        "planted = list({})",
        "planted.sort(key=id)",
        "planted_torch.save(planted, 'planted.pt')",
    ),
    _writes(
        "a listing is written, without torch",
        "TRL503",
        (*_FOLDERS, "path"),
        "with open('planted.txt', 'w') as planted_file:",
        "    for planted in planted_os.listdir({}):",
        "        planted_file.write(planted)",
    ),
    _writes(
        "a vocabulary is written, without torch",
        "TRL502",
        (*_NAMES, "text"),
        "planted = {{word: place for place, word in enumerate(set(map(str, {})))}}",
        "planted_json.dump(planted, open('planted.json', 'w'))",
    ),
)
