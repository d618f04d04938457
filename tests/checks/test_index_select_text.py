"""The text that the fix of TRL401 writes: brackets, comments, line breaks, the helper, and when it is offered."""

from __future__ import annotations

import ast
import io
import tokenize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from one_file import NAME, findings, fixed
from torchrepro_lint.checks.fixes.index_select import HELPER
from torchrepro_lint.checks.index_select import check

FUNCTION = "import torch\n\n\nasync def f(x, y, i, j, c, d):\n"

SUBSCRIPTS = [
    ("x.index_select(0, i)", "x[i]"),
    ("x.index_select(1, i)", "x[:, i]"),
    ("x.index_select(4, i)", "x[:, :, :, :, i]"),
    ("x.index_select(-1, i)", "x[..., i]"),
    ("x.index_select(-2, i)", "x[..., i, :]"),
    ("x.index_select(-4, i)", "x[..., i, :, :, :]"),
    ("x.index_select(dim=1, index=i)", "x[:, i]"),
    ("x.index_select(index=i, dim=1)", "x[:, i]"),
    ("x.index_select(dim = 1 , index = i , )", "x[:, i]"),
    ("x .index_select (1, i)", "x[:, i]"),
    ("torch.index_select(x, 0, i)", "x[i]"),
    ("torch.index_select(input=x, dim=-2, index=i)", "x[..., i, :]"),
    ("torch.index_select(dim=1, index=i, input=x)", "x[:, i]"),
    ("torch.index_select(index=f(), dim=1, input=x + y)", "torch.index_select(index=f(), dim=1, input=x + y)"),
    ("torch.Tensor.index_select(x, 0, i)", "x[i]"),
    # what binds less tightly than a subscript is put in parentheses
    ("torch.index_select(x + y, 0, i)", "(x + y)[i]"),
    ("torch.index_select((x + y), 0, i)", "(x + y)[i]"),
    ("torch.index_select(-x, 0, i)", "(-x)[i]"),
    ("torch.index_select(x if c else y, 0, i)", "(x if c else y)[i]"),
    ("torch.index_select(await x, 0, i)", "(await x)[i]"),
    ("torch.index_select(x := y, 0, i)", "(x := y)[i]"),
    ("torch.index_select(lambda: x, 0, i)", "(lambda: x)[i]"),
    ("torch.index_select([x, y][0], 0, i)", "[x, y][0][i]"),
    ("torch.index_select(x\n    .data2, 0, i)", "(x\n    .data2)[i]"),
    ("torch.index_select(f(x,\n    y), 0, i)", "f(x,\n    y)[i]"),
    ("await x.index_select(0, i)", "await x[i]"),
    ("(await x).index_select(0, i)", "(await x)[i]"),
    ("-x.index_select(0, i)", "-x[i]"),
    ("f(*x.index_select(0, i))", "f(*x[i])"),
    ("g = lambda x, i: x.index_select(0, i)", "g = lambda x, i: x[i]"),
    ("x.index_select(1, i if c else j)", "x[:, i if c else j]"),
    ("x.index_select(1, i := j)", "x[:, (i := j)]"),
    ("x.index_select(1, (i := j))", "x[:, (i := j)]"),
    ("x.index_select(1, await i)", "x[:, await i]"),
    # nested calls need no second round, or get one
    ("x.index_select(0, i).index_select(1, j)", "x[i][:, j]"),
    # what selects from an index sums no gradient, and stays
    ("x.index_select(0, i.index_select(0, j))", "x[i.index_select(0, j)]"),
    ("torch.index_select(torch.index_select(x, 0, i), -1, j)", "x[i][..., j]"),
    ("x" + ".index_select(0, i)" * 14, "x" + "[i]" * 14),
    ("torch.index_select(" * 14 + "x" + ", 0, i)" * 14, "x" + "[i]" * 14),
    # comments and line breaks
    ("x.index_select(0,\n    i)", "x[i]"),
    ("x.index_select(1,\n    i)", "x[:,\n    i]"),
    ("x.index_select(\n    1,  # along\n    i,  # rows\n)  # end", "x[\n    :,  # along\n    i,  # rows\n]  # end"),
    ("x.index_select(\n    0,  # along\n    i,\n)", "x[\n    # along\n    i\n]"),
    ("x.index_select(  # why\n    0, i)", "x[  # why\n    i]"),
    ("torch.index_select(\n    x,\n    0,\n    i,\n)", "x[\n    i\n]"),
    ("torch.index_select(  # a\n    x,  # b\n    1,  # c\n    i,\n)", "x[  # a\n    # b\n    :,  # c\n    i,\n]"),
    ("(x  # a\n    # b\n    .index_select(-2, i)  # c\n)", "(x  # a\n    # b\n    [..., i, :]  # c\n)"),
    ("x.index_select(index=i,  # c\n    dim=1)", "x[:, i  # c\n]"),
    ("x \\\n    .index_select(0, i)", "x \\\n    [i]"),
    # the layout of what is viewed
    ("x.index_select(0, i).view(-1)", "x[i].contiguous().view(-1)"),
    ("x.index_select(0, i).relu().view_as(y)", "x[i].contiguous().relu().view_as(y)"),
    ("x.contiguous().index_select(0, i).view(-1)", "x.contiguous()[i].view(-1)"),
    ("x.index_select(0, i).reshape(2, 3).view(-1)", "x[i].reshape(2, 3).view(-1)"),
    (
        "z = x.index_select(0, i)\n    w = z * 2\n    return w.view(-1)",
        "z = x[i].contiguous()\n    w = z * 2\n    return w.view(-1)",
    ),
    ("z = x.index_select(0, i)\n    return y.view(-1)", "z = x[i]\n    return y.view(-1)"),
    # what is known of the index
    ("x.index_select(0, torch.tensor(3) if c else j)", "x[(torch.tensor(3) if c else j).reshape(-1)]"),
    ("x.index_select(1, i.argmax() if c else j)", "x[:, (i.argmax() if c else j).reshape(-1)]"),
    ("x.index_select(0, i.int())", "x[i.int()]"),
]


