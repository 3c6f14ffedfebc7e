from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from auth import jws
from auth.errors import ExpiredTicket, InvalidTicket
from auth.invites import InviteId
from auth.keys import Jkt, SigningKey
from auth.tickets import Ticket, TicketClaims, claims_of, make_ticket_ids, mint_ticket, read_ticket
from outbox.ids import NodeId

VPS, BOOT, NOW_MS = NodeId("vps"), "boot-1", 1_800_000_000_500
TICKET = Ticket(
    jti="tkt_1",
    session="ses_1",
    node=NodeId("mbp"),
    jkt=Jkt("k"),
    rooms=("state",),
    invite=InviteId("inv_1"),
    issued_at_s=1_800_000_000,
)


def read(text: str, key: SigningKey, now_ms: int = NOW_MS) -> TicketClaims:
    return read_ticket(text, VPS, key.public, BOOT, now_ms)


def test_a_ticket_says_what_its_row_says(key: SigningKey) -> None:
    claims = read(mint_ticket(TICKET, VPS, key, BOOT), key)
    assert claims == claims_of(TICKET, VPS)
    assert (claims.exp - claims.iat, claims.aud) == (45, "ansible-yjs")


def test_the_claims_on_the_wire_are_those_of_the_contract(key: SigningKey) -> None:
    names = set(msgspec.to_builtins(claims_of(TICKET, VPS)))
    assert names == {"iss", "sub", "aud", "rooms", "inviteId", "jti", "iat", "exp", "cnf"}
    renewed = msgspec.structs.replace(TICKET, invite=None)
    assert names - set(msgspec.to_builtins(claims_of(renewed, VPS))) == {"inviteId"}


@pytest.mark.parametrize(("late_ms", "good"), [(44_499, True), (44_500, False), (45_500, False)])
def test_it_lives_for_45_seconds(late_ms: int, good: bool, key: SigningKey) -> None:
    text = mint_ticket(TICKET, VPS, key, BOOT)
    if good:
        read(text, key, NOW_MS + late_ms)
    else:
        with pytest.raises(ExpiredTicket):
            read(text, key, NOW_MS + late_ms)


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "lab"},
        {"iss": ""},
        {"iss": ["vps"]},
        {"aud": ["ansible-yjs"]},
        {"aud": "ansible"},
        {"sub": 5},
        {"jti": None},
        {"rooms": "state"},
        {"exp": 1_800_000_061},
        {"exp": 2_100_000_000},
        {"exp": 1_799_999_999},
        {"iat": 1_800_000_001, "exp": 1_800_000_046},
        {"exp": "1800000045"},
        {"cnf": {}},
        {"cnf": {"jkt": "k", "x": 1}},
        {"admin": True},
    ],
    ids=str,
)
def test_other_claims_are_no_ticket(changes: dict[str, Any], key: SigningKey) -> None:
    claims = msgspec.to_builtins(claims_of(TICKET, VPS)) | changes
    forged = msgspec.defstruct("Claims", list(claims))(**claims)
    with pytest.raises(InvalidTicket):
        read(jws.sign("ansible-ticket+jwt", forged, key, kid=BOOT), key)


def test_other_keys_boots_and_types_are_no_ticket(
    key: SigningKey, make_key: Callable[[str], SigningKey]
) -> None:
    claims = claims_of(TICKET, VPS)
    for text in (
        mint_ticket(TICKET, VPS, make_key("gateway 2"), BOOT),
        mint_ticket(TICKET, VPS, key, "boot-0"),
        mint_ticket(TICKET, NodeId("lab"), key, BOOT),
        jws.sign("ansible-node-proof+jwt", claims, key, kid=BOOT),
        jws.sign("ansible-ticket+jwt", claims, key),
        "",
    ):
        with pytest.raises(InvalidTicket):
            read(text, key)


def test_ids_come_from_the_entropy() -> None:
    assert make_ticket_ids(bytes(32)) == ("tkt_" + "A" * 22, "ses_" + "A" * 22)


def test_repr_of_claims_shows_no_confirmation() -> None:
    assert "cnf" not in repr(claims_of(TICKET, VPS))
