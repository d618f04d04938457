"""What is shown of a survey: tables, the page, and the comparison of two surveys."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import browser
import survey_repositories as made
from browser import Browser
from conftest import Ran
from html_text import Taken
from overview_projects import STEADY, TRAIN

pytest.importorskip("pyarrow", reason="needs the extra survey (pyarrow)")
pytest.importorskip("duckdb", reason="needs the extra survey (duckdb)")

Lint = Callable[..., Ran]
REQUIRES = "torch==2.13.0\n"
LIGHTNING = """import lightning
from net import Net

lightning.Trainer().fit(Net())
"""
NET = """import lightning
import torch

class Net(lightning.LightningModule):
    def training_step(self, batch, number):
        return torch.nn.functional.dropout(batch).sum()
"""
in_a_browser = [
    pytest.mark.slow,
    pytest.mark.skipif(browser.missing() is not None, reason=str(browser.missing())),
    pytest.mark.xdist_group("browser"),
]


def surveyed(place: Path, projects: dict[str, dict[str, str]]) -> str:
    """The folder of the dataset of some projects."""
    from torchrepro_lint.interfaces.cli.app import main

    names = [str(made.folder(place / "code" / name, files)) for name, files in projects.items()]
    with pytest.raises(SystemExit) as ended:
        main(["survey", *names, str(place / "code" / "<b>gone</b>"), "-o", str(place / "out"), "-q"])
    assert ended.value.code == 0
    return str(place / "out")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A survey of three projects, of one without torch, and of one that is not there."""
    return surveyed(
        tmp_path_factory.mktemp("survey"),
        {
            "good": {"train.py": STEADY, "requirements.txt": REQUIRES},
            "bad": {**made.PROJECT, "again.py": TRAIN, "requirements.txt": "torch==2.1.0\n"},
            "light": {"fit.py": LIGHTNING, "net.py": NET, "requirements.txt": REQUIRES},
            "other": {"print.py": 'import random\nopen("a.txt", "w").write(str(random.random()))\n'},
        },
    )


