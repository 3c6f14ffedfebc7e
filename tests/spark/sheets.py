"""Reports of every size, for looking at: quiet, a bad day, and a very bad one with hostile names.

``python -m tests.spark.sheets DIR`` writes them as HTML, and as PNG when a browser is there.
"""

import sys
from pathlib import Path
from random import Random

from spark.limits import AGENTS_MAX, BUCKETS_MAX, FLOWS_MAX, ROUTES_MAX, SAMPLES_MAX, THREAD_EVENTS_MAX
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

AS_OF_MS = 1_780_000_000_000
WIDTH_MS = 1_800_000
CLASSES = (
    ("never_accepted", "critical"), ("dead_letter", "critical"), ("fork", "critical"),
    ("accepted_not_processed", "major"), ("turn_failed", "major"), ("eta_breach", "major"),
    ("duplicate_engagement", "major"), ("clock_skew", "minor"), ("late_ack", "minor"),
)  # fmt: skip
NODES = ("vps", "mbp", "lab", "edge-7")
AGENTS = ("planner", "coder", "reviewer", "deployer", "watcher", "archivist", "tester")
HOSTILE = (
    "</script><script>alert(1)</script>", "\"'><img src=//evil.example/x onerror=alert(1)>",
    "\u202egnp.exe\u2066 \x1b[31mred\x1b[0m", "&lt;b&gt; " + "w" * 54, "x" * 63,
)  # fmt: skip


