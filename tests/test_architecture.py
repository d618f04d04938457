"""The architecture is what its page says: layers, no circles, sizes, and a glossary whose terms can be found."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]
PACKAGE = TOP / "torchrepro_lint"
GLOSSARY = re.compile(r"^\| \*\*(?P<terms>[^|]+)\*\* \|[^|]*\| (?P<places>[^|]+) \|$", re.MULTILINE)


def modules() -> dict[str, Path]:
    return {
        ".".join(path.relative_to(TOP).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def imported(name: str, path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """The modules of the package that a module imports anywhere: at run time, for types, inside functions."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports relatively"
            targets = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for target in targets:
            parts = target.split(".")
            prefixes = [".".join(parts[:count]) for count in range(len(parts), 1, -1)]
            yield from [prefix for prefix in prefixes if prefix in known and prefix != name][:1]


def test_no_modules_import_each_other_in_a_circle() -> None:
    known = modules()
    left = {name: set(imported(name, path, known)) for name, path in known.items()}
    assert sum(map(len, left.values())) > 1000
    while free := [name for name, others in left.items() if not others]:
        for name in free:
            del left[name]
        for others in left.values():
            others.difference_update(free)
    assert sorted(left) == []


def test_modules_are_few_and_none_is_long() -> None:
    known = modules()
    # Rules, their fixes and the formats of reports are as many as there are; an ``__init__`` only describes its package.
    counted = [
        name
        for name, path in known.items()
        if path.name != "__init__.py"
        and not name.startswith(("torchrepro_lint.checks", "torchrepro_lint.interfaces.report"))
    ]
    assert len(counted) <= 200
    flat = [name for name, path in known.items() if path.parent == PACKAGE and path.name != "__init__.py"]
    assert flat == ["torchrepro_lint.__main__", "torchrepro_lint.call_stack", "torchrepro_lint.limits"]
    lengths = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in known.items()}
    assert {name: length for name, length in lengths.items() if length > 400} == {}


def test_the_page_shows_the_layers_that_the_code_has() -> None:
    pytest.importorskip("grimp")
    from tools.architecture import PAGE, drawn

    page = PAGE.read_text(encoding="utf-8")
    assert drawn(page) == page


def test_each_term_of_the_glossary_leads_to_the_module_that_implements_it() -> None:
    page = (TOP / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = list(GLOSSARY.finditer(page))
    assert len(rows) >= 20
    missing = []
    for row in rows:
        heads = [first_words(PACKAGE / place) for place in re.findall(r"`([\w/]+\.py)`", row["places"])]
        assert heads, row["terms"]
        missing += [term for term in row["terms"].split(", ") if not any(term.lower() in head for head in heads)]
    assert missing == [], missing


def test_each_package_names_public_functions_that_are_there() -> None:
    inits = [path for path in sorted(PACKAGE.rglob("__init__.py")) if path.parent != PACKAGE]
    wrong = []
    listed = 0
    for init in inits:
        docstring = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
        for names, module in re.findall(r"((?:``\w+``(?:,\s+| and )?)+) of ``(\w+)``", docstring):
            path = init.parent / f"{module}.py"
            there = defined(path) if path.exists() else frozenset[str]()
            wrong += [
                f"{init.parent.name}: {name} of {module}"
                for name in re.findall(r"\w+", names)
                if name not in {*there, "and"}
            ]
            listed += 1
    assert wrong == []
    assert listed > 80


def test_only_one_module_takes_names_apart() -> None:
    found = [
        f"{name}:{node.lineno}"
        for name, path in modules().items()
        if name != "torchrepro_lint.syntax.qualified_names"
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.expr) and takes_name_apart(node)
    ]
    # What a user writes on the command line.
    assert [each for each in found if not each.startswith("torchrepro_lint.catalogue.release_history:")] == []
    written = (
        '":" in name',
        'name.endswith("()")',
        'name.removesuffix("()")',
        'f"{name}.<locals>.x"',
        'name.endswith(("()",))',
    )
    assert all(any(map(takes_name_apart, ast.walk(ast.parse(each)))) for each in written)


