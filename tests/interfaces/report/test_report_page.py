"""The page of a report in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import browser
from browser import Browser
from overview_projects import STUDY, many, overview_of
from torchrepro_lint.interfaces.overview.records import Overview
from torchrepro_lint.interfaces.report.page_html import render

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(browser.missing() is not None, reason=str(browser.missing())),
    pytest.mark.xdist_group("browser"),
]
MANY = 110


def written(files: Mapping[str, str], place: Path) -> Overview:
    """The overview of files below a folder, with its page beside it."""
    for path, text in files.items():
        (place / "code" / path).parent.mkdir(parents=True, exist_ok=True)
        (place / "code" / path).write_text(text)
    overview = overview_of(place / "code")
    (place / "page.html").write_text(render(overview), encoding="utf-8")
    return overview


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Overview, Path]:
    place = tmp_path_factory.mktemp("study")
    return written(STUDY, place), place / "page.html"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Overview, Path]:
    """More than a hundred entry points, and more than four hundred findings."""
    place = tmp_path_factory.mktemp("large")
    overview = written(many(MANY, 3), place)
    assert len(overview.entries) == MANY
    assert len(overview.findings) == 4 * MANY
    return overview, place / "page.html"


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the bundled example, whose cells have long words."""
    top, place = Path(__file__).parents[3] / "examples", tmp_path_factory.mktemp("example")
    sources = sorted([*top.rglob("*.py"), top / "pyproject.toml"])
    written({str(path.relative_to(top)): path.read_text(encoding="utf-8") for path in sources}, place)
    return place / "page.html"


@pytest.fixture
def show(chromium: Browser) -> Iterator[Callable[..., Browser]]:
    """Opens a page on a desktop's screen; what it writes to the console is an error."""

    def opened(page: Path, width: int = 1440, height: int = 1000, scheme: str = "light", at: str = "") -> Browser:
        chromium.emulate(width, height, scheme)
        chromium.complaints()
        chromium.open(page)
        if at:
            chromium.run(f"location.hash = {at!r}; return new Promise(done => setTimeout(() => done(1), 50))")
        return chromium

    yield opened
    assert chromium.complaints() == []


def choose(page: Browser, **values: str) -> list[str]:
    """Set fields of the filter; the ids of the findings that are left."""
    for name, value in values.items():
        page.run(
            "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
            "e.dispatchEvent(new Event('input', {bubbles: true}))",
            name,
            value,
        )
    return shown(page)


def shown(page: Browser) -> list[str]:
    found: list[str] = page.run(
        "return [...document.querySelectorAll('article.f')].filter(a => !a.hidden).map(a => a.id)"
    )
    count, every = page.run(
        "return [document.querySelector('#count').textContent, document.querySelectorAll('article.f').length]"
    )
    assert count == f"{len(found)} of {every} findings"
    assert page.run("return document.querySelector('#none').hidden") == bool(found)
    return found


def test_the_filter(show: Callable[..., Browser], study: tuple[Overview, Path]) -> None:
    overview, place = study
    page = show(place)

    def having(test: Callable[[Any], bool]) -> list[str]:
        return [item.id for item in overview.findings if test(item)]

    assert shown(page) == having(lambda item: True)
    assert choose(page, rule="TRL201") == having(lambda item: item.code == "TRL201")
    assert choose(page, rule="", severity="note") == having(lambda item: item.severity == "note")
    assert choose(page, severity="", file="train.py") == having(lambda item: item.place.path == "train.py")
    steady = next(entry.id for entry in overview.entries if entry.path == "steady.py")
    train = next(entry.id for entry in overview.entries if entry.path == "train.py")
    assert (
        page.run(f"return [...document.querySelectorAll('#entry option')].map(o => o.value).includes('{steady}')")
        is False
    )
    assert choose(page, file="", entry=train) == having(lambda item: train in item.entries)
    assert choose(page, entry="", text="listdir SORTED") == having(lambda item: item.code == "TRL503")
    assert choose(page, text="nothing like it") == []
    page.click("#filter button")
    assert page.run("return new Promise(done => setTimeout(() => done(true), 50))")
    assert shown(page) == having(lambda item: True)


