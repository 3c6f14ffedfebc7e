import msgspec
import pytest

from gateway.api.rows import InboxRow
from gateway.client import shown as module
from gateway.client.shown import Shown
from outbox.ids import AgentId, NodeId, make_event_id


def row(number: int, node: str = "vps") -> InboxRow:
    return InboxRow(
        event_id=make_event_id(number, b"0" * 10),
        kind="message",
        sender=None,
        from_node=NodeId(node),
        recipient=AgentId("bob"),
        priority=2,
        created_at="",
        accepted_at_ms=0,
        expires_at_ms=0,
        state="queued",
        payload=msgspec.Raw(b"1"),
    )


def test_a_row_is_shown_once_whichever_way_it_comes() -> None:
    shown = Shown([row(1)])
    assert shown.new([row(1), row(2), row(2)]) == [row(2)]
    assert shown.new([row(2), row(1)]) == []


def test_two_nodes_may_use_one_id() -> None:
    assert Shown([row(1)]).new([row(1, "mbp")]) == [row(1, "mbp")]


def test_it_remembers_the_newest_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEEN_MAX", 3)
    shown = Shown([row(1)])
    assert len(shown.new([row(2), row(3), row(4)])) == 3
    assert shown.new([row(4), row(3), row(2)]) == []
    assert shown.new([row(1)]) == [row(1)]
