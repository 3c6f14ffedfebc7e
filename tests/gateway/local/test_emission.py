"""What a report found goes back into the mesh, once, whatever dies meanwhile."""

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from gateway.cli.emission import Emitted, emit, notice_id
from gateway.engine.signals import ID_MAX
from gateway.errors import Unreachable
from gateway.home import HomeError
from outbox.envelope import decode_event
from spark.summary import IncidentLine

if TYPE_CHECKING:
    from tests.gateway.local.conftest import LocalNode

AT = 1_780_000_000_000


def line(number: int, **more: object) -> IncidentLine:
    fields = {
        "incident_id": f"dead_letter:evt_{number:032x}", "name": "dead_letter", "severity": "critical",
        "root_id": f"evt_{number:032x}", "kind": "message", "from_node": "vps", "state": "dead_letter",
        "attempts": 1, "opened_at_ms": AT, "detail": "expired",
    }  # fmt: skip
    return IncidentLine(**fields | more)  # type: ignore[arg-type]


def signals(node: "LocalNode") -> list[str]:
    """Idempotency keys of the signals in the outbox, in order."""
    page = node.reader.read(replace(node.reader.head(), seq=0), 1000, 1 << 24)
    events = [decode_event(entry.body) for entry in page.entries] if page else []
    return [event.idempotency_key or "" for event in events if event.kind == "signal"]


async def test_each_is_told_once_over_many_runs(node: "LocalNode") -> None:
    lines = [line(1), line(2), line(3, closed_at_ms=AT + 5)]
    assert await emit(node.home, "jen", lines[:1]) == Emitted(1, 0)  # it died after the first
    assert await emit(node.home, "jen", lines) == Emitted(1, 0)
    assert await emit(node.home, "jen", lines) == Emitted(0, 0)
    assert len(signals(node)) == 2

    over = [replace(line(1), closed_at_ms=AT + 9), line(2)]
    assert await emit(node.home, "jen", over) == Emitted(0, 1)
    assert await emit(node.home, "jen", over) == Emitted(0, 0)
    assert len(signals(node)) == 3
    open_here = [row.subject for row in node.reader.incidents(open_only=True) if row.kind == "reported"]
    assert open_here == [f"vps/{line(2).incident_id}"]


async def test_whose_maintenance_it_opened_in_is_told_before_the_rest(node: "LocalNode") -> None:
    lines = [line(1, maintenance_of=("mbp",)), line(2, maintenance_of=("mbp", "vps"), detail=None)]
    assert await emit(node.home, "jen", lines) == Emitted(2, 0)
    rows = {
        row.subject: row.detail for row in node.reader.incidents(open_only=True) if row.kind == "reported"
    }
    told = [rows[f"vps/{each.incident_id}"].partition(": ")[2] for each in lines]
    assert told == ["during maintenance of mbp; expired", "during maintenance of mbp and vps"]


async def test_an_agent_that_is_not_there_or_a_gateway_that_is_down_is_told(node: "LocalNode") -> None:
    with pytest.raises(HomeError, match=r"nobody\.token"):
        await emit(node.home, "nobody", [line(1)])
    node.home.socket.unlink()
    with pytest.raises(Unreachable):
        await emit(node.home, "jen", [line(1)])


def test_an_id_that_is_too_long_for_a_key_is_one_that_follows_from_it() -> None:
    long = line(1, incident_id="seq_gap:" + "x" * 200)
    assert len(notice_id(long)) <= ID_MAX
    assert notice_id(long) == notice_id(long)
    assert notice_id(long) != notice_id(replace(long, incident_id="seq_gap:" + "x" * 201))
    assert notice_id(line(1)) == line(1).incident_id
    assert len(notice_id(line(1, incident_id="x" * ID_MAX))) == ID_MAX
