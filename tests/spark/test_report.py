import re
from html.parser import HTMLParser

import pytest

from spark.limits import AGENTS_MAX, BUCKETS_MAX, FLOWS_MAX, NAME_MAX, ROUTES_MAX, SAMPLES_MAX, THREADS_MAX
from spark.objectives import Measure, Objective, Share, Standing
from spark.report import render
from spark.sla import DEFAULTS
from spark.summary import (
    Bucket,
    ClassCount,
    IncidentCount,
    IncidentLine,
    LatencyLine,
    StateCount,
    Stream,
    Summary,
    Thread,
    ThreadEvent,
)
from tests.spark.sheets import SHEETS, sheet

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=http://evil.example/x onerror=alert(1)>',
    "</style><svg onload=alert(1)>",
    "'; style='background:url(//evil.example)",
    "\u202ereversed\u2066\x1b[31m\x00",
    "&lt;b&gt;",
)
LONG = "x" * 63


class Page(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words, self.open = set(), [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in {"meta", "rect", "line", "circle", "path"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in {"rect", "line", "circle", "path"}:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def line(dimension, source="", target="", percentiles=(5, 90, 4000)):
    return LatencyLine(
        dimension, source, target, 10, 10, 9, 9, 8, 1, 1, 1, percentiles, percentiles, percentiles,
    )  # fmt: skip


def standing(judged=1000, kept=990, name="message-accepted", title="", target=0.99):
    wanted = Objective(
        name=name, title=title, measure=Measure.ACCEPTED, selected=(("kind", "message"),), limit_ms=60_000,
        target=target, window_ms=2_419_200_000,
    )  # fmt: skip
    recent = (Share(3_600_000, judged // 100, max(0, judged // 100 - 2)), Share(21_600_000, judged, kept))
    return Standing(wanted, Share(wanted.window_ms, judged, kept), recent)


def thread(name="planner", node="vps", events=2):
    lives = tuple(
        ThreadEvent(
            thread_id=name, root_id=name, kind="message", state="replied", from_node=node, from_agent=name,
            to_agent=name, created_at_ms=1_780_000_000_000 + i, accepted_at_ms=1_780_000_001_000 + i,
            engaged_at_ms=1_780_000_002_000 + i, done_at_ms=1_780_000_009_000 + i,
        )
        for i in range(events)
    )  # fmt: skip
    return Thread(name, 3, 1, lives)


def summary(name="planner", node="vps", detail="boom", size=1, word="boom", **more):
    fields = {
        "as_of_ms": 1_780_000_000_000,
        "thresholds": DEFAULTS,
        "standings": (standing(),),
        "streams": (Stream(node, 1234, 1),),
        "states": (StateCount("message", "processed", 8), StateCount("message", "dead_letter", 1)),
        "classes": tuple(
            ClassCount(name, severity, 3, 2)
            for name, severity in (("dead_letter", "critical"), ("turn_failed", "major"), (word, "major"))
        ),
        "latency": (
            line("all"),
            line("kind", "message"),
            line("kind", "reply"),
            *(line("nodes", node, f"{node}{i}") for i in range(min(size, FLOWS_MAX))),
            *(line("agent", name) for _ in range(min(size, AGENTS_MAX))),
            *(line("route", name, name) for _ in range(min(size, ROUTES_MAX))),
        ),
        "buckets": tuple(
            Bucket(1_780_000_000_000 + i * 1000, 3, 2, 1) for i in range(min(size, BUCKETS_MAX))
        ),
        "bucket_ms": 1000,
        "incident_counts": (IncidentCount(1_780_000_000_000, "dead_letter", 3),),
        "threads": tuple(thread(name, node) for _ in range(min(size, THREADS_MAX))),
        "incidents": tuple(
            IncidentLine(
                incident_id="x", name=word, severity="critical", root_id=word, kind="message", from_node=node,
                state="dead_letter", attempts=3, from_agent=name, to_agent=name, to_node=node, detail=detail,
                opened_at_ms=1_780_000_000_000, closed_at_ms=1_780_000_001_000, created_at_ms=None,
            )
            for _ in range(size)
        ),
    }  # fmt: skip
    return Summary(**fields | more)


@pytest.mark.parametrize("text", HOSTILE)
def test_text_from_strangers_stays_text(text):
    html = render(summary(text, text, text, word=text))
    page = Page(html)
    assert page.open == []
    assert page.tags.isdisjoint({"script", "img", "link", "iframe", "object", "a", "base", "form"})
    assert not any(name.startswith("on") or name in {"src", "href"} for name, _ in page.attributes)
    assert not re.search("[\x00\x1b\u202e\u2066]", html)
    if not re.search("[\x00\u202e]", text):
        assert text[:NAME_MAX] in "".join(page.words)


def test_asks_nobody_for_anything():
    html = render(summary())
    assert "default-src 'none'" in html
    assert not re.search(r"https?://|@import|url\(", html)


def test_stays_small_whatever_the_size_of_the_mesh():
    many = tuple(Stream(f"{LONG}{i}", 1, 0) for i in range(1000))
    html = render(summary(LONG, LONG, "&" * 500, size=1000, word="w" * 36, streams=many))
    assert len(html.encode()) < 100 * 1024
    assert html.count("gateway trace") == SAMPLES_MAX


@pytest.mark.parametrize("name", SHEETS)
def test_stays_below_100_kib_on_the_worst_day(name):
    incidents, hostile = SHEETS[name]
    page = render(sheet(incidents, hostile=hostile))
    assert len(page.encode()) < 100 * 1024
    assert Page(page).open == []


def test_shows_what_an_operator_needs_at_a_glance():
    html = render(summary())
    for words in (
        "SLA report", "vps", "message accepted within 1 min", "99 %", "Every objective met",
        "6 open incidents",
        "Dead letter", "Turn failed", "Flow between nodes", "Messages over time", "Slowest routes",
        "gateway trace boom",
        "Not collected: vps0", "1 doubtful", "prefers-color-scheme:dark", "2026-05-28 20:26:40 UTC",
    ):  # fmt: skip
        assert words in html, words


def test_capabilities_are_shown_where_some_are_asked_for():
    asked = (line("capability", "forecast/3"), line("capability", ""))
    html = render(summary(latency=asked))
    assert "Slowest capabilities" in html
    assert html.count("10 messages") == 1
    assert "Slowest capabilities" not in render(summary(latency=asked[1:]))


def test_an_empty_report_says_so():
    nothing = dict.fromkeys(
        ("states", "classes", "latency", "buckets", "incidents", "streams", "standings", "threads"), ()
    )
    html = render(summary(**nothing))
    assert Page(html).open == []
    for words in (
        "Every objective met, no open incident.",
        "None: every promise was kept.",
        "No objectives.",
        "No thread has an incident.",
        "No messages.",
        "Nothing was measured.",
        "No dated messages.",
    ):
        assert words in html