@pytest.mark.parametrize(("before", "after"), SUBSCRIPTS)
def test_a_constant_dimension_becomes_a_subscript(before: str, after: str) -> None:
    assert fixed(check, f"{FUNCTION}    {before}\n") == f"{FUNCTION}    {after}\n"


HELPED = [
    ("x.index_select(d, i)", "deterministic_index_select(x, d, i)"),
    ("x.index_select(dim=d, index=i)", "deterministic_index_select(x, dim=d, index=i)"),
    ("x.index_select(5, i)", "deterministic_index_select(x, 5, i)"),
    ("torch.index_select(x, d, i)", "deterministic_index_select(x, d, i)"),
    ("torch.index_select(x + y, axis=d + 1, index=i)", "deterministic_index_select(x + y, dim=d + 1, index=i)"),
    ("torch.index_select(index=i, dim=d, input=x)", "deterministic_index_select(index=i, dim=d, input=x)"),
    (
        "torch.index_select(\n    x,  # a\n    d,\n    i,\n)",
        "deterministic_index_select(\n    x,  # a\n    d,\n    i,\n)",
    ),
    ("(x  # a\n   .index_select(d, i))", "(deterministic_index_select(x  # a\n   , d, i))"),
    ("x.index_select(0  # c\n    if c else 1, i)", "deterministic_index_select(x, 0  # c\n    if c else 1, i)"),
    ("x.index_select(\n    d,\n    i)", "deterministic_index_select(x,\n    d,\n    i)"),
    (
        "x.index_select(d, i).index_select(c, j)",
        "deterministic_index_select(deterministic_index_select(x, d, i), c, j)",
    ),
    ("x.index_select(d, i).view(-1)", "deterministic_index_select(x, d, i).contiguous().view(-1)"),
    (
        "x.index_select(d, i.argmax() if c else j)",
        "deterministic_index_select(x, d, (i.argmax() if c else j).reshape(-1))",
    ),
]


@pytest.mark.parametrize(("before", "after"), HELPED)
def test_another_dimension_goes_through_the_helper(before: str, after: str) -> None:
    rest = f"\n\n\nasync def f(x, y, i, j, c, d):\n    {after}\n"
    assert fixed(check, f"{FUNCTION}    {before}\n") == f"import torch\n\n\n{HELPER.source}{rest}"


