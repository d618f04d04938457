"""Mutations of data loading: loaders without generators, repeating workers, unstable orders."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mutating import (
    ENTRY,
    SETTINGS,
    Files,
    Mutant,
    calls,
    changed,
    importing,
    put,
    row_of,
    sources,
    with_row,
    without_rows,
)


def drop_generator(files: Files) -> Iterator[Mutant]:
    """TRL301 to TRL303: a loader or a split without its generator, or without what renews the dataset's own."""
    for path, text in sources(files):
        for call in calls(text, "DataLoader", "random_split"):
            given = [keyword.arg for keyword in call.keywords]
            code = (
                "TRL303" if ast.unparse(call.func) == "random_split" else "TRL302" if "shuffle" in given else "TRL301"
            )
            for word in ("generator", "worker_init_fn"):
                if word in given and (word == "generator") == ("worker_init_fn" not in given):
                    fewer = changed(files, path, put(text, call, _without(call, word)))
                    yield Mutant(f"no {word}", fewer, code, path, call.lineno)
                    if code == "TRL302" and "num_workers" in given:
                        yield Mutant(f"no {word} for workers", fewer, "TRL301", path, call.lineno)


def draw_a_sampler(files: Files) -> Iterator[Mutant]:
    """TRL303: a sampler in the place of shuffle, without a generator."""
    for path, text in sources(files):
        for call in calls(text, "DataLoader"):
            if "shuffle" in [keyword.arg for keyword in call.keywords]:
                for name in ("RandomSampler", "SubsetRandomSampler"):
                    bare = _without(call, "shuffle")
                    sampled = bare[:-1] + f", sampler=torch.utils.data.{name}({ast.unparse(call.args[0])}))"
                    yield Mutant(name, changed(files, path, put(text, call, sampled)), "TRL303", path, call.lineno)


def break_workers(files: Files) -> Iterator[Mutant]:
    """TRL301 before torch 1.9, TRL304, TRL305, TRL306, TRL307."""
    for path, text in sources(files):
        for call in calls(text, "DataLoader"):
            given = [keyword.arg for keyword in call.keywords]
            if "num_workers" in given:
                wrong = ast.unparse(call)[:-1] + ", in_order=False)"
                yield Mutant(
                    "in_order=False", changed(files, path, put(text, call, wrong)), "TRL305", path, call.lineno
                )
                many = put(text, call, ast.unparse(call).replace("num_workers=2", "num_workers=os.cpu_count()"))
                row = call.lineno + ("import os\n" not in text)
                counted = changed(files, path, importing(many, "os"))
                yield Mutant("os.cpu_count()", counted, "TRL306", path, row, "TRL306")
        drawn = text.replace("random.uniform(0, 0.1)", "np.random.uniform(0, 0.1)")
        if drawn != text and "__getitem__" in text:
            old = changed({**files, SETTINGS: files[SETTINGS].replace("2.9", "1.8")}, path, drawn)
            yield Mutant("NumPy in torch 1.8", old, "TRL304", path, row_of(drawn, "np.random.uniform"))
        row = row_of(text, "get_worker_info().dataset.rng = ")
        for new in ("np.random.seed(0)", "np.random.seed()", "torch.manual_seed(1)") if row else ():
            same = with_row(without_rows(text, row, row), row, "").replace(
                "\n\n\ndef main", f"    {new}\n\n\ndef main", 1
            )
            yield Mutant(f"workers: {new}", changed(files, path, same), "TRL307", path, row_of(same, new))


def _without(call: ast.Call, word: str) -> str:
    """A call as text, without one of its keywords."""
    kept = [keyword for keyword in call.keywords if keyword.arg != word]
    return ast.unparse(ast.Call(call.func, call.args, kept))


