import json
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.wire.codec import FRAMES, HISTORY, decode, encode
from gateway.wire.frames import VERSIONS, Bye, Entries, Frame, Hello, Stock
from gateway.wire.limits import (
    ENTRIES_MAX,
    FRAME_BYTES_MAX,
    HAVE_STREAMS_MAX,
    HEADER_BYTES_MAX,
    SAFE_INTEGER_MAX,
    TEXT_MAX,
)
from gateway.wire.pages import Header
from outbox.chain import Checkpoint, Entry, Excerpt, Stub
from outbox.errors import BadFrame
from outbox.ids import Epoch, MeshId, NodeId, Seq
from outbox.limits import SEQ_MAX

GOLDEN = Path(__file__).parent / "golden"
HASH = "A" * 43 + "="
SIGNATURE = "A" * 86 + "=="
EPOCH = "000001-0123456789ab"
MESH = "m" * 43
SHA = "ab" * 32


def message(fields: object, payload: bytes = b"") -> bytes:
    text = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
    return len(text).to_bytes(4) + text + payload


def entries(**changes: object) -> dict[str, object]:
    checkpoint = {"mesh": MESH, "hash": HASH, "signature": SIGNATURE}
    fields = {
        "t": "entries",
        "node": "vps",
        "epoch": EPOCH,
        "from": 1,
        "ask": 1,
        "sizes": [[1, 2]],
        "checkpoint": checkpoint,
    }
    return fields | changes


def stock(**changes: object) -> dict[str, object]:
    return {"node": "vps", "epoch": EPOCH, "first": 1, "last": 1, "hash": HASH} | changes


def floor(**changes: object) -> dict[str, object]:
    place = {"epoch": EPOCH, "seq": 1, "hash": HASH, "signature": SIGNATURE}
    return {"t": "floor", "node": "vps", "ask": 1, **place} | changes


def golden(version: int) -> dict[str, bytes]:
    lines = (GOLDEN / f"v{version}.txt").read_text().splitlines()
    return {
        name: bytes.fromhex(raw) for name, raw in (line.split() for line in lines if not line.startswith("#"))
    }


def test_version_1_is_still_read(frames1: dict[str, Frame]) -> None:
    assert {name: decode(raw, 1) for name, raw in golden(1).items()} == frames1


def test_version_1_is_still_written(frames1: dict[str, Frame]) -> None:
    assert {name: encode(frame, 1) for name, frame in frames1.items()} == golden(1)


def test_version_2_is_read_and_written(frames: dict[str, Frame]) -> None:
    assert {name: decode(raw) for name, raw in golden(2).items()} == frames
    assert {name: encode(frame) for name, frame in frames.items()} == golden(2)


