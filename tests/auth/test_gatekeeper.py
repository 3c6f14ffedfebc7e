import logging
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from auth.audit import AuditAction, verify_audit
from auth.errors import (
    AuthError,
    InvalidRequest,
    InvalidToken,
    RateLimited,
    RoomForbidden,
    TokenAlreadyUsed,
)
from auth.gatekeeper import Gatekeeper
from auth.invites import InviteId, InviteStatus, InviteToken
from auth.keys import Jkt
from auth.limits import AUDIT_ROUTINE_BURST, CLIENT_BURST, INVITE_LIFE_MS_MAX
from outbox.errors import NotFound

# The world and node fixtures are built by tests/auth/conftest.py.
World = Any
Node = Any


def actions(world: World) -> list[str]:
    return [row.event.action.value for row in world.ledger.audit(0, 1000)]


def test_an_invite_is_listed_without_its_secret(world: World) -> None:
    invite, token = world.invite()
    assert world.gatekeeper.invites() == [invite]
    assert invite.secret_hash == token.secret_hash
    assert token.secret not in invite.secret_hash


@pytest.mark.parametrize(
    "rules", [{"life_ms": 0}, {"life_ms": INVITE_LIFE_MS_MAX + 1}, {"expected_key": Jkt("x")}, {"rooms": ()}]
)
def test_impossible_invites_are_refused(rules: dict[str, Any], world: World) -> None:
    with pytest.raises(InvalidRequest):
        world.invite(**rules)
    assert world.gatekeeper.invites() == []


def test_an_invite_opens_no_room_that_is_not_served(world: World) -> None:
    with pytest.raises(RoomForbidden):
        world.invite(rooms=("state", "secrets"))


def test_only_seeds_invite(world: World) -> None:
    world.gatekeeper = Gatekeeper(replace(world.gatekeeper.gate, certificate=""))
    with pytest.raises(InvalidRequest):
        world.invite()


def test_revocation_is_final(world: World, mbp: Node) -> None:
    gatekeeper = world.gatekeeper
    with pytest.raises(NotFound):
        world.transact(lambda: gatekeeper.revoke_invite(InviteId("inv_x"), world.now_ms))
    invite, _ = world.invite()
    revoked = world.transact(lambda: gatekeeper.revoke_invite(invite.id, world.now_ms))
    assert revoked.status is InviteStatus.REVOKED
    world.join(mbp)
    for row in gatekeeper.invites():
        with pytest.raises(TokenAlreadyUsed):
            world.transact(lambda row=row: gatekeeper.revoke_invite(row.id, world.now_ms))


def test_members_are_listed_for_their_admission_records(world: World, mbp: Node) -> None:
    world.join(mbp)
    (member,) = world.gatekeeper.members()
    assert (member.node, member.key, member.counter) == ("mbp", mbp.key.public.text, 1)
    assert (member.jkt, member.admitted_at_ms) == (mbp.key.public.jkt, world.now_ms)


def test_what_happened_is_in_the_audit(world: World, mbp: Node, make_node: Any) -> None:
    world.join(mbp)
    world.renew(mbp)
    _, token = world.invite()
    with pytest.raises(InvalidToken):
        world.exchange(make_node("lab"), InviteToken(token.id, bytes(32)))
    assert actions(world) == [
        "invite_created",
        "invite_reserved",
        "node_admitted",
        "ticket_renewed",
        "invite_created",
        "refused",
    ]
    rows = world.ledger.audit(0, 100)
    assert verify_audit(rows) == 6
    admitted, refusal = rows[2].event, rows[5].event
    assert (admitted.node, admitted.jkt) == ("mbp", mbp.key.public.jkt)
    assert (refusal.node, refusal.subject, refusal.detail) == ("lab", token.id, "exchange invalid_token")
    assert refusal.client.startswith("198.51.100.")


def test_strangers_cannot_fill_the_disk(make_world: Any, mbp: Node) -> None:
    world = make_world()
    _, token = world.invite()
    body = world.exchange_body(mbp, InviteToken(token.id, bytes(32)))
    for _ in range(AUDIT_ROUTINE_BURST + 50):
        world.calls += 1
        with pytest.raises(InvalidToken):
            world.send_exchange(body)
    assert actions(world).count(AuditAction.REFUSED) == AUDIT_ROUTINE_BURST
    world.upgrade(mbp, world.exchange(mbp, token).ws_ticket)
    assert actions(world)[-2:] == ["invite_reserved", "node_admitted"]


def test_noise_is_not_audited(world: World) -> None:
    with pytest.raises(InvalidRequest):
        world.send_exchange(b"[]")
    assert actions(world) == []


def test_one_address_is_slowed_down_and_others_are_not(world: World, mbp: Node) -> None:
    body, _ = mbp.joiner.challenge(world.pin, world.entropy())
    call = world.gatekeeper.challenge
    waits = []
    for _ in range(1000):
        try:
            call(body, world.now_ms, world.entropy(), "203.0.113.9")
        except RateLimited as error:
            waits.append(error.retry_after_ms)
    assert len(waits) == 1000 - CLIENT_BURST
    assert min(waits) > 0
    with pytest.raises(RateLimited):
        world.gatekeeper.exchange(b"", world.now_ms, world.entropy(), "203.0.113.9")
    assert call(body, world.now_ms, world.entropy(), "203.0.113.10")
    assert call(body, world.now_ms + max(waits), world.entropy(), "203.0.113.9")


