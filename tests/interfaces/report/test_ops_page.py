"""The page of operations in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import browser
from browser import Browser
from torchrepro_lint.catalogue.release_history import histories
from torchrepro_lint.interfaces.report.ops_html import render

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(browser.missing() is not None, reason=str(browser.missing())),
    pytest.mark.xdist_group("browser"),
]
ALL = len(histories())
LEFT, RIGHT, DOWN, ENTER, ESCAPE = "\ue012", "\ue014", "\ue015", "\ue007", "\ue00c"


@pytest.fixture
def page(chromium: Browser, tmp_path: Path) -> Iterator[Browser]:
    """The page, freshly opened on a desktop's screen; what it writes to the console is an error."""
    place = tmp_path / "ops.html"
    place.write_text(render(histories(), None), encoding="utf-8")
    chromium.emulate(1440, 1000, "light")
    chromium.complaints()
    chromium.open(place)
    yield chromium
    assert chromium.complaints() == []


def shown(page: Browser) -> list[str]:
    rows = "return [...document.querySelectorAll('#table tbody tr:not([hidden]) th a')].map(a => a.hash.slice(1))"
    names = page.run(rows)
    count = page.run("return document.querySelector('#count').textContent")
    assert count == f"{len(names)} of {ALL} operations"
    assert page.run("return document.querySelectorAll('article:not([hidden])').length") == len(names)
    assert page.run("return document.querySelector('#none').hidden") == bool(names)
    return list(names)


def choose(page: Browser, **values: str) -> None:
    for name, value in values.items():
        page.run(
            "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
            "e.dispatchEvent(new Event('input', {bubbles: true}))",
            name,
            value,
        )


def test_the_filter(page: Browser) -> None:
    assert len(shown(page)) == ALL
    page.type("#text", "F.interpolate")
    assert shown(page) == ["torch.nn.functional.interpolate"]
    choose(page, text="median CUDA")
    assert shown(page) == ["torch.median", "torch.nanmedian"]
    choose(page, text="nothing like it")
    assert shown(page) == []
    page.click("#filter button")
    assert page.run("return new Promise(done => setTimeout(() => done(true), 50))")
    assert len(shown(page)) == ALL


def test_status_release_and_device_are_of_one_cell(page: Browser) -> None:
    choose(page, release="2.6", status="raises", device="cuda")
    raising = having("2.6", "cuda", "raises")
    assert shown(page) == raising
    assert "torch.cumsum" not in raising
    choose(page, release="2.5")
    assert "torch.cumsum" in shown(page)
    choose(page, status="", device="mps")
    assert shown(page) == having("2.5", "mps")
    assert 0 < len(having("2.5", "mps")) < ALL


def having(release: str, device: str, status: str = "") -> list[str]:
    """The operations that have a status on a device in a release."""
    return [
        history.operation
        for history in histories()
        if any(status in ("", name) and {device, "any"} & set(devices) for name, devices in history.at(release).shown)
    ]


def test_a_cell_opens_with_condition_error_and_evidence(page: Browser) -> None:
    page.type("#text", "cumsum")
    page.click("tr:not([hidden]) a[href='#torch.cumsum-1.13']")
    assert page.run("return document.querySelector('dialog').open")
    text = page.run("return document.querySelector('dialog').innerText")
    for part in (
        "torch.cumsum in torch 1.13",
        "raises",
        "floating-point or complex input",
        "cumsum_cuda_kernel",
        "binaries",
    ):
        assert part in text
    page.press(ESCAPE)
    assert not page.run("return document.querySelector('dialog').open")
    assert page.run("return document.activeElement.hash") == "#torch.cumsum-1.13"


def test_the_keyboard_is_enough(page: Browser) -> None:
    page.type("#text", "cums")
    assert page.run("return document.querySelectorAll('#table tbody a[tabindex=\"0\"]').length") == 1
    page.run("document.querySelector('#table tbody a[tabindex=\"0\"]').focus()")
    page.press(RIGHT)
    page.press(RIGHT)
    assert page.run("return document.activeElement.hash") == "#torch.cumsum-1.13"
    page.press(LEFT)
    page.press(ENTER)
    assert "silently nondeterministic" in page.run("return document.querySelector('dialog').innerText")
    page.press(ENTER)  # the close button has the focus
    assert not page.run("return document.querySelector('dialog').open")
    choose(page, text="torch.bmm")
    assert page.run("return document.querySelectorAll('#table tbody tr:not([hidden]) a[tabindex=\"0\"]').length") == 1
    choose(page, text="")
    page.run("document.querySelector(\"a[href='#torch.bincount-1.7']\").focus()")
    page.press(DOWN)
    assert page.run("return document.activeElement.closest('tr').cells[0].innerText.trim()") == "torch.bmm"


@pytest.mark.parametrize(("width", "height"), [(360, 740), (390, 844), (820, 1180), (1280, 800)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_screen(page: Browser, width: int, height: int, scheme: str) -> None:
    page.emulate(width, height, scheme)
    assert page.run("return document.documentElement.scrollWidth") <= width
    low, high = page.run(
        "const cells = [...document.querySelectorAll('td')].map(c => c.getBoundingClientRect());"
        "return [Math.min(...cells.map(c => c.left)), Math.max(...cells.map(c => c.right))]"
    )
    assert 0 <= low < high <= width


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", 390),
        ("dark", 1440),
        pytest.param("light", 1440, marks=pytest.mark.long),
        pytest.param("dark", 390, marks=pytest.mark.long),
    ],
)
def test_axe_has_no_complaint(page: Browser, axe: str, width: int, scheme: str) -> None:
    page.emulate(width, 900, scheme)
    assert page.violations(axe) == []
    page.click("td a")
    assert page.violations(axe) == []
