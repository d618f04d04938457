"""The text of a hover: what it says, and what it leaves out where there is too much."""

from __future__ import annotations

import itertools
import re

import pytest

pytest.importorskip("pygls", reason="the extra lsp is not installed")

from torchrepro_lint.checks import RULES
from torchrepro_lint.checks.pages import find, url
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.interfaces.lsp.language_features import MOST, hover_text
from torchrepro_lint.source.text import Fix, NoFix, Position, Span
from torchrepro_lint.trace.call_paths import CallPathStep

AT = Span(0, 4)
LINK = re.compile(r"\[More about (TRL\d{3})\]\((\S+)\)")


def finding(code: str = "TRL101", message: str = "nothing seeds torch", **more: object) -> Finding:
    return Finding(code, AT, message)._replace(**more)  # type: ignore[arg-type]


def test_a_hover_has_the_rule_the_reason_and_a_link() -> None:
    steps = (CallPathStep("train.py", Position(3, 1), "calls draw"), CallPathStep("model.py", Position(5, 9), "draws"))
    text = hover_text([finding(steps=steps, remedy=NoFix("no statement can stand there"))], [], markdown=True)
    page = find("TRL101")
    assert page is not None
    assert text.split("\n\n") == [
        "**TRL101 unseeded-torch**",
        page.summary,
        "nothing seeds torch",
        "How the run gets there:",
        "- train.py:3: calls draw\n- model.py:5: draws",
        "There is no fix here: no statement can stand there.",
        f"[More about TRL101]({url('TRL101', 'unseeded-torch')})",
    ]


def test_a_client_without_markdown_gets_plain_text() -> None:
    text = hover_text([finding(message="`x` *may* differ", remedy=Fix("Pass x", (), True))], [], markdown=False)
    assert "`x` *may* differ" in text
    assert text.endswith(f"More about TRL101: {url('TRL101', 'unseeded-torch')}")
    assert "**" not in text
    assert "no fix" not in text


def test_a_message_is_no_markup() -> None:
    assert r"\[a\](b) \*c\*" in hover_text([finding(message="[a](b) *c*")], [], markdown=True)


def test_a_code_that_is_written_there_is_explained_once() -> None:
    text = hover_text([finding()], ["TRL101", "TRL102", "TRL999"], markdown=True)
    assert [match[1] for match in LINK.finditer(text)] == ["TRL101", "TRL102"]
    assert hover_text([], ["TRL999"], markdown=True) == ""


@pytest.mark.parametrize("markdown", [True, False])
@pytest.mark.parametrize("count", [1, 2, 5, len(RULES)])
def test_a_hover_is_short_and_its_links_are_whole(count: int, markdown: bool) -> None:
    long = "The loader draws its order [here] from the *global* generator. " * 40
    steps = tuple(CallPathStep("a.py", Position(row, 1), "calls " + "b" * 90) for row in range(1, 30))
    rules = RULES[:count]
    found = [finding(rule.code, f"{number} {long}", steps=steps) for rule, number in itertools.product(rules, (1, 2))]
    text = hover_text(found, [], markdown)
    assert len(text) <= MOST
    assert len(text) > MOST / 3
    shown = [rule for rule in rules if url(rule.code, rule.name) in text]
    assert len(shown) == min(count, 6)
    assert text.count("](") == (len(shown) if markdown else 0)
    assert text.endswith(
        f"{count - 6} more rules report this place."
        if count > 6
        else url(rules[-1].code, rules[-1].name) + ")" * markdown
    )


def test_a_long_message_ends_with_a_sentence_and_one_without_end_with_a_word() -> None:
    sentences = hover_text([finding(message="One thing is so. " * 200)], [], markdown=True)
    assert re.search(r"so\. …\n", sentences)
    words = hover_text([finding(message="word " * 500)], [], markdown=True)
    assert re.search(r"word …\n", words)