def test_a_challenge_changes_nothing(world: World, mbp: Node) -> None:
    before = world.state()
    assert world.challenge(mbp).nonce != world.challenge(mbp).nonce
    assert world.state() == before


def test_no_secret_is_written_anywhere(
    world: World, mbp: Node, make_node: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The whole of joining, with refusals, then a search in files, logs, tracebacks and representations."""
    caplog.set_level(logging.DEBUG)
    shown, secrets = [], []

    def note(call: Callable[[], object]) -> None:
        try:
            shown.append(repr(call()))
        except AuthError as error:
            shown.extend([repr(error), error.hint, *traceback.format_exception(error)])

    invite, token = world.invite()
    body = world.exchange_body(mbp, token)
    answer = world.send_exchange(body)
    proof = world.socket_proof(mbp, answer.ws_ticket)
    secrets += [token.text, token.text.split(".")[1], token.secret.hex(), answer.ws_ticket, proof]
    secrets += [answer.ws_ticket.split(".")[2], proof.split(".")[2], body.decode()]
    note(lambda: invite)
    note(lambda: answer)
    note(lambda: world.gatekeeper.join_code(invite, token, ("https://vps.example",)))
    note(lambda: world.exchange(make_node("lab"), token))
    note(lambda: world.exchange(mbp, token))
    note(lambda: world.send_exchange(body))
    note(lambda: world.send_upgrade(answer.ws_ticket, proof))
    note(lambda: world.send_upgrade(answer.ws_ticket + "A", proof))
    note(lambda: world.gatekeeper.gate)
    note(world.gatekeeper.invites)
    note(lambda: world.ledger.audit(0, 100))
    files = b"".join(path.read_bytes() for path in world.database.path.parent.glob("journal.db*"))
    text = "\n".join([*shown, caplog.text])
    assert mbp.name.encode() in files
    for secret in [*secrets, world.gatekeeper.gate.nonce_key.hex()]:
        assert secret not in text
        assert secret.encode() not in files
    assert token.secret not in files


class Crowd(RuleBasedStateMachine):
    """Several machines fight for a few invites, in any order and at any time."""

    def __init__(self, world: World, make_node: Any) -> None:
        super().__init__()
        self.world = world
        self.nodes = [make_node(f"node-{name}", f"key {key}") for name in "ab" for key in range(3)]
        self.tokens: list[InviteToken] = []
        self.tickets: list[tuple[int, str]] = []
        self.bodies: list[bytes] = []
        self.admitted: dict[str, list[str]] = {}

    @precondition(lambda self: len(self.tokens) < 3)
    @rule()
    def invite(self) -> None:
        self.tokens.append(self.world.invite()[1])

    @precondition(lambda self: self.tokens)
    @rule(data=st.data(), who=st.integers(0, 5))
    def ask(self, data: st.DataObject, who: int) -> None:
        token = data.draw(st.sampled_from(self.tokens))
        self.bodies.append(self.world.exchange_body(self.nodes[who], token))
        self.send(self.bodies[-1], who)

    @precondition(lambda self: self.bodies)
    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        with pytest.raises(AuthError):
            self.world.send_exchange(data.draw(st.sampled_from(self.bodies)))

    def send(self, body: bytes, who: int) -> None:
        try:
            self.tickets.append((who, self.world.send_exchange(body).ws_ticket))
        except AuthError:
            return

    @precondition(lambda self: self.tickets)
    @rule(data=st.data(), thief=st.none() | st.integers(0, 5))
    def knock(self, data: st.DataObject, thief: int | None) -> None:
        who, ticket = data.draw(st.sampled_from(self.tickets))
        node = self.nodes[who if thief is None else thief]
        try:
            admission = self.world.upgrade(node, ticket)
        except AuthError:
            return
        assert node.key.public == self.nodes[who].key.public
        self.admitted.setdefault(admission.member.invite, []).append(admission.member.jkt)

    @precondition(lambda self: self.tokens)
    @rule(data=st.data())
    def revoke(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.tokens)).id
        try:
            self.world.gatekeeper.revoke_invite(name, self.world.now_ms)
        except TokenAlreadyUsed:
            return
        assert name not in self.admitted

    @rule(ms=st.sampled_from([1, 20_000, 46_000, 1_800_000]))
    def wait(self, ms: int) -> None:
        self.world.now_ms += ms

    @rule(number=st.integers(2, 9))
    def restart(self, number: int) -> None:
        self.world.start(f"boot-{number}")

    @invariant()
    def an_invite_admits_one_key_once(self) -> None:
        assert all(len(keys) == 1 for keys in self.admitted.values())
        used = {row.id for row in self.world.gatekeeper.invites() if row.status is InviteStatus.USED}
        assert used == set(self.admitted)

    @invariant()
    def names_and_keys_are_one_to_one(self) -> None:
        members = self.world.ledger.members()
        assert len({member.jkt for member in members}) == len(members)
        assert {jkt for keys in self.admitted.values() for jkt in keys} == {member.jkt for member in members}

    def teardown(self) -> None:
        verify_audit(self.world.ledger.audit(0, 10_000))


def test_an_invite_admits_at_most_one_key_in_any_order_of_events(make_world: Any, make_node: Any) -> None:
    run_state_machine_as_test(
        lambda: Crowd(make_world(), make_node),
        settings=settings(
            max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
