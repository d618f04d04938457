"""Mutations of seeds: dropped, late, from entropy, from the clock, or off by default."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mutating import (
    ENTRY,
    SEEDERS,
    Files,
    Mutant,
    calls,
    changed,
    importing,
    marked,
    put,
    row_of,
    sources,
    statements,
    without_rows,
)

# Seeds that another run does not get.
CHANGING = {
    "time": "int(time.time())",
    "os": "os.getpid()",
    "uuid": "uuid.uuid4().int % 2**32",
    "secrets": "secrets.randbelow(100)",
    "datetime": "datetime.datetime.now().microsecond",
    "": 'hash("run") % 2**32',
}


def drop_seeder(files: Files) -> Iterator[Mutant]:
    """TRL101 to TRL103, TRL110: one seeder less."""
    for family, name in SEEDERS.items():
        for path, text in sources(files):
            for statement in statements(text, name):
                fewer = without_rows(text, statement.lineno, statement.end_lineno or 0)
                if list(ast.walk(ast.parse(text))) and _empties(text, statement):
                    fewer = put(text, statement, "pass")
                broken = changed(files, path, fewer)
                place, row, code = marked(broken, family)
                if row:
                    yield Mutant(f"drop {name}", broken, code, place, row)


def only_cuda(files: Files) -> Iterator[Mutant]:
    """TRL101: a seed for CUDA alone."""
    for path, text in sources(files):
        for call in calls(text, "torch.manual_seed"):
            broken = changed(files, path, put(text, call.func, "torch.cuda.manual_seed_all"))
            yield Mutant("seed CUDA only", broken, "TRL101", ENTRY, marked(broken, "torch")[1])


def seed_late(files: Files) -> Iterator[Mutant]:
    """TRL104: the seeding of the entry at the end of its block."""
    text = files[ENTRY]
    for block in _blocks(text):
        seeding = [each for each in block if _seeds(each)]
        if not seeding or seeding[-1] is block[-1]:
            continue
        lines = text.splitlines(keepends=True)
        moved = "".join("".join(lines[each.lineno - 1 : each.end_lineno]) for each in seeding)
        last = block[-1].end_lineno or 0
        late = "".join(lines[:last]) + moved + "".join(lines[last:])
        for each in reversed(seeding):
            late = without_rows(late, each.lineno, each.end_lineno or 0)
        for family, name in SEEDERS.items():
            row = row_of(late, f"# first {family}")
            if row and (name in moved or "seed_everything" in moved):
                yield Mutant(f"seed {family} late", changed(files, ENTRY, late), "TRL104", ENTRY, row)


def seed_from_entropy(files: Files) -> Iterator[Mutant]:
    """TRL105: no seed, None, or torch's own fresh one."""
    for path, text in sources(files):
        for call in calls(text, *SEEDERS.values()):
            name = ast.unparse(call.func)
            fresh = ["torch.seed()"] if name == "torch.manual_seed" else [f"{name}()", f"{name}(None)"]
            for new in fresh:
                yield Mutant(f"write {new}", changed(files, path, put(text, call, new)), "TRL105", path, call.lineno)


def seed_that_changes(files: Files) -> Iterator[Mutant]:
    """TRL105: a seed from the clock, the process, a fresh identifier, a hash."""
    for path, text in sources(files):
        for number, call in enumerate(calls(text, *SEEDERS.values())):
            module, value = list(CHANGING.items())[number % len(CHANGING)]
            mutated = importing(put(text, call.args[0], value), module)
            row = row_of(mutated, f"({value})")
            yield Mutant(f"seed from {value}", changed(files, path, mutated), "TRL105", path, row)


def unseed_generator(files: Files) -> Iterator[Mutant]:
    """TRL106: a generator of its own without a seed."""
    for path, text in sources(files):
        for call in calls(text, "np.random.default_rng", "random.Random"):
            if "initial_seed" in ast.unparse(call):
                continue
            name = ast.unparse(call.func)
            fresh = [f"{name}()", f"{name}(None)"] + ["random.SystemRandom()"] * name.endswith("Random")
            for new in fresh:
                yield Mutant(f"write {new}", changed(files, path, put(text, call, new)), "TRL106", path, call.lineno)


def ignore_option(files: Files) -> Iterator[Mutant]:
    """TRL109: a seed option that nothing reads."""
    for path, text in sources(files):
        for declaration in ('"--seed"', "seed: int ="):
            row = row_of(text, declaration)
            if row and "def " not in text.splitlines()[row - 1]:
                read = re.compile(r"\b(args|settings)\.seed\b|(?<=manual_seed\()seed(?=\))")
                broken = {other: read.sub("1", each) for other, each in files.items()}
                yield Mutant("read no seed option", broken, "TRL109", path, row)


def optional_seed(files: Files) -> Iterator[Mutant]:
    """TRL107: all seeders hang on an option that is off."""
    text = files[ENTRY]
    if "default=1)" in text:
        off = text.replace("default=1)", "default=None)", 1)
        row = row_of(off, "random.seed(")
        block = [line for line in off.splitlines() if re.search(r"(?<!\.Generator\(\)\.)\b(manual_)?seed\(args", line)]
        guarded = "\n".join([f"    if args.seed is not None:\n{'    ' * 1}{line}" for line in block])
        lines = [line for line in off.splitlines() if line not in block]
        lines.insert(row - 1, guarded)
        broken = changed(files, ENTRY, "\n".join(lines) + "\n")
        declared = row_of(broken[ENTRY], '"--seed"')
        yield Mutant("seed only if asked to", broken, "TRL107", ENTRY, declared, "TRL107")


def unseeded_environment(files: Files) -> Iterator[Mutant]:
    """TRL108: the observations of an environment that starts from entropy."""
    text = files[ENTRY]
    row = row_of(text, "random.seed(")
    if row:
        lines = text.splitlines()
        indent = lines[row - 1][: len(lines[row - 1]) - len(lines[row - 1].lstrip())]
        lines.insert(row, f'{indent}observation = gymnasium.make("CartPole-v1").reset()')
        mutated = importing("\n".join(lines) + "\n", "gymnasium")
        row = row_of(mutated, "gymnasium.make(")
        yield Mutant("reset an environment without a seed", changed(files, ENTRY, mutated), "TRL108", ENTRY, row)


def _blocks(text: str) -> Iterator[list[ast.stmt]]:
    tree = ast.parse(text)
    yield tree.body
    yield from (node.body for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _seeds(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and (ast.unparse(statement.value.func) in (*SEEDERS.values(), "seed_everything"))
    )


def _empties(text: str, statement: ast.stmt) -> bool:
    """Whether a statement is alone in its block."""
    return any(len(block) == 1 and block[0].lineno == statement.lineno for block in _blocks(text))