def test_the_limits_of_the_analysis_are_in_one_module() -> None:
    limit = re.compile(r"_?(MAX|MOST|DEEPEST|FEW)(_[A-Z_]+)?")
    layers = ("resolve", "dataflow", "trace", "domain", "checks")
    apart = [
        f"{name}: {word}"
        for name, path in modules().items()
        if name.startswith(tuple(f"torchrepro_lint.{layer}." for layer in layers))
        for word in defined(path)
        if limit.fullmatch(word) and word != "MAX_AUTOTUNE"
    ]
    assert apart == []
    assert sum(word.startswith("MAX_") for word in defined(PACKAGE / "limits.py")) > 70


# The modules in which addresses in memory identify something. Elsewhere a node, or an object without ``__eq__``, is its own key.
NEEDING_ADDRESSES = {
    # It walks over exceptions of any class, which may have no hash.
    "torchrepro_lint.__main__",
    # It walks over whatever objects refer to one another, some of which are compared by content and have no hash.
    "torchrepro_lint.engine.partition",
}


def test_nothing_is_identified_by_its_address() -> None:
    found = {
        name
        for name, path in modules().items()
        if any(
            isinstance(node, ast.Name) and node.id == "id" and isinstance(node.ctx, ast.Load)
            for node in ast.walk(ast.parse(path.read_bytes()))
        )
    }
    assert found == NEEDING_ADDRESSES


# Where objects that are no nodes of the syntax tree are compared by identity: whole trees, tables, bindings, frames and truth values.
COMPARED_BY_IDENTITY = {
    ("checks.fixes.insertions", "known[0] is not tree"),
    ("dataflow.types.bindings", "one is other"),
    ("dataflow.types.bindings", "known is not binding"),
    ("dataflow.types.flow", "end[name] is not binding"),
    ("dataflow.types.variables", "top is not binding"),
    ("resolve.call_sites", "before is calls"),
    ("resolve.higher_order", "self._names.is_bound(path, given, each) is takes_receiver(each)"),
    ("resolve.names", "imports_torch(old.summary) is not imports_torch(facts.summary)"),
    ("resolve.names", "reads_namespaces(old.summary) is not reads_namespaces(facts.summary)"),
    ("resolve.program_index", "known(path) is not facts"),
    ("resolve.program_index", "known.peek(path) is not facts"),
    ("trace.builder", "self._recording[-1].frame is top"),
    ("trace.events", "known[0] is not old"),
}


def test_nodes_are_compared_by_what_they_are() -> None:
    """After an edit, remembered answers may have nodes of the file as it was, which are equal to those of the new tree, and others."""
    packages = ("resolve", "dataflow", "trace", "domain", "checks")
    found = {
        (name.removeprefix("torchrepro_lint."), ast.unparse(node))
        for name, path in modules().items()
        if name.split(".")[1:2] and name.split(".")[1] in packages
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot)
        if not any(is_no_node(side) for side in (node.left, *node.comparators))
    }
    assert found == COMPARED_BY_IDENTITY


def is_no_node(side: ast.expr) -> bool:
    """Whether an operand of ``is`` is a literal, a constant, a member of an enumeration, a type, or the result of a comparison."""
    match side:
        case ast.Constant() | ast.Compare() | ast.Call(func=ast.Name(id="type" | "bool")) | ast.Name(id="kind"):
            return True
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id=name)):
            return name.isupper() or name[:1].isupper()
    return False


def takes_name_apart(node: ast.AST) -> bool:
    """Whether a node asks by the characters of a qualified name what it is, or puts one together."""
    match node:
        case ast.Compare(
            left=ast.Constant(value=":" | "()" | "[]" | "<locals>" | ".<locals>."), ops=[ast.In() | ast.NotIn()]
        ):
            return True
        case ast.Call(func=ast.Attribute(attr="endswith" | "removesuffix" | "partition" | "rpartition"), args=[arg]):
            parts = arg.elts if isinstance(arg, ast.Tuple) else [arg]
            return any(isinstance(each, ast.Constant) and each.value in ("()", "[]", "().") for each in parts)
        case ast.JoinedStr(values=parts):
            return any(isinstance(each, ast.Constant) and "<locals>" in str(each.value) for each in parts)
    return False


def defined(path: Path) -> frozenset[str]:
    """The names that the top level of a module defines."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update(name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))
    return frozenset(found)


def first_words(path: Path) -> str:
    """The name of a module and its first sentence, in lower case."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    sentence = re.split(r"\.\s", " ".join(docstring.split()), maxsplit=1)[0]
    return f"{path.stem.replace('_', ' ')}: {sentence}".lower()