def tables(lint: Lint, *words: str) -> dict[str, list[dict[str, object]]]:
    ran = lint("survey", *words, "--output-format", "json")
    assert ran.status == 0, ran.err
    return {
        table["title"]: [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
        for table in json.loads(ran.out)
    }


def test_the_tables(out: str, lint: Lint) -> None:
    found = tables(lint, "show", out)
    summary = {row["what"]: row["number"] for row in found["Survey"]}
    assert (summary["repositories"], summary["failed"], summary["entry points"], summary["reproducible"]) == (
        5,
        1,
        5,
        1,
    )
    verdicts = {row["verdict"]: row["entry points"] for row in found["Entry points by verdict"]}
    assert sum(verdicts.values()) == 5
    assert verdicts["reproducible"] == 1
    rules = found["Most frequent rules"]
    assert [row["repositories"] for row in rules] == sorted((row["repositories"] for row in rules), reverse=True)
    assert sum(row["findings"] for row in rules) == summary["findings"]
    releases = {
        row["torch"]: (row["entry points"], row["share"]) for row in found["Reproducible entry points by target torch"]
    }
    assert releases == {"2.1": (3, 0.0), "2.13": (2, 0.5)}
    frameworks = {row["framework"]: row["entry points"] for row in found["Reproducible entry points by framework"]}
    assert frameworks == {"none of these": 4, "lightning": 1}
    assert [(row["reason"], row["repositories"]) for row in found["What failed, or in part"]] == [("missing", 1)]
    text = lint("survey", "show", out, "--limit", "1").out
    assert "Most frequent rules\ncode " in text
    assert "20.0%" in text
    assert text.count("\nTRL") == 1


def test_a_query_of_the_user(out: str, lint: Lint) -> None:
    asked = "SELECT name, files FROM runs WHERE status = 'ok' ORDER BY files DESC, name"
    assert tables(lint, "show", out, "--sql", asked)[""] == [
        {"name": "bad", "files": 4}, {"name": "light", "files": 2}, {"name": "good", "files": 1}, {"name": "other", "files": 1},
    ]  # fmt: skip
    ran = lint("survey", "show", out, "--sql", "SELECT nothing FROM runs")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("torchrepro-lint: --sql: ")
    assert lint("survey", "show", out, "--sql", "FROM findings WHERE code = 'TRL999'").out == "(nothing)\n"


def test_tables_escape_what_a_terminal_obeys(tmp_path: Path, lint: Lint) -> None:
    place = str(made.folder(tmp_path / "a\x1b[31m", {"a.py": "import torch\n"}))
    lint("survey", place, "-o", str(tmp_path / "out"), "-q")
    assert "\x1b" not in lint("survey", "show", str(tmp_path / "out"), "--sql", "FROM runs").out


def test_the_page_has_everything_and_needs_nothing(out: str, tmp_path: Path, lint: Lint) -> None:
    assert lint("survey", "report", out, "-o", str(tmp_path / "page.html"), "--title", "A <i>study").status == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert lint("survey", "report", out, "--title", "A <i>study").out == page
    taken = Taken(page)
    assert taken.open == []
    assert len(set(taken.ids)) == len(taken.ids)
    assert not taken.tags & {"link", "img", "iframe", "object", "i", "b"}
    assert not {name for _, name, _ in taken.values} & {"style", "src", "onclick", "onload"}
    links = [value for tag, name, value in taken.values if (tag, name) == ("a", "href")]
    assert {link.removeprefix("#") for link in links} <= set(taken.ids)
    for words in (
        "A <i>study",
        "1 of 5 entry points",
        "20.0%",
        "Worst repositories",
        "Best repositories",
        "lightning",
        "missing",
    ):
        assert words in taken.text
    assert "<b>gone</b>" in taken.text
    assert "default-src 'none'" in page


def test_a_survey_without_an_entry_point_has_a_page(tmp_path: Path, lint: Lint) -> None:
    out = surveyed(tmp_path, {"empty": {"a.py": ""}})
    assert "No entry point was found" in lint("survey", "report", out).out
    assert "(nothing)" in lint("survey", "show", out).out


def test_what_got_better_and_worse(tmp_path: Path, lint: Lint) -> None:
    worse = STEADY.replace("torch.use_deterministic_algorithms(True)\n", "")
    assert worse != STEADY
    files = {"requirements.txt": REQUIRES}
    old = surveyed(
        tmp_path / "old",
        {
            "up": {**files, "a.py": worse},
            "down": {**files, "a.py": STEADY},
            "same": {**files, "a.py": worse},
            "left": files,
        },
    )
    new = surveyed(
        tmp_path / "new",
        {
            "up": {**files, "a.py": STEADY},
            "down": {**files, "a.py": worse},
            "same": {**files, "a.py": worse},
            "came": files,
        },
    )
    found = tables(lint, "compare", old, new)
    both = {row["what"]: (row["old"], row["new"]) for row in found["Both surveys"]}
    assert both["repositories in both"] == (4, 4)  # by name: their paths differ
    assert both["repositories in only one"] == (1, 1)
    assert both["reproducible entry points"] == (1, 1)
    (better,) = found["Better repositories"]
    (worse_row,) = found["Worse repositories"]
    assert Path(str(better["repository"])).name == "up"
    assert (better["reproducible before"], better["reproducible now"]) == (0, 1)
    assert better["controls worse"] == 0 < better["controls better"]
    assert Path(str(worse_row["repository"])).name == "down"
    assert (worse_row["new findings"], worse_row["findings gone"]) == (better["findings gone"], better["new findings"])
    controls = {
        row["control"]: (row["better"], row["worse"]) for row in found["Controls of entry points that are in both"]
    }
    assert controls["algorithms"] == (1, 1)
    assert {row["code"] for row in found["Findings by rule"]} == {"TRL203"}
    assert tables(lint, "compare", old, old)["Worse repositories"] == []


def test_two_versions_of_a_package_are_compared(tmp_path: Path, lint: Lint) -> None:
    for side, version, text in (("old", "1.0", TRAIN), ("new", "1.1", STEADY)):
        (tmp_path / side).mkdir()
        files = {**made.PROJECT, "train.py": text}
        lint("survey", str(made.sdist(tmp_path / f"study-{version}.tar.gz", files)), "-o", str(tmp_path / side), "-q")
    found = tables(lint, "compare", str(tmp_path / "old"), str(tmp_path / "new"))
    assert [row["repository"] for row in found["Better repositories"]] == [str(tmp_path / "study-1.1.tar.gz")]


@pytest.fixture
def show(chromium: Browser, out: str, tmp_path: Path, lint: Lint) -> Iterator[Callable[..., Browser]]:
    """Opens the page; what it writes to the console is an error."""
    lint("survey", "report", out, "-o", str(tmp_path / "page.html"))

    def opened(width: int = 1440, height: int = 1000, scheme: str = "light") -> Browser:
        chromium.emulate(width, height, scheme)
        chromium.complaints()
        chromium.open(tmp_path / "page.html")
        return chromium

    yield opened
    assert chromium.complaints() == []


class TestInABrowser:
    pytestmark = in_a_browser

    @pytest.mark.parametrize(("width", "height"), [(390, 844), (820, 1180), (1280, 800)])
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_nothing_is_wider_than_the_screen(
        self, show: Callable[..., Browser], width: int, height: int, scheme: str
    ) -> None:
        page = show(width, height, scheme)
        assert page.run("return document.documentElement.scrollWidth") <= width
        wide = "return [...document.querySelectorAll('table, section, svg')].filter(e => e.getBoundingClientRect().right > innerWidth + 1).length"
        assert page.run(wide) == 0

    def test_light_and_dark_differ(self, show: Callable[..., Browser]) -> None:
        colour = "return getComputedStyle(document.body).backgroundColor"
        assert show(scheme="light").run(colour) == "rgb(255, 255, 255)"
        assert show(scheme="dark").run(colour) != "rgb(255, 255, 255)"

    def test_the_keyboard_reaches_every_link_and_shows_where_it_is(self, show: Callable[..., Browser]) -> None:
        page = show()
        seen = page.tab_through()
        assert seen[0] == "#main"
        assert seen == page.run("return [...document.querySelectorAll('a')].map(a => a.getAttribute('href'))")

    @pytest.mark.parametrize("width", [1440, 390])
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_axe_has_no_complaint(self, show: Callable[..., Browser], axe: str, width: int, scheme: str) -> None:
        assert show(width, 1000, scheme).violations(axe) == []
