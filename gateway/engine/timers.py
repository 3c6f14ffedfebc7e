"""What time does to the sender's obligations: lost attempts, broken promises, expiry."""

from msgspec.structs import replace

from gateway.engine.attempts import retry
from gateway.engine.deliveries import advance
from gateway.engine.inquiries import ask
from gateway.engine.letters import NEVER_ACCEPTED, NOT_PROCESSED, about, bury
from gateway.engine.limits import DUE_MAX
from gateway.engine.maintenance import meanwhile
from gateway.engine.tick import Tick
from gateway.engine.unowed import end
from outbox.delivery import Input
from outbox.ids import NodeId, Seq, epoch_ordinal
from outbox.records import Delivery, DeliveryState


def run_timers(tick: Tick) -> None:
    """Handle every delivery whose time has come."""
    for row in tick.store.due_deliveries(tick.now.wall_ms, DUE_MAX):
        if _is_out(tick, row):
            end(tick, row)
        elif row.state is DeliveryState.ACCEPTED:
            _overdue(tick, row)
        elif tick.now.wall_ms >= row.expires_at_ms:
            bury(tick, row, Input.EXPIRED, "expired")
        elif row.state is DeliveryState.RETRY_PENDING:
            _check_sla(tick, row)
            retry(tick, row)
        else:
            _unaccepted(tick, row)


def _is_out(tick: Tick, row: Delivery) -> bool:
    """Whether it stands at a node that was put out, and of which nothing more is waited for."""
    if row.node is None or not tick.view.revocations or tick.view.revoked(row.node) is None:
        return False
    return not tick.peers.endings.awaits(row.node)


def find_lost(tick: Tick, node: NodeId) -> None:
    """Retry what a node has read and provably did not accept.

    Only the node's own published cursor proves it, and only once its stream has been read here up to the head
    that it published with that cursor: a slow link or an absent node never burns an attempt.
    """
    upto = read_by(tick, node)
    if upto is not None:
        before_ms = tick.now.wall_ms - tick.policy.retry.ack_timeout_ms
        for row in tick.store.unanswered(node, upto, before_ms, DUE_MAX):
            advance(tick, row, Input.LOST)


def read_by(tick: Tick, node: NodeId) -> Seq | None:
    """Up to where a node says it has read us, once we have read all that it had written by then."""
    published = tick.view.cursor(node, tick.identity.node)
    theirs = tick.view.cursors.get(node)
    ours = tick.store.cursor(node)
    if published is None or theirs is None or ours is None or published[0] != tick.identity.epoch:
        return None
    epoch, seq = theirs.head
    read = (epoch_ordinal(ours.epoch), ours.seq) >= (epoch_ordinal(epoch), seq)
    return published[1] if read else None


def _unaccepted(tick: Tick, row: Delivery) -> None:
    assert row.node is not None, "what has no node is a dead letter from the start"
    upto = read_by(tick, row.node)
    if upto is not None and upto >= row.seq:
        advance(tick, row, Input.LOST)
        return
    _check_sla(tick, row)
    sla_at_ms = _sla_ms(tick, row)
    next_at_ms = sla_at_ms if sla_at_ms > tick.now.wall_ms else row.expires_at_ms
    tick.store.put_delivery(replace(row, next_at_ms=min(row.expires_at_ms, next_at_ms)))


def _check_sla(tick: Tick, row: Delivery) -> None:
    if tick.now.wall_ms >= _sla_ms(tick, row):
        tick.open_incident(NEVER_ACCEPTED, about(row), _where(tick, row))


def _where(tick: Tick, row: Delivery) -> str:
    return f"{row.to_agent} at {row.node}{meanwhile(tick, row.node, tick.identity.node)}"


def _sla_ms(tick: Tick, row: Delivery) -> int:
    return row.created_at_ms + tick.policy.sla_accept_ms


def _overdue(tick: Tick, row: Delivery) -> None:
    """Accepted and silent: an incident and one status request; a day after its expiry a dead letter."""
    give_up_ms = row.expires_at_ms + tick.policy.silence_ms
    if tick.now.wall_ms >= give_up_ms:
        bury(tick, row, Input.EXPIRED, "silence")
        return
    assert row.node is not None
    if tick.store.incident(NOT_PROCESSED, about(row)) is None:
        ask(tick, row, row.node)
    tick.open_incident(NOT_PROCESSED, about(row), _where(tick, row))
    tick.store.put_delivery(replace(row, next_at_ms=give_up_ms))