_REPLACED = (
    ("TRL401", "self.table[index]", "self.table.index_select(0, index)", ""),
    ("TRL402", "nn.AvgPool2d(4)", "nn.AdaptiveAvgPool2d(2)", ""),
    ("TRL404", "nn.AvgPool2d(4)", "nn.AdaptiveAvgPool1d(2)", ""),
    ("TRL403", "nn.Conv2d(1, 4, 3, padding=1)", "nn.Conv3d(1, 4, 3, padding=1)", "TRL403"),
    ("TRL405", "self.table[index]", "torch_scatter.scatter_max(self.table, index)[0]", ""),
    ("TRL406", "torch.arange(6).remainder(5)", "torch.rand(6, device=device).topk(6).indices.remainder(5)", "TRL406"),
    ("TRL111", "nn.Parameter(torch.rand(5, 16))", "nn.Parameter(torch.empty(5, 16))", ""),
    ("TRL502", "sorted({", "list({", ""),
    ("TRL503", "sorted(os.listdir(root))", "os.listdir(root)", ""),
    ("TRL503", "sorted(os.listdir(root))", "[entry.name for entry in os.scandir(root)]", ""),
    ("TRL503", "sorted(os.listdir(root))", '[os.path.basename(path) for path in glob.glob(f"{root}/*")]', ""),
    ("TRL503", "sorted((root / name).iterdir())", "(root / name).iterdir()", ""),
    ("TRL503", "sorted((root / name).iterdir())", '(root / name).glob("*.txt")', ""),
    ("TRL504", "zlib.crc32(path.encode())", "hash(path)", ""),
    (
        "TRL505",
        "list(pool.map(read, [path for path, _ in found]))",
        "[each.result() for each in as_completed([pool.submit(read, path) for path, _ in found])]",
        "",
    ),
    (
        "TRL506",
        "list(pool.map(read, [path for path, _ in found]))",
        "list(pool.map(lambda path: [each + torch.rand(1).item() for each in read(path)], [path for path, _ in found]))",
        "",
    ),
)


def replace(files: Files) -> Iterator[Mutant]:
    """TRL111, TRL401 to TRL406, TRL502 to TRL506: the steady form for the one that is not."""
    for code, old, new, select in _REPLACED:
        for path, text in sources(files):
            if old in text:
                wrong = text.replace(old, new)
                if code in ("TRL111", "TRL401") or select == "TRL403":
                    wrong = wrong.replace("torch.use_deterministic_algorithms(True)", "pass")
                if "as_completed" in new:
                    wrong = wrong.replace("import ThreadPoolExecutor", "import ThreadPoolExecutor, as_completed")
                wrong = importing(wrong, "torch_scatter") if "torch_scatter" in new else wrong
                yield Mutant(f"{old} → {new}", changed(files, path, wrong), code, path, row_of(wrong, new), select)


def hash_seed_inside(files: Files) -> Iterator[Mutant]:
    """TRL501: the hash seed is set when it is too late."""
    text = importing(files[ENTRY], "os")
    row = next(iter(calls(text, "torch.manual_seed", "seed_everything"))).lineno
    new = 'os.environ["PYTHONHASHSEED"] = "0"'
    yield Mutant(new, changed(files, ENTRY, with_row(text, row, new)), "TRL501", ENTRY, row)


def resume_and_watch_the_clock(files: Files) -> Iterator[Mutant]:
    """TRL112, TRL113: training goes on from a file, and ends when the time is up."""
    text = files[ENTRY]
    for loop in _training_loops(text):
        new = 'torch.optim.SGD(model.parameters(), 0.1).load_state_dict(torch.load("last.pt"))'
        resumed = with_row(text, loop.lineno, new)
        yield Mutant("resume the optimizer", changed(files, ENTRY, resumed), "TRL112", ENTRY, row_of(resumed, new))
        ending = "if time.time() > 2e9: break"
        timed = importing(with_row(text, loop.body[-1].lineno, ending), "time")
        yield Mutant("stop by the clock", changed(files, ENTRY, timed), "TRL113", ENTRY, row_of(timed, ending))


def _training_loops(text: str) -> Iterator[ast.For]:
    """The loops whose own statements run a backward pass."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.For) and any(ast.unparse(each) == "loss.backward()" for each in node.body):
            yield node