def sheet(incidents: int, *, hostile: bool = False) -> Summary:
    """A day of a mesh with so many incidents."""
    chance = Random(incidents)
    agents = HOSTILE if hostile else AGENTS
    nodes = (*NODES[:2], HOSTILE[0], HOSTILE[2]) if hostile else NODES
    messages = 260 if incidents < 100 else 2_400_000
    classes = _classes(incidents)
    starts = [AS_OF_MS - AS_OF_MS % WIDTH_MS - i * WIDTH_MS for i in reversed(range(48))][:BUCKETS_MAX]
    return Summary(
        as_of_ms=AS_OF_MS,
        thresholds=DEFAULTS,
        standings=tuple(_standings(messages, incidents)),
        streams=tuple(Stream(node, messages, 3 if hostile else 0) for node in nodes),
        states=(
            StateCount("message", "replied", messages - incidents),
            StateCount(
                "message",
                "dead_letter",
                sum(line.incidents for line in classes if line.name == "dead_letter"),
            ),
            StateCount("reply", "accepted", messages // 2),
        ),
        classes=classes,
        latency=tuple(_latency(chance, agents, nodes, messages)),
        buckets=tuple(_bucket(chance, start, messages // 48, incidents // 96) for start in starts),
        bucket_ms=WIDTH_MS,
        incident_counts=tuple(
            IncidentCount(start, line.name, max(1, line.incidents // 12))
            for line in classes
            for start in chance.sample(starts, min(len(starts), line.incidents, 14))
        ),
        threads=tuple(_threads(chance, agents, nodes, incidents)),
        incidents=tuple(
            _incident(chance, classes[i % len(classes)], agents, nodes, i)
            for i in range(min(incidents, SAMPLES_MAX))
        ),
    )


def _classes(incidents: int) -> tuple[ClassCount, ...]:
    if incidents == 0:
        return ()
    if incidents < 20:
        counts = (2, 1, 0, incidents - 4, 1, 0, 0, 0, 0)
    else:
        shares = (0.02, 0.11, 0.0001, 0.5, 0.2, 0.07, 0.003, 0.0, 0.09)
        counts = tuple(round(incidents * part) for part in shares)
    return tuple(
        ClassCount(name, severity, count, count // 2)
        for (name, severity), count in zip(CLASSES, counts, strict=True)
        if count
    )


def _standings(messages: int, incidents: int):
    windows = (2_419_200_000, 604_800_000)
    for measure, limit, target, selected, title, missed in (
        (Measure.ANSWERED, 300_000, 0.99, (("kind", "message"), ("agent", "coder")), "The coder answers",
         incidents // 2),
        (Measure.ACCEPTED, 60_000, 0.999, (("kind", "message"),), "", incidents // 1000),
        (Measure.PROCESSED, None, 0.995, (("fromAgent", "planner"), ("toAgent", "reviewer")),
         "Reviews end well",         incidents // 9),
        (Measure.REPLIED, 3_600_000, 0.9, (("capability", "forecast/3"),), "", 0),
    ):  # fmt: skip
        judged = 0 if measure is Measure.REPLIED else messages
        objective = Objective(
            name="o", title=title, measure=measure, selected=selected, limit_ms=limit, target=target,
            window_ms=windows[missed % 2],
        )  # fmt: skip
        recent = tuple(
            Share(width, judged // part, judged // part - min(judged // part, missed // (part - 3)))
            for width, part in ((3_600_000, 24), (21_600_000, 4))
        )
        yield Standing(objective, Share(objective.window_ms, judged, judged - min(missed, judged)), recent)


def _latency(chance: Random, agents, nodes, messages: int):
    def line(dimension, source, target, events, scale):
        low = int(scale * chance.uniform(0.5, 2))
        percentiles = (low, low * 6, low * 40)
        return LatencyLine(
            dimension, source, target, events, events, events, events, events, 0, 0, events // 50,
            percentiles, tuple(9 * ms for ms in percentiles), tuple(10 * ms for ms in percentiles),
        )  # fmt: skip

    yield line("all", "", "", messages, 20)
    yield line("kind", "message", "", messages, 20)
    yield line("kind", "reply", "", messages // 2, 12)
    pairs = [(source, target) for source in nodes for target in nodes]
    for source, target in pairs[:FLOWS_MAX]:
        yield line("nodes", source, target, chance.randint(1, messages // 8), 20)
    for agent in (agents * 3)[: AGENTS_MAX if messages > 1000 else len(agents)]:
        yield line("agent", agent, "", chance.randint(1, messages), 60)
    for capability in ("forecast/3", HOSTILE[0] if agents is HOSTILE else "review/1", ""):
        yield line("capability", capability, "", chance.randint(1, messages), 400)
    routes = [(source, target) for source in agents for target in agents if source != target]
    for source, target in routes[:ROUTES_MAX]:
        yield line("route", source, target, chance.randint(1, messages), 90)


def _bucket(chance: Random, start: int, done: int, failed: int) -> Bucket:
    return Bucket(
        start, chance.randint(done // 2, done), chance.randint(0, done // 9), chance.randint(0, failed)
    )


def _threads(chance: Random, agents, nodes, incidents: int):
    names = ("release-2.4", "nightly-import", "evt_019f7c3d4e5f70000000000000000001", "pager", "refit")
    for rank, name in enumerate(names[: 0 if incidents == 0 else 2 if incidents < 100 else 5]):
        at = AS_OF_MS - 7_200_000
        events = []
        for i in range(5 if incidents < 100 else THREAD_EVENTS_MAX):
            at += chance.randint(20_000, 600_000)
            events.append(_life(chance, name, (agents, nodes), at, i))
        yield Thread(
            HOSTILE[rank] if agents is HOSTILE else name, incidents // (3 + rank) + 1, 1, tuple(events)
        )


def _life(chance: Random, thread: str, party, at: int, i: int) -> ThreadEvent:
    agents, nodes = party
    accepted = at + chance.choice((40, 900, 70_000))
    engaged = accepted + chance.choice((10, 30_000, 400_000))
    done = engaged + chance.choice((5_000, 90_000))
    fate = ("replied", "processed", "accepted", "dead_letter", "replied", "emitted")[i % 6]
    reached = {"replied": 3, "processed": 3, "accepted": 1, "dead_letter": 0, "emitted": 0}[fate]
    return ThreadEvent(
        thread_id=thread, root_id=f"evt_{i:032x}", kind="reply" if i % 6 == 4 else "message", state=fate,
        from_agent=agents[i % len(agents)], to_agent=agents[(i + 1) % len(agents)], from_node=nodes[0],
        to_node=nodes[1], created_at_ms=at, outcome="failed" if i % 6 == 1 else None,
        accepted_at_ms=accepted if reached >= 1 else None, engaged_at_ms=engaged if reached >= 2 else None,
        done_at_ms=done if reached >= 3 else None, dead_at_ms=at + 900_000 if fate == "dead_letter" else None,
        has_incident=i % 6 in {1, 2, 3},
    )  # fmt: skip


def _incident(chance: Random, line: ClassCount, agents, nodes, i: int) -> IncidentLine:
    opened = AS_OF_MS - chance.randint(1, 86_400_000)
    detail = ("expired after 8 attempts", "ValueError: no such gauge: 'saltgate'", None, "x" * 400)[i % 4]
    return IncidentLine(
        incident_id=f"i{i}", name=line.name, severity=line.severity, root_id=f"evt_{i:032x}", kind="message",
        from_node=nodes[i % 4], state="dead_letter", attempts=1 + i % 8, opened_at_ms=opened,
        closed_at_ms=opened + 90_000 if i % 3 == 2 else None, created_at_ms=opened - 60_000,
        from_agent=agents[i % len(agents)], to_agent=agents[(i + 2) % len(agents)],
        to_node=nodes[(i + 1) % 4], detail=detail,
    )  # fmt: skip


SHEETS = {
    "quiet": (0, False),
    "bad-day": (7, False),
    "very-bad-day": (70_000, False),
    "hostile": (70_000, True),
}


def main(place: Path) -> None:
    from tests.spark.browser import CHROMIUM, Browser

    place.mkdir(parents=True, exist_ok=True)
    for name, (incidents, hostile) in SHEETS.items():
        (place / f"{name}.html").write_text(render(sheet(incidents, hostile=hostile)))
    if CHROMIUM is None:
        return
    with Browser(place / "profile") as browser:
        for name in SHEETS:
            for width in (400, 1600):
                for dark in (False, True):
                    browser.open(place / f"{name}.html", width, dark=dark)
                    browser.screenshot(place / f"{name}-{width}-{'dark' if dark else 'light'}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
