"""The report in a real browser: nothing is asked for, nothing is complained about, nothing sticks out."""

from itertools import product

import pytest

from spark.report import render
from tests.spark.browser import CHROMIUM, Browser
from tests.spark.sheets import SHEETS, sheet

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH (Debian: apt install chromium)")

_STICKS_OUT = """
[...document.querySelectorAll('body *')]
    .filter(e => !e.closest('thead, svg') && e.getClientRects().length)
    .filter(e => e.getBoundingClientRect().right > innerWidth + 1 || e.getBoundingClientRect().left < -1)
    .map(e => e.outerHTML.slice(0, 120))
"""

_CONTRAST = """
(() => {
    const channels = text => text.match(/[\\d.]+/g).map(Number);
    const part = value => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    const light = ([r, g, b]) => 0.2126 * part(r / 255) + 0.7152 * part(g / 255) + 0.0722 * part(b / 255);
    const behind = e => {
        for (; e; e = e.parentElement) {
            const colour = channels(getComputedStyle(e).backgroundColor);
            if (colour.length < 4 || colour[3] > 0.99) return colour;
        }
        return [255, 255, 255];
    };
    const texts = [...document.querySelectorAll('body *')].filter(e => !e.closest('svg')
        && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()));
    return texts.map(e => {
        const [a, b] = [light(channels(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
        return [(a + 0.05) / (b + 0.05), e.outerHTML.slice(0, 120)];
    }).filter(([ratio]) => ratio < 4.5);
})()
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("chromium")) as page:
        yield page


@pytest.fixture(scope="module", params=SHEETS)
def page(request, tmp_path_factory):
    incidents, hostile = SHEETS[request.param]
    path = tmp_path_factory.mktemp("page") / f"{request.param}.html"
    path.write_text(render(sheet(incidents, hostile=hostile)))
    return path


@pytest.mark.parametrize(("width", "dark"), list(product((400, 1600), (False, True))))
def test_a_real_browser_shows_all_of_it_and_asks_nobody(browser, page, width, dark):
    browser.open(page, width, dark=dark)
    assert browser.ask("document.title") == "Gateway Mesh SLA report"
    assert browser.ask("document.documentElement.scrollWidth") <= width
    assert browser.ask(_STICKS_OUT) == []
    assert browser.ask(_CONTRAST) == []
    assert browser.ask("document.scripts.length + document.images.length") == 0

    asked = [
        e["params"]["request"]["url"]
        for e in browser.events
        if e.get("method") == "Network.requestWillBeSent"
    ]
    assert asked == [page.as_uri()]
    complaints = {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"}
    assert [event for event in browser.events if event.get("method") in complaints] == []


def test_has_headings_names_and_words_for_those_who_cannot_see_it(browser, page):
    browser.open(page, 1600)
    assert browser.ask("document.querySelectorAll('h1').length") == 1
    assert browser.ask(
        "[...document.querySelectorAll('section')].every(s => s.ariaLabelledByElements?.length"
        " || document.getElementById(s.getAttribute('aria-labelledby')))"
    )
    unnamed = "[...document.querySelectorAll('svg')].filter(s => !s.ariaHidden && !s.ariaLabel).length"
    assert browser.ask(unnamed) == 0
    assert browser.ask(
        "new Set([...document.querySelectorAll('[id]')].map(e => e.id)).size ==="
        " document.querySelectorAll('[id]').length"
    )


def test_the_check_sees_what_it_looks_for(browser, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text(
        '<p style="width:900px;color:#ccc;background:#fff">wide and pale</p><img src="file:///nowhere.png">'
        "<script>throw new Error('no')</script>"
    )
    browser.open(bad, 400)
    assert browser.ask("document.documentElement.scrollWidth") > 400
    assert len(browser.ask(_STICKS_OUT)) == 1
    assert len(browser.ask(_CONTRAST)) == 1
    methods = [event.get("method") for event in browser.events]
    assert methods.count("Network.requestWillBeSent") == 2
    assert "Runtime.exceptionThrown" in methods