UNFIXED = [
    "x.index_select('N', i)",
    "x.index_select(True, i)",
    "x.index_select(None, i)",
    "x.index_select(0, [1, 2])",
    "x.index_select(0, (1, 2))",
    "x.index_select(0, (k for k in i))",
    "torch.index_select(x, 0, i, **c)",
    "torch.index_select(x, 0, i, out=None)",
    "x.index_select((0  # c\n        ), i)",
    "(x.  # c\n        index_select(0, i))",
    "(x.index_select)(0, i)",
    "(f'{(k := x.index_select(0, i))=}', k)",
]


@pytest.mark.parametrize("call", UNFIXED)
def test_a_fix_is_not_offered_where_it_would_not_be_exact(call: str) -> None:
    source = f"{FUNCTION}    return {call}\n"
    assert len(findings(check, source)) == 1
    assert fixed(check, source) == source


@pytest.mark.parametrize(
    ("torch", "after"),
    [("1.13", "x[i.int().long()]"), ("2.0", "x[i.int()]"), ("2.13", "x[i.int()]")],
)
def test_an_int32_index_is_widened_for_a_torch_that_refuses_it(torch: str, after: str) -> None:
    assert fixed(check, f"{FUNCTION}    x.index_select(0, i.int())\n", torch=torch) == f"{FUNCTION}    {after}\n"


@pytest.mark.parametrize(
    ("source", "safe"),
    [
        ("import torch\n\n\ndef f(x, i):\n    return x.index_select(0, i)\n", False),
        (
            "import torch\n\n\ndef f(x, i):\n    return x.index_select(0, i)\n\n\nf(a.cuda(), b).sum().backward()\n",
            True,
        ),
        ("import torch\n\n\nf = x.index_select(0, torch.tensor(1, device='cuda') if c else j)\n", False),
    ],
)
def test_a_fix_is_safe_where_the_program_names_cuda(source: str, safe: bool) -> None:
    (finding,) = findings(check, source)
    assert finding.fix is not None
    assert finding.fix.safe is safe
    assert findings(check, source, device="cpu") == []


GAPS = st.sampled_from(["", " ", "  ", "\n        ", "  # {}\n        ", "\n        # {}\n        ", " # {}\n\n    "])


@settings(max_examples=250, deadline=None, derandomize=True, database=None)
@given(
    st.lists(GAPS, min_size=9, max_size=9),
    st.sampled_from(["method", "function", "keywords", "reversed", "dynamic", "helper"]),
    st.booleans(),
    st.sampled_from(["0", "1", "-1", "-2"]),
)
def test_no_comment_is_lost_and_the_meaning_stays(spaces: list[str], form: str, comma: bool, dim: str) -> None:
    gaps = [space.format(f"note {number}") for number, space in enumerate(spaces)]
    a, b, c, d, e, f, g, h, k = gaps
    end = f",{k}" if comma else k
    call = {
        "method": f"(x{a}.index_select({b}{dim}{c},{d}i{e}{end}))",
        "function": f"(torch.index_select({a}x{b},{c}{dim}{d},{e}i{f}{end}))",
        "keywords": f"(torch.index_select({a}input{b}={c}x,{d}dim={e}{dim},{f}index={g}i{h}{end}))",
        "reversed": f"(x.index_select({a}index={b}i{c},{d}dim{e}={f}{dim}{g}{end}))",
        "dynamic": f"(x{a}.index_select({b}d{c},{d}i{e}{end}))",
        "helper": f"(torch.index_select({a}x{b},{c}d{d},{e}i{f}{end}))",
    }[form]
    source = f"import torch\n\n\ndef f(x, i, d):\n    return {call}\n"
    after = fixed(check, source)
    assert after != source
    assert _comments(after) == _comments(source)
    wanted = {"0": "x[i]", "1": "x[:, i]", "-1": "x[..., i]", "-2": "x[..., i, :]"}[dim]
    if form in ("dynamic", "helper"):
        wanted = "deterministic_index_select(x, d, i)"
    found = ast.parse(after).body[-1].body[0].value  # type: ignore[attr-defined]
    assert ast.unparse(found).replace("(i,)", "i") == ast.unparse(ast.parse(wanted, mode="eval")).replace("(i,)", "i")


