"""Revoked keys: what words about them come to, and what is left of what they have signed."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from outbox import base64url
from outbox.chain import Checkpoint
from outbox.ids import AgentId, Epoch, MeshId, NodeId, Seq
from stateroom.bodies import ROOT, LastPlace, RevocationBody, RoomMap, revocation_key
from stateroom.errors import InvalidRecord
from stateroom.index import Index
from stateroom.limits import STANDS_MAX
from stateroom.records import parse_record, thumbprint
from stateroom.revocations import Revocation, by_need, fitting, merge, merged, revocation_of, stands
from tests.stateroom.conftest import EPOCH, Mesh, public_key

B = NodeId("b")


def word(
    mesh: Mesh,
    node: str,
    by: str = "seed",
    *,
    key: str | None = None,
    seq: int | None = None,
    counter: int = 1,
    of: str | None = None,
    **fields: object,
) -> str:
    raw = public_key(key or node)
    last = None
    if seq is not None:
        at = mesh.checkpoint(node, EPOCH, seq, hashlib.sha256(b"head").digest())
        last = LastPlace(epoch=at.epoch, seq=at.seq, hash=at.hash, signature=at.signature)
    body = RevocationBody(
        node=node, public_key=base64url.encode(raw), last=last, **{"next_epoch": 1000, **fields}
    )
    place = revocation_key(of or thumbprint(raw), by)
    return mesh.record(RoomMap.REVOCATIONS, place, by, body, counter=counter)


def standing(index: Index, node: str) -> bytes:
    return stands(index.standing(NodeId(node)))


def offer(index: Index, *texts: str) -> None:
    for text in texts:
        record = parse_record(text)
        index.offer(record.map.value, record.key, text)


checkpoints = st.none() | st.builds(
    lambda ordinal, seq, digest: Checkpoint(
        MeshId("m"), B, Epoch(f"{ordinal:06d}-000000000000"), Seq(seq), bytes([digest]) * 32, bytes(64)
    ),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(0, 2),
)
words = st.builds(
    Revocation,
    public_key=st.just(bytes(32)),
    node=st.sampled_from([B, NodeId("c")]),
    by_root=st.booleans(),
    ban=st.booleans(),
    last=checkpoints,
    next_epoch=st.integers(1, 3000),
    said=st.tuples(st.sampled_from(["s1", "s2"]), st.sampled_from(["", "lost"])),
    stands=st.frozensets(st.binary(min_size=16, max_size=16), max_size=3),
)


@given(words, words, words)
def test_words_can_be_put_together_in_any_order_any_number_of_times(
    one: Revocation, two: Revocation, three: Revocation
) -> None:
    assert merge(one, two) == merge(two, one)
    assert merge(merge(one, two), three) == merge(one, merge(two, three))
    assert merge(one, one) == one


@given(words, words)
def test_the_lowest_place_counts_a_ban_stays_and_the_roots_word_stands_alone(
    one: Revocation, two: Revocation
) -> None:
    both = merge(one, two)
    if one.by_root is two.by_root:
        assert both.ban is (one.ban or two.ban)
        assert both.last in (one.last, two.last)
        if None in (one.last, two.last):
            assert both.last is None
        else:
            assert (both.last.epoch, both.last.seq) == min((w.last.epoch, w.last.seq) for w in (one, two))
    else:
        assert both == (one if one.by_root else two)


def test_no_word_is_no_revocation() -> None:
    assert merged([]) is None


def test_a_word_survives_its_record(mesh) -> None:
    record = parse_record(word(mesh, "b", seq=7, ban=True, reason="lost", stands=bytes(32)))
    found = revocation_of(record)
    assert found.public_key == public_key("b")
    assert (found.ban, found.said, found.next_epoch, found.by_root) == (True, ("seed", "lost"), 1000, False)
    assert found.last == mesh.checkpoint("b", EPOCH, 7, hashlib.sha256(b"head").digest())
    assert found.stands == frozenset({bytes(16)})


def test_a_revoked_key_is_admitted_no_more(mesh) -> None:
    index = mesh.index("b", "c")
    offer(index, mesh.node("b"), mesh.cursors("b", {}), mesh.agent("x", "b"))
    offer(index, word(mesh, "b", seq=4, reason="stolen"))
    view = index.view({})
    assert set(view.nodes) == {"seed", "c"}
    assert (view.cursors, view.agents) == ({}, {})
    found = view.revoked(B)
    assert (found.public_key, found.last.seq, found.by, found.reason) == (
        public_key("b"),
        4,
        "seed",
        "stolen",
    )
    assert view.revoked(NodeId("c")) is None
    assert index.admitted("b") is None
    assert index.heartbeat(mesh.heartbeat("b", 9)) is None


def test_what_the_revocation_names_stands_and_nothing_that_is_signed_later(mesh) -> None:
    index = mesh.index("b", "c")
    agent = mesh.agent("x", "b")
    offer(index, agent)
    offer(index, word(mesh, "b", stands=standing(index, "b")))
    later = mesh.agent("y", "b"), mesh.agent("x", "b", counter=9, status="removed"), mesh.node("b")
    offer(index, *later)
    view = index.view({})
    assert view.agents["x"].status == "active"
    assert set(view.agents) == {"x"}
    assert index.record(RoomMap.AGENTS, "x").text == agent


def test_what_the_key_signed_over_it_before_gives_way_to_what_stands_once_it_is_put_back(mesh) -> None:
    index = mesh.index("b")
    agent, later = mesh.agent("x", "b"), mesh.agent("x", "b", counter=9, status="removed")
    there = mesh.index("b")
    offer(there, agent)
    revocation = word(mesh, "b", stands=standing(there, "b"))
    offer(index, agent, later, revocation, agent)  # the room puts back what counts elsewhere
    offer(there, revocation, later)
    assert index.digest() == there.digest()
    assert index.view({}).agents["x"].status == "active"


@pytest.mark.parametrize(
    "make",
    [
        lambda m: word(m, "b", by="c"),
        lambda m: word(m, "b", by="b"),
        lambda m: word(m, "b", by="nobody"),
        lambda m: word(m, "seed", by="seed"),
        lambda m: word(m, "seed", by="c"),
        lambda m: word(m, "b", by="seed", of=thumbprint(public_key("c"))),
        lambda m: word(m, "b")[:-2] + "AA",
    ],
)
def test_nobody_is_put_out_by_whom_it_does_not_belong_to(mesh, make) -> None:
    index = mesh.index("b", "c")
    before = index.view({}).nodes
    offer(index, make(mesh))
    assert index.view({}).nodes == before
    assert index.view({}).revocations == {}


def test_the_name_comes_back_with_another_key_and_not_with_the_old_one(mesh) -> None:
    index = mesh.index("b")
    offer(index, mesh.agent("x", "b"))
    offer(index, word(mesh, "b", seq=4, stands=standing(index, "b")))
    offer(index, mesh.admission("b", counter=2))
    assert B not in index.view({}).nodes
    offer(index, mesh.admission("b", counter=2, key="new"))
    view = index.view({})
    assert view.nodes[B].public_key == public_key("new")
    assert view.revoked(B) is None
    assert view.ended(B, Epoch(EPOCH)) is view.revocations[B][0]
    assert view.ended(B, Epoch("001000-000000000000")) is None
    offer(index, mesh.agent("x", "b", counter=1, forged_by="new"))
    assert view.agents["x"].node == "b"
    assert index.record(RoomMap.AGENTS, "x").text == mesh.agent("x", "b", counter=1, forged_by="new")


def test_a_banned_name_does_not_come_back(mesh) -> None:
    index = mesh.index("b")
    offer(index, word(mesh, "b", ban=True), mesh.admission("b", counter=2, key="new"))
    assert B not in index.view({}).nodes
    offer(index, mesh.admission("b", by=ROOT, key="new"))
    assert B in index.view({}).nodes, "the root's word goes before a seed's"
    offer(index, word(mesh, "b", by=ROOT, ban=True))
    assert B not in index.view({}).nodes


def test_the_key_is_out_under_every_name(mesh) -> None:
    index = mesh.index("b")
    offer(index, word(mesh, "b"), mesh.admission("other", key="b"))
    assert set(index.view({}).nodes) == {"seed"}


def test_only_the_root_ends_what_the_root_has_admitted(mesh) -> None:
    index = mesh.index("b")
    offer(index, mesh.admission("two", by=ROOT, role="seed"))
    offer(index, word(mesh, "two"), word(mesh, "seed", by="two"))
    assert {"seed", "two"} <= set(index.view({}).nodes)
    assert index.view({}).revocations == {}
    offer(index, word(mesh, "two", by=ROOT))
    assert "two" not in index.view({}).nodes


def test_what_a_lost_seed_had_admitted_and_revoked_stands_where_the_root_says_so(mesh) -> None:
    index = mesh.index("b", "c")
    revocation = word(mesh, "c")
    offer(index, revocation)
    kept = by_need(index.standing(NodeId("seed")))
    assert [record.map for record in kept] == [RoomMap.ADMISSIONS] * 2 + [RoomMap.REVOCATIONS]
    offer(index, word(mesh, "seed", by=ROOT, stands=stands(kept)))
    offer(index, mesh.admission("evil"), word(mesh, "b", ban=True), mesh.node("b", head_seq=3))
    view = index.view({})
    assert set(view.nodes) == {"b"}, "what it signs later counts for nothing"
    assert view.nodes[B].head_seq == 3
    assert set(view.revocations) == {"seed", "c"}


def test_a_seed_cannot_let_admissions_of_a_member_stand(mesh) -> None:
    index = mesh.index("b")
    bogus = mesh.admission("evil", by="b")
    offer(index, bogus, word(mesh, "b", stands=stands([parse_record(bogus)])))
    assert "evil" not in index.view({}).nodes


def test_of_two_words_of_one_signer_the_harsher_one_is_shown(mesh) -> None:
    mild, harsh = word(mesh, "b", seq=9, counter=2), word(mesh, "b", seq=4, counter=1)
    banned = word(mesh, "b", seq=9, ban=True, counter=3)
    for texts in ((mild, harsh, banned), (banned, harsh, mild)):
        index = mesh.index("b")
        offer(index, *texts)
        assert index.record(RoomMap.REVOCATIONS, parse_record(mild).key).text == banned


def test_words_of_two_seeds_are_one_revocation(mesh) -> None:
    index = mesh.index("b")
    offer(index, mesh.admission("two", by=ROOT, role="seed"))
    offer(index, word(mesh, "b", seq=9, reason="a"), word(mesh, "b", by="two", seq=4, ban=True, reason="b"))
    (found,) = index.view({}).revocations[B]
    assert (found.last.seq, found.ban, found.by, found.reason) == (4, True, "seed", "a")


@given(st.permutations(range(8)))
def test_the_order_of_arrival_does_not_matter(order: list[int]) -> None:
    mesh = Mesh()
    known = mesh.index("b")
    agent = mesh.agent("x", "b")
    offer(known, agent)
    texts = [
        mesh.founder(),
        mesh.admission("two", by=ROOT, role="seed"),
        mesh.admission("b"),
        mesh.admission("b", counter=2, key="new"),
        agent,
        mesh.node("b"),
        word(mesh, "b", seq=4, stands=standing(known, "b")),
        word(mesh, "b", by="two", seq=2),
    ]
    straight, shuffled = mesh.index(), mesh.index()
    offer(straight, *texts)
    offer(shuffled, *(texts[place] for place in order))
    assert shuffled.digest() == straight.digest()
    assert shuffled.view({}).revocations == straight.view({}).revocations


def test_keys_name_the_key_and_the_signer(mesh) -> None:
    for of in ("x", "x" * 42, "x" * 42 + "/"):
        with pytest.raises(InvalidRecord):
            word(mesh, "b", of=of)
    with pytest.raises(InvalidRecord):
        word(mesh, "b", stands=bytes(17))
    with pytest.raises(InvalidRecord):
        mesh.record(RoomMap.REVOCATIONS, revocation_key(thumbprint(public_key("b")), "seed"), "seed", None)


def test_a_revocation_names_what_fits_into_a_record(mesh) -> None:
    records = [parse_record(mesh.agent(f"x{n}", "b")) for n in range(3)] * 200
    text = word(mesh, "b", stands=stands(records), reason="x" * 512, seq=2**40 - 1)
    assert len(parse_record(text).body.stands) == 16 * STANDS_MAX


def test_a_word_that_no_longer_counts_lets_the_key_in_again(mesh) -> None:
    index = mesh.index("b")
    offer(index, mesh.admission("two", by=ROOT, role="seed"), word(mesh, "b", by="two"))
    assert B not in index.view({}).nodes
    offer(index, word(mesh, "two", by=ROOT))  # the root lets none of its words stand
    view = index.view({})
    assert B in view.nodes
    assert view.owner(AgentId("x")) is None
    assert set(view.revocations) == {"two"}


def test_bodies_of_one_key_agree_on_it(mesh) -> None:
    one = revocation_of(parse_record(word(mesh, "b")))
    other = replace(one, node=NodeId("a"))
    assert merge(one, other).node == "a"


def test_the_shortest_words_go_first_as_many_as_fit() -> None:
    assert fitting(["ccc", "a", "bb", "dddd"], 6) == ("a", "bb", "ccc")
    assert fitting([], 6) == fitting(["a"], 0) == ()