def test_the_table_names_every_frame_and_every_field() -> None:
    for header in get_args(Header):
        tag = header.__struct_config__.tag
        (row,) = (rule for rule in FRAMES if rule.frame == tag)
        for field in header.__struct_fields__:
            wire_name = "from" if field == "first" and tag == "entries" else field
            assert wire_name in row.fields, (tag, field)
    assert [rule.frame for rule in FRAMES] == [header.__struct_config__.tag for header in get_args(Header)]
    assert all(field in FRAMES[1].fields for field in Stock.__struct_fields__)
    assert tuple(number for number, _, _ in HISTORY) == VERSIONS


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x00\x00\x00",
        b"\x00\x00\x00\x00",
        b"\x00\x00\x00\x05{}",
        b"\xff\xff\xff\xff{}",
        message(b"\xff\xfe"),
        message(b'{"t":"ping","at_ms":1'),
        message(b'{"t":"ping","at_ms":"\xff"}'),
        message(b"[" * 5_000),
        message([]),
        message({"at_ms": 1}),
        message({"t": "poke", "at_ms": 1}),
        message({"t": "ping"}),
        message({"t": "ping", "at_ms": 1, "more": 1}),
        message({"t": "ping", "at_ms": -1}),
        message({"t": "ping", "at_ms": True}),
        message({"t": "ping", "at_ms": 1.5}),
        message({"t": "ping", "at_ms": SAFE_INTEGER_MAX + 1}),
        message({"t": "ping", "at_ms": 10**40}),
        message({"t": "ping", "at_ms": 1}, b"payload"),
        message({"t": "ping", "at_ms": 1, "pad": " " * HEADER_BYTES_MAX}),
        message({"t": "hello", "v": 0, "versions": [1], "node": "vps", "mesh": MESH, "time_ms": 1}),
        message({"t": "hello", "v": 1, "versions": [], "node": "vps", "mesh": MESH, "time_ms": 1}),
        message({"t": "hello", "v": 1, "versions": [1] * 17, "node": "vps", "mesh": MESH, "time_ms": 1}),
        message({"t": "hello", "v": 1, "versions": [1], "node": "../vps", "mesh": MESH, "time_ms": 1}),
        message({"t": "hello", "v": 1, "versions": [1], "node": "vps", "mesh": "m", "time_ms": 1}),
        message({"t": "have", "node": "vps", "epoch": EPOCH, "seq": 1, "hash": HASH}),
        message({"t": "have", "streams": [stock(hash="AAAA")]}),
        message({"t": "have", "streams": [stock(epoch="")]}),
        message({"t": "have", "streams": [stock(node="VPS")]}),
        message({"t": "have", "streams": [stock(first=0)]}),
        message({"t": "have", "streams": [stock(signature=HASH)]}),
        message({"t": "have", "streams": [stock(new=1)]}),
        message({"t": "have", "streams": [stock()] * (HAVE_STREAMS_MAX + 1)}),
        message({"t": "credit", "bytes": 0}),
        message(entries(**{"from": SEQ_MAX}), b"abc"),
        message({"t": "credit", "bytes": 2**40}),
        message({"t": "want", "node": "vps", "epoch": None, "after": 1}),
        message({"t": "want", "node": "vps", "epoch": "", "after": 0}),
        message({"t": "want", "node": "VPS", "epoch": None, "after": 0}),
        message({"t": "want", "node": "vps", "epoch": "1", "after": 0}),
        message({"t": "want", "node": "vps", "epoch": None, "after": 0, "filter": "some"}),
        message({"t": "want", "node": "vps", "epoch": None, "after": 0, "ask": 0}),
        message({"t": "seen", "node": "vps", "epoch": EPOCH + "\n", "seq": 1}),
        message(floor(seq=SEQ_MAX + 1)),
        message(floor(seq=0)),
        message({"t": "bye", "code": "x" * 501}),
        message({"t": "blob_want", "sha256": "ab", "offset": 0, "bytes": 1}),
        message({"t": "blob_want", "sha256": SHA.upper(), "offset": 0, "bytes": 1}),
        message({"t": "blob_want", "sha256": SHA, "offset": -1, "bytes": 1}),
        message({"t": "blob_want", "sha256": SHA, "offset": 0, "bytes": 0}),
        message({"t": "blob_none", "sha256": SHA, "code": "why"}),
        message({"t": "blob", "sha256": SHA, "offset": 0, "total": 1}),
        message({"t": "blob", "sha256": SHA, "offset": 1, "total": 2}, b"ab"),
        message({"t": "blob", "sha256": SHA, "offset": 0, "total": 10**6}, bytes(64 * 1024 + 1)),
        message(entries(), b"ab"),
        message(entries(), b"abcd"),
        message(entries(sizes=[]), b""),
        message(entries(sizes=[[3]]), b"abc"),
        message(entries(sizes=[[4, -1]]), b"abc"),
        message(entries(sizes=[[1, 2, 0]]), b"abc"),
        message(entries(sizes=[[3, None]]), b"abc"),
        message(entries(ask=0), b"abc"),
        message(entries(sizes=[[0, 10**9]]), b"abc"),
        message(entries(sizes=[[0, 0]] * 1_001)),
        message(entries(**{"from": 0}), b"abc"),
        message(entries(checkpoint={"mesh": MESH, "hash": HASH, "signature": HASH}), b"abc"),
        message(entries(checkpoint={"mesh": "?", "hash": HASH, "signature": SIGNATURE}), b"abc"),
        bytes(FRAME_BYTES_MAX + 1),
    ],
    ids=lambda raw: repr(raw[4:40]),
)
def test_what_is_no_frame_is_refused(raw: bytes) -> None:
    with pytest.raises(BadFrame):
        decode(raw)