def _comments(source: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def test_the_helper_is_written_once_and_below_the_imports() -> None:
    source = (
        '"""Doc."""\n\nfrom __future__ import annotations\nimport torch\n\n\ndef f(x, i, d):\n'
        "    y = x.index_select(d, i)\n    return torch.index_select(y, d, i)\n"
    )
    after = fixed(check, source)
    assert after.count("def deterministic_index_select(") == 1
    assert after.startswith(
        f'"""Doc."""\n\nfrom __future__ import annotations\nimport torch\n\n\n{HELPER.source}\n\n\ndef f('
    )


def test_a_helper_that_is_there_is_used_whatever_it_is_called() -> None:
    helper = HELPER.source.replace("deterministic_index_select", "pick")
    source = f"import torch\n\n\n{helper}\n\n\ndef f(x, i, d):\n    return x.index_select(d, i)\n"
    assert fixed(check, source) == source.replace("x.index_select(d, i)", "pick(x, d, i)")


def test_the_helper_shadows_nothing() -> None:
    source = "import torch\nfrom lib import deterministic_index_select\n\n\ndef f(x, i, d):\n    return x.index_select(d, i)\n"
    after = fixed(check, source)
    assert "\n\n\ndef deterministic_index_select_(input, dim, index):\n" in after
    assert "return deterministic_index_select_(x, d, i)" in after


def test_the_helper_of_another_module_is_imported() -> None:
    source = "import torch\n\n\ndef f(x, i, d):\n    return x.index_select(d, i)\n"
    others = {"lib/__init__.py": "", "lib/ops.py": f"import torch\n\n\n{HELPER.source}\n"}
    after = fixed(check, source, others=others)
    assert after == (
        "import torch\nfrom lib.ops import deterministic_index_select\n\n\n"
        "def f(x, i, d):\n    return deterministic_index_select(x, d, i)\n"
    )


def test_a_module_that_imports_this_one_is_not_imported_in_turn() -> None:
    source = "import torch\n\n\ndef f(x, i, d):\n    return x.index_select(d, i)\n"
    others = {"ops.py": f"from {NAME.removesuffix('.py')} import f\n\n\n{HELPER.source}\n"}
    assert "def deterministic_index_select(" in fixed(check, source, others=others)


def test_the_helper_stands_above_its_first_use() -> None:
    source = "import torch\nx = torch.ones(3, requires_grad=True).index_select(d, i)\nimport late\n"
    after = fixed(check, source)
    assert after == (
        f"import torch\n\n\n{HELPER.source}\n\n\nx = deterministic_index_select(torch.ones(3, requires_grad=True), d, i)\nimport late\n"
    )


def test_a_use_on_the_line_of_the_imports_is_not_rewritten() -> None:
    source = "import torch; x = torch.ones(3).index_select(d, i)\n"
    assert fixed(check, source) == source


@pytest.mark.parametrize("end", ["\r\n", "\n"])
@pytest.mark.parametrize("last", ["", "\n"])
def test_line_ends_stay(end: str, last: str) -> None:
    source = f"import torch\n\n\ndef f(x, i, d):\n    return x.index_select(d, i){last}".replace("\n", end)
    after = fixed(check, source)
    assert (
        after
        == f"import torch\n\n\n{HELPER.source}\n\n\ndef f(x, i, d):\n    return deterministic_index_select(x, d, i){last}".replace(
            "\n", end
        )
    )


def test_the_helper_is_indented_as_the_file_is() -> None:
    text = fixed(check, "import torch\n\n\ndef f(x, i, d):\n\treturn x.index_select(d, i)\n")
    assert '(input, dim, index):\n\t"""Select' in text
    assert "    " not in text


@pytest.mark.parametrize("line", ["range = 3", "from steps import slice"])
def test_no_helper_where_the_file_calls_something_else_by_its_builtins(line: str) -> None:
    text = f"import torch\n{line}\n\n\ndef f(x, i, d):\n    return x.index_select(d, i)\n"
    assert fixed(check, text) == text
