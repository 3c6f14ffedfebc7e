import re

from msgspec.structs import replace

from spark.summary import Thread, ThreadEvent
from spark.timelines import timelines
from tests.spark.test_report import thread

AT = 1_780_000_000_000


def life(**more):
    fields = {"thread_id": "t", "root_id": "r", "kind": "message", "state": "emitted", "from_node": "a"}
    return ThreadEvent(**fields | {"created_at_ms": AT} | more)


def drawn(*events, as_of_ms=AT + 100_000):
    """What is drawn of each event: tone, from and to in percent of the scale; and how it ended."""
    page = timelines((Thread("t", 1, 1, events),), as_of_ms)
    shapes = [
        (tone, round(float(x)), round(float(x) + float(width)))
        for tone, x, width in re.findall(r'<rect class="(\w+)" x="([\d.]+)%" y="4" width="([\d.]+)%"', page)
    ]
    return shapes, re.findall(r'class="fate[^"]*">([^<]*)<', page)


def test_a_message_is_on_its_way_then_waits_then_has_its_turn():
    done = life(state="replied", accepted_at_ms=AT + 10, engaged_at_ms=AT + 50, done_at_ms=AT + 100)
    assert drawn(done) == ([("travel", 0, 10), ("wait", 10, 50), ("good", 50, 100)], ["replied after 100 ms"])


def test_what_is_open_lasts_to_the_end_of_the_scale():
    shapes, fates = drawn(life(state="accepted", accepted_at_ms=AT + 30_000), as_of_ms=AT + 60_000)
    assert (shapes, fates) == ([("travel", 0, 50), ("wait", 50, 100)], ["waiting"])
    assert drawn(life()) == ([("travel", 0, 100)], ["on its way"])


def test_the_scale_of_an_old_thread_does_not_reach_to_today():
    old = life(state="accepted", accepted_at_ms=AT + 100_000)
    (travel, waiting), _ = drawn(old, as_of_ms=AT + 10**12)
    assert travel[2] > 50
    assert waiting[2] == 100


def test_a_reply_is_over_when_it_is_accepted_and_a_dead_letter_when_it_is_given_up():
    reply = life(kind="reply", state="accepted", accepted_at_ms=AT + 50)
    dead = life(state="dead_letter", dead_at_ms=AT + 100)
    shapes, fates = drawn(reply, dead)
    assert shapes == [("travel", 0, 50), ("travel", 0, 100)]
    assert fates == ["waiting", "dead letter after 100 ms"] or fates[1] == "dead letter after 100 ms"
    assert "<circle" in timelines((Thread("t", 1, 1, (dead,)),), AT)


def test_a_failed_turn_ends_in_a_mark_and_incidents_are_marked():
    failed = life(
        state="processed",
        outcome="failed",
        accepted_at_ms=AT,
        engaged_at_ms=AT,
        done_at_ms=AT + 9,
        has_incident=True,
    )
    page = timelines((Thread("t", 1, 1, (failed,)),), AT)
    assert '<circle class="bad" cx="100.00%"' in page
    assert "has an incident" in page
    assert "failed after 9 ms" in page


def test_names_are_text_and_a_thread_without_dated_messages_is_no_error():
    page = timelines((thread("<script>", "n"),), AT)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "t <span" in timelines((Thread("t", 1, 1, ()),), AT)
    assert timelines((), AT) == '<p class="none">No thread has an incident.</p>'


def test_clocks_that_disagree_draw_nothing_backwards():
    early = life(state="replied", accepted_at_ms=AT - 500, engaged_at_ms=AT - 400, done_at_ms=AT + 100)
    shapes, _ = drawn(replace(early, created_at_ms=AT))
    assert all(end >= begin for _, begin, end in shapes)
