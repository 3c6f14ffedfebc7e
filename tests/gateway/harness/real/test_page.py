"""The page stands alone, says what happened, and lets no stranger's text through."""

from html.parser import HTMLParser

from gateway.harness.real.page import page
from gateway.judging.faults import Fault, FaultKind
from tests.gateway.harness.real.results import result


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_good_run():
    shown = page(result())
    assert "every promise was kept" in shown
    assert "a small disk needs Linux and root" in shown
    assert "n1 &gt; n2 for 1.0 s\n" not in shown, "the last line of the schedule ends the list"
    assert "for 0.5 s\n    2.5 s" in shown, "one fault a line"
    assert Tags(shown).open == []


def test_a_bad_run_names_what_broke_and_where_its_homes_are():
    shown = page(result(Fault(FaultKind.LOST, "evt_1", "<script>alert(1)</script>\u202e")))
    assert "1 promises were broken" in shown
    assert "/home/somebody/runs" in shown
    tags = Tags(shown)
    assert tags.open == []
    assert "script" not in tags.seen
    assert "\u202e" not in shown


def test_it_asks_for_nothing():
    shown = page(result())
    assert "default-src 'none'" in shown
    assert "http" not in shown.replace("http-equiv", "")