def test_a_cell_leads_to_its_reason_and_on_to_the_finding(
    show: Callable[..., Browser], study: tuple[Overview, Path]
) -> None:
    overview, place = study
    page = show(place)
    entry = overview.entries[0]
    cell = next(each for each in entry.cells if each.control == "numpy")
    page.run("for (const each of document.querySelectorAll('details')) each.open = false")
    page.click(f"table a[href='#{entry.id}-numpy']")
    assert page.run("return [document.activeElement.id, document.activeElement.innerText.includes(arguments[0])]", cell.because) == [
        f"{entry.id}-numpy", True,
    ]  # fmt: skip
    choose(page, text="nothing like it")
    page.click(f"#{entry.id}-numpy a[href='#{cell.findings[0]}']")
    assert (
        page.run("return new Promise(done => setTimeout(() => done(document.activeElement.id), 50))")
        == cell.findings[0]
    )
    # What a link leads to is never filtered away, nor folded.
    assert cell.findings[0] in shown(page)
    assert page.run("return document.activeElement.querySelector('details').open")


def test_a_mark_leads_to_its_line_and_an_entry_point_to_its_findings(
    show: Callable[..., Browser], study: tuple[Overview, Path]
) -> None:
    overview, place = study
    page = show(place)
    entry = overview.entries[0]
    page.click(f"#{entry.id} [data-m='1']")
    assert page.run("return document.activeElement.id") == f"{entry.id}-m1"
    assert "random.seed(seed)" in page.run("return document.activeElement.innerText")
    page.click(f"#{entry.id} a.filter")
    assert shown(page) == [item.id for item in overview.findings if entry.id in item.entries]


def test_the_keyboard_is_enough(show: Callable[..., Browser], study: tuple[Overview, Path]) -> None:
    page = show(study[1])
    seen = page.tab_through()
    assert seen[0] == "#main"
    entry = study[0].entries[0].id
    assert {f"#{entry}-{cell.control}" for cell in study[0].entries[0].cells} <= set(seen)
    assert {"text", "rule", "severity", "file", "entry", "button"} <= set(seen)
    assert all(f"#{each.id}" in seen for each in study[0].findings)
    page.run("document.querySelector('section.entry summary').focus()")
    before = page.run("return document.querySelector('section.entry details').open")
    page.press(browser.ENTER)
    assert page.run("return document.querySelector('section.entry details').open") is not before


def test_it_reads_without_its_script(
    show: Callable[..., Browser], study: tuple[Overview, Path], tmp_path: Path
) -> None:
    # A script that the policy does not know is not run: so this page has none.
    bare = tmp_path / "bare.html"
    text = study[1].read_text(encoding="utf-8")
    start, end = text.index("<script>"), text.index("</script>") + len("</script>")
    bare.write_text(text[:start] + text[end:], encoding="utf-8")
    page = show(bare)
    assert page.run("return document.querySelector('#filter').hidden")
    told = page.run(
        "for (const each of document.querySelectorAll('details')) each.open = true; return document.body.innerText"
    )
    for item in study[0].findings:
        assert item.message in told
    for entry in study[0].entries:
        assert all(cell.because in told for cell in entry.cells)
        assert all(moment.text in told for moment in entry.timeline.moments)
    # Folded text opens for a link by itself.
    page.run("for (const each of document.querySelectorAll('details')) each.open = false")
    entry = study[0].entries[0]
    page.click(f"table a[href='#{entry.id}-numpy']")
    assert page.run(f"return document.getElementById('{entry.id}-numpy').checkVisibility()")


