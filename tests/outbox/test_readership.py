"""Bodies travel where the header says; the chain is followed without them."""

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from outbox.chain import Checkpoint, Entry, Excerpt, Head, Page, Stub, extend, follow
from outbox.envelope import EVERYONE, Header, encode_header
from outbox.ids import Epoch, EventId, NodeId, Seq
from outbox.readership import excerpt, names, needs_body, whole, withheld

EPOCH = Epoch("000001-0123456789ab")
START = Head(EPOCH, Seq(0), b"\x00" * 32)
ME = NodeId("me")


def header(to: tuple[str, ...] | str) -> Header:
    return Header(event_id=EventId("evt_" + "0" * 32), kind="message", to=to, size=1)


def page(*tos: tuple[str, ...] | str) -> Page:
    entries = tuple(
        Entry(Seq(place), encode_header(header(to)), f"body {place}".encode())
        for place, to in enumerate(tos, 1)
    )
    head = extend(START, entries)
    return Page(EPOCH, entries, Checkpoint("mesh", "a", EPOCH, head.seq, head.hash, b""))


def test_a_body_is_for_whom_the_header_names() -> None:
    assert names(header(("me", "you")), ME)
    assert names(header(EVERYONE), ME)
    assert not names(header(("you",)), ME)
    assert not names(header(()), ME)
    assert needs_body(b"no header at all", ME)


def test_other_bodies_leave_their_hash_behind() -> None:
    part = excerpt(page(("me",), ("you",), EVERYONE), ME)
    assert [type(entry) for entry in part.entries] == [Entry, Stub, Entry]
    assert part.entries[1] == Stub(2, encode_header(header(("you",))), sha256(b"body 2").digest())
    assert withheld(part, ME) is None
    missing = withheld(part, NodeId("you"))
    assert missing is not None
    assert missing.seq == 2


TOS = st.lists(st.sampled_from([("me",), ("you",), (), ("me", "you"), EVERYONE]), min_size=1, max_size=8)


@given(TOS)
def test_every_excerpt_hashes_to_the_checkpoint_of_its_page(tos: list[tuple[str, ...] | str]) -> None:
    made = page(*tos)
    for reader in ("me", "you", "nobody"):
        part = excerpt(made, NodeId(reader))
        assert follow(START, part) == made.checkpoint.head
        assert withheld(part, NodeId(reader)) is None
    assert follow(START, whole(made)) == follow(START, made)
    assert whole(made) == Excerpt(EPOCH, made.entries, made.checkpoint)
