import re

from msgspec.structs import replace

from spark.latencies import slowest, stages
from tests.spark.test_report import line, summary


def plain(html):
    return " ".join(re.sub("<[^>]*>", " ", html).split())


def test_each_step_of_each_kind_has_its_percentiles():
    page = plain(stages(summary()))
    assert "message → accepted 5 ms 90 ms 4 s" in page
    assert "reply → replied" in page


def test_a_route_names_both_ends_and_what_was_measured():
    assert "planner → coder 10 messages 5 ms" in plain(slowest((line("route", "planner", "coder"),), "route"))
    assert "\u2013 10 messages" in plain(slowest((line("agent"),), "agent"))
    never = replace(line("agent", "a"), process_ms=None)
    assert "a 10 messages, accepted 5 ms" in plain(slowest((never,), "agent"))
    assert plain(slowest((), "agent")) == "Nothing was measured."
    assert plain(slowest((line("agent", "a", percentiles=None),), "agent")) == "Nothing was measured."
