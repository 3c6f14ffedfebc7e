from hashlib import sha256
from itertools import product

import pytest

from auth.errors import InvalidToken, TokenAlreadyUsed
from auth.invites import (
    STEPS,
    Invite,
    InviteStatus,
    InviteStep,
    InviteToken,
    Reservation,
    check_secret,
    make_invite_token,
    read_invite_token,
)
from auth.keys import Jkt
from outbox.ids import NodeId

TOKEN = make_invite_token(bytes(range(42)))
INVITE = Invite(
    id=TOKEN.id, secret_hash=TOKEN.secret_hash, rooms=("state",), created_at_ms=0, expires_at_ms=1000
)


def test_a_token_is_read_back() -> None:
    assert read_invite_token(TOKEN.text) == TOKEN
    assert len(TOKEN.text) == 4 + 16 + 1 + 43
    assert TOKEN.secret == bytes(range(10, 42))


@pytest.mark.parametrize(
    "text",
    [
        "",
        TOKEN.text + "\n",
        TOKEN.text[:-1],
        TOKEN.text + "A",
        TOKEN.text.upper(),
        TOKEN.text[:-1] + "~",
        "inv_" + "9" * 16,
    ],
)
def test_other_texts_are_refused_like_an_unknown_token(text: str) -> None:
    with pytest.raises(InvalidToken):
        read_invite_token(text)


def test_a_token_has_one_text() -> None:
    # The last character carries two unused bits.
    last = TOKEN.text[-1]
    twins = [TOKEN.text[:-1] + chr(ord(last) + step) for step in (1, 2, 3)]
    for twin in twins:
        with pytest.raises(InvalidToken):
            read_invite_token(twin)


def test_only_the_right_secret_of_a_known_invite_is_taken() -> None:
    assert check_secret(INVITE, TOKEN) is INVITE
    wrong = InviteToken(TOKEN.id, sha256(b"x").digest())
    refusals = []
    for invite, token in ((None, TOKEN), (INVITE, wrong)):
        with pytest.raises(InvalidToken) as caught:
            check_secret(invite, token)
        refusals.append((str(caught.value), caught.value.hint))
    assert refusals[0] == refusals[1]


@pytest.mark.parametrize(("status", "step"), list(product(InviteStatus, InviteStep)))
def test_steps_are_those_of_the_table(status: InviteStatus, step: InviteStep) -> None:
    invite = Invite(id=TOKEN.id, secret_hash=b"", status=status, rooms=(), created_at_ms=0, expires_at_ms=0)
    if (status, step) in STEPS:
        assert invite.after(step).status is STEPS[status, step]
    else:
        with pytest.raises(TokenAlreadyUsed):
            invite.after(step)


def test_terminal_states_are_terminal() -> None:
    terminal = {InviteStatus.USED, InviteStatus.CONTESTED, InviteStatus.REVOKED}
    assert not {status for status, _ in STEPS} & terminal
    assert {*STEPS.values()} == terminal | {InviteStatus.RESERVED}


def test_a_reservation_is_kept() -> None:
    held = Reservation(Jkt("k"), NodeId("mbp"), ("state",), "tkt_1")
    reserved = INVITE.reserved(held)
    assert (reserved.status, reserved.reservation) == (InviteStatus.RESERVED, held)


def test_repr_shows_neither_secret_nor_hash() -> None:
    for text in (repr(TOKEN), repr(INVITE), f"{INVITE} {TOKEN}", str(TOKEN.__rich_repr__())):
        assert TOKEN.id in text
        assert TOKEN.text.split(".")[1] not in text
        assert "secret" not in text