def test_a_large_project_stays_usable(show: Callable[..., Browser], large: tuple[Overview, Path]) -> None:
    overview, place = large
    page = show(place)
    assert page.run("return document.querySelectorAll('table.matrix tbody tr').length") == MANY
    # A first screen's worth of entry points, the others folded; no timeline is open, and no source.
    visible = "return [...document.querySelectorAll(arguments[0])].filter(e => e.checkVisibility()).length"
    assert page.run(visible, "table.matrix tbody tr") == 20
    assert page.run(visible, "section.entry svg") == 0
    assert page.run(visible, "article.f pre") == 0
    last = overview.entries[-1]
    assert choose(page, entry=last.id) == [item.id for item in overview.findings if last.id in item.entries]
    assert len(choose(page, entry="", rule="TRL101")) == MANY
    page.run(f"location.hash = '{last.id}-torch'; return new Promise(done => setTimeout(() => done(1), 50))")
    assert page.run("return document.activeElement.id") == f"{last.id}-torch"


@pytest.mark.parametrize(("width", "height"), [(390, 844), (820, 1180), (1280, 800)])
def test_nothing_is_wider_than_the_screen(
    show: Callable[..., Browser], study: tuple[Overview, Path], width: int, height: int
) -> None:
    page = show(study[1], width, height, "dark")
    page.run("for (const each of document.querySelectorAll('details')) each.open = true")
    assert page.run("return document.documentElement.scrollWidth") <= width
    wide = "return [...document.querySelectorAll('table, article, section, dl, form')].filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.className)"
    assert page.run(wide) == []


# Words of the matrix that stand on more than one line.
_BROKEN_WORDS = """
const broken = [];
const walker = document.createTreeWalker(document.querySelector(".matrix"), NodeFilter.SHOW_TEXT);
const head = document.querySelector(".matrix thead");
const hidden = getComputedStyle(head).position === "absolute";
while (walker.nextNode()) {
  if (hidden && head.contains(walker.currentNode)) continue;
  for (const word of walker.currentNode.data.matchAll(/[^\\s/]+/g)) {
    const range = document.createRange();
    range.setStart(walker.currentNode, word.index);
    range.setEnd(walker.currentNode, word.index + word[0].length);
    if (new Set([...range.getClientRects()].map((each) => Math.round(each.top))).size > 1) broken.push(word[0]);
  }
}
return broken;
"""


# Just wide enough for one more column of cells, so each is as narrow as it gets.
@pytest.mark.parametrize("width", [390, 560, 806, 1050, 1290])
def test_no_word_of_the_matrix_is_broken(show: Callable[..., Browser], example: Path, width: int) -> None:
    assert show(example, width).run(_BROKEN_WORDS) == []


def test_on_paper_it_is_a_table_and_nothing_is_cut_off(
    show: Callable[..., Browser], study: tuple[Overview, Path]
) -> None:
    width = 1047  # a landscape A4 page, without its margins
    page = show(study[1], width, 700, "dark")
    page.media("print")
    style = "return [...document.querySelectorAll(arguments[0])].map(e => getComputedStyle(e)[arguments[1]])"
    assert set(page.run(style, "#filter, nav, .lanes", "display")) == {"none"}
    assert set(page.run(style, "table.matrix", "display")) == {"table"}
    assert "none" not in page.run(style, "svg .name", "display")
    assert page.run(style, "body", "backgroundColor") == ["rgb(255, 255, 255)"]
    assert page.run("return document.documentElement.scrollWidth") <= width
    right = (
        "return Math.max(...[...document.querySelectorAll('.timeline svg')].map(e => e.getBoundingClientRect().right))"
    )
    assert page.run(right) <= width
    folded = "for (const e of document.querySelectorAll('details')) e.open = false; return document.querySelector('.controls').checkVisibility()"
    if page.run("return CSS.supports('selector(::details-content)')"):
        assert page.run(folded)
    page.media("")


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")])
def test_axe_has_no_complaint(
    show: Callable[..., Browser], study: tuple[Overview, Path], axe: str, width: int, scheme: str
) -> None:
    page = show(study[1], width, 1000, scheme)
    page.run("for (const each of document.querySelectorAll('details')) each.open = true")
    assert page.violations(axe) == []