@pytest.mark.parametrize(
    "fields",
    [
        {"t": "x" * 60_000},
        {"t": "ping", "x" * 60_000: 1},
        {"t": "want", "node": "x" * 60_000, "epoch": None, "after": 0},
        {"t": "seen", "node": "vps", "epoch": "x" * 60_000, "seq": 1},
    ],
    ids=["kind", "field", "node", "epoch"],
)
def test_of_what_is_no_frame_little_is_repeated(fields: object) -> None:
    with pytest.raises(BadFrame) as caught:
        decode(message(fields))
    assert len(str(caught.value)) <= TEXT_MAX


def test_a_frame_written_by_hand_from_the_table_is_read() -> None:
    frame = decode(message(entries(sizes=[[1, 2], [0, 1], [1, None]]), b"abcde" + bytes(32)))
    assert isinstance(frame, Entries)
    assert frame.page.entries == (
        Entry(Seq(1), b"a", b"bc"),
        Entry(Seq(2), b"", b"d"),
        Stub(Seq(3), b"e", bytes(32)),
    )
    assert frame.page.checkpoint == Checkpoint(
        MeshId(MESH), NodeId("vps"), Epoch(EPOCH), Seq(3), bytes(32), bytes(64)
    )


def test_a_newer_peer_can_still_say_hello_and_bye() -> None:
    hello = {
        "t": "hello",
        "v": 3,
        "versions": [2, 3],
        "node": "vps",
        "mesh": MESH,
        "time_ms": 5,
        "new": {"a": 1},
    }
    assert decode(message(hello)) == Hello(3, (2, 3), NodeId("vps"), MeshId(MESH), 5)
    assert decode(message({"t": "bye", "code": "version", "new": 1})) == Bye("version")


@given(
    first=st.integers(1, SEQ_MAX - ENTRIES_MAX),
    parts=st.lists(
        st.tuples(st.binary(max_size=40), st.binary(max_size=80), st.booleans()), min_size=1, max_size=8
    ),
    digest=st.binary(min_size=32, max_size=32),
)
def test_any_page_comes_back_verbatim(
    first: int, parts: list[tuple[bytes, bytes, bool]], digest: bytes
) -> None:
    page_entries = tuple(
        Stub(Seq(first + place), header, digest) if left_out else Entry(Seq(first + place), header, body)
        for place, (header, body, left_out) in enumerate(parts)
    )
    node, epoch = NodeId("vps"), Epoch(EPOCH)
    checkpoint = Checkpoint(MeshId(MESH), node, epoch, page_entries[-1].seq, digest, digest * 2)
    frame = Entries(node, Excerpt(epoch, page_entries, checkpoint))
    assert decode(encode(frame)) == frame


@settings(max_examples=1_000)
@given(
    version=st.sampled_from(VERSIONS),
    name=st.sampled_from(sorted(golden(1))),
    cuts=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.binary(max_size=4)), min_size=1, max_size=4
    ),
)
def test_damaged_frames_are_frames_or_refused(
    version: int, name: str, cuts: list[tuple[float, bytes]]
) -> None:
    raw = golden(version)[name]
    for place, patch in cuts:
        at = int(place * len(raw))
        raw = raw[:at] + patch + raw[at + len(patch or b"x") :]
    try:
        frame = decode(raw, version)
    except BadFrame:
        return
    assert decode(encode(frame, version), version) == frame


@given(st.binary(max_size=200))
def test_noise_is_refused(noise: bytes) -> None:
    with pytest.raises(BadFrame):
        decode(noise)
