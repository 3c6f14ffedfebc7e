import itertools

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outbox.ids import AgentId, NodeId
from stateroom.bodies import ROOT, RoomMap
from stateroom.errors import InvalidRecord
from stateroom.index import Index
from stateroom.picture import Seen
from stateroom.records import parse_record


def offer(index: Index, *texts: str) -> None:
    for text in texts:
        record = parse_record(text)
        index.offer(record.map.value, record.key, text)


def test_root_admits_seeds_and_seeds_admit_members(mesh) -> None:
    index = mesh.index("b")
    offer(index, mesh.node("b", head_seq=4))
    view = index.view({})
    assert (view.nodes["seed"].role, view.nodes["b"].role) == ("seed", "member")
    assert view.nodes["b"].head_seq == 4
    assert [node.node for node in view.peers(NodeId("b"))] == ["seed"]


def test_a_record_waits_for_the_admission_of_its_signer(mesh) -> None:
    index = mesh.index()
    assert index.offer("nodes", "b", mesh.node("b")) is None
    assert index.rejects["unknown_signer"] == 1
    change = index.offer("admissions", "b", mesh.admission("b"))
    assert change is not None
    assert set(change.keys) == {(RoomMap.ADMISSIONS, "b"), (RoomMap.NODES, "b")}
    assert index.record(RoomMap.NODES, "b") is not None


def test_a_seed_says_who_may_read_what_is_for_others(mesh) -> None:
    index = mesh.index("b")
    offer(index, mesh.admission("c", reads_all=True), mesh.admission("d", by="b", reads_all=True))
    view = index.view({})
    assert {node for node in view.nodes if view.reads_all(node)} == {"seed", "c"}
    assert not view.reads_all("nobody")
    offer(index, mesh.admission("c", counter=2))
    assert not index.view({}).reads_all("c")


def test_a_member_cannot_admit_and_a_seed_cannot_make_seeds(mesh) -> None:
    index = mesh.index("b")
    offer(index, mesh.admission("c", by="b"), mesh.admission("d", by="seed", role="seed"))
    assert set(index.view({}).nodes) == {"seed", "b"}
    assert index.rejects["not_entitled"] == 1


def test_the_root_of_another_mesh_is_nobody(mesh) -> None:
    other = type(mesh)()
    other.id = "x" * 43
    index = Index(other.id, lambda *_: True)
    offer(index, mesh.founder())
    assert index.rejects == {"foreign_mesh": 1}


@pytest.mark.parametrize(
    ("place", "make"),
    [
        (("nodes", "c"), lambda m: m.node("b")),
        (("agents", "b"), lambda m: m.node("b")),
        (("nodes", "b"), lambda m: m.record(RoomMap.NODES, "b", "c", None)),
        (("presence", "b"), lambda m: m.heartbeat("b", 1)),
        (("nodes", "b"), lambda m: m.node("b", forged_by="c")),
        (("agents", "x"), lambda m: m.agent("x", "b", by="c")),
        (("agents", "x"), lambda m: m.agent("x", "c", forged_by="b")),
        (("nodes", "b"), lambda _: 5),
        (("nodes", "b"), lambda _: "junk"),
        (("admissions", "b"), lambda m: m.admission("b", by=ROOT).replace(".", ".A", 1)),
    ],
)
def test_what_nobody_may_say_is_invisible_and_counted(mesh, place, make) -> None:
    index = mesh.index("b", "c")
    before, digest = index.rejects.total(), index.digest()
    assert index.offer(*place, make(mesh)) is None
    assert index.rejects.total() == before + 1
    assert index.digest() == digest


def test_what_could_never_count_is_told_before_it_is_said(mesh) -> None:
    index = mesh.index()
    good = mesh.admission("b")
    index.check("admissions", "b", good)
    assert "b" not in index.view({}).nodes
    for key, text in (("c", good), ("b", ""), ("b", good[:-1]), ("b", "?"), ("b", mesh.node("b"))):
        with pytest.raises(InvalidRecord):
            index.check("admissions", key, text)


def test_a_replayed_older_record_has_no_effect(mesh) -> None:
    index = mesh.index("b")
    old, new = mesh.node("b", counter=1), mesh.node("b", counter=2, head_seq=9)
    offer(index, old, new)
    version = index.version
    assert index.offer("nodes", "b", old) is None
    assert (index.version, index.record(RoomMap.NODES, "b").text) == (version, new)


def test_the_outbox_epoch_goes_before_the_counter(mesh) -> None:
    index = mesh.index("b")
    offer(index, mesh.node("b", epoch=2, counter=1, head_seq=1), mesh.node("b", epoch=1, counter=99))
    assert index.view({}).nodes["b"].head_seq == 1


def test_a_tombstone_keeps_the_counter(mesh) -> None:
    index = mesh.index("b")
    old = mesh.node("b", counter=4)
    offer(index, old, mesh.record(RoomMap.NODES, "b", "b", None, counter=5))
    assert index.view({}).nodes["b"].endpoints == ()
    offer(index, old)
    assert index.view({}).nodes["b"].endpoints == ()
    assert index.next_counter(RoomMap.NODES, "b", 1) == 6
    assert index.next_counter(RoomMap.NODES, "b", 2) == 1


def test_ownership_passes_by_the_owner_and_reaches_a_late_joiner(mesh) -> None:
    index = mesh.index("b", "c")
    first = mesh.agent("x", "b")
    offer(index, first)
    grant = mesh.agent("x", "c", by="b", owner_epoch=2, handover=index.proof(AgentId("x")))
    offer(index, grant)
    own = mesh.agent("x", "c", owner_epoch=2, status="removed", handover=index.proof(AgentId("x")))
    offer(index, own)
    late = mesh.index("b", "c")
    offer(late, own)
    for each in (index, late):
        view = each.view({})
        assert (view.agents["x"].node, view.owner(AgentId("x")), view.known(AgentId("x"))) == (
            "c",
            None,
            True,
        )
    assert index.digest() == late.digest()


def test_a_seed_moves_an_agent_without_its_owner(mesh) -> None:
    index = mesh.index("b", "c")
    offer(index, mesh.agent("x", "b"), mesh.agent("x", "c", by="seed", owner_epoch=2))
    assert index.view({}).owner(AgentId("x")).node == "c"


def test_a_stranger_gains_nothing_by_a_high_owner_epoch(mesh) -> None:
    index = mesh.index("b", "c")
    offer(index, mesh.agent("x", "b"), mesh.agent("x", "c", owner_epoch=7))
    offer(index, mesh.agent("x", "c", owner_epoch=9, handover=mesh.agent("x", "c")))
    assert index.view({}).owner(AgentId("x")).node == "b"


def test_of_two_first_claims_the_lower_node_wins_everywhere(mesh) -> None:
    for order in itertools.permutations([mesh.agent("x", "c", counter=9), mesh.agent("x", "b", counter=1)]):
        index = mesh.index("b", "c")
        offer(index, *order)
        assert index.view({}).owner(AgentId("x")).node == "b"


def test_a_chain_of_proofs_is_bounded(mesh) -> None:
    index = mesh.index("b")
    text = mesh.agent("x", "b")
    for owner_epoch in range(2, 9):
        text = mesh.agent("x", "b", owner_epoch=owner_epoch, handover=text)
    offer(index, text)
    assert index.view({}).owner(AgentId("x")).owner_epoch == 8
    offer(index, mesh.agent("x", "b", owner_epoch=2, handover=mesh.node("b")))
    assert index.rejects == {"handover": 1}


def universe(mesh) -> list[str]:
    """Records with every kind of conflict: seeds, keys, counters, claims, grants, forgeries, tombstones."""
    return [
        mesh.founder(),
        mesh.admission("seed2", by=ROOT, role="seed"),
        mesh.admission("seed2", by=ROOT, role="member", counter=2),
        mesh.admission("b"),
        mesh.admission("b", by="seed2", counter=3, key="b-other"),
        mesh.admission("c", by="seed2"),
        mesh.admission("c", counter=1),
        mesh.admission("d", by="b"),
        mesh.node("b"),
        mesh.node("b", counter=2, head_seq=2),
        mesh.node("b", counter=2, head_seq=3),
        mesh.node("b", counter=1, forged_by="b-other", head_seq=5),
        mesh.node("c", counter=3),
        mesh.record(RoomMap.NODES, "c", "c", None, counter=4),
        mesh.node("d"),
        mesh.cursors("b", {"c": ("000001-0123456789ab", 3)}),
        mesh.agent("x", "b"),
        mesh.agent("x", "c", counter=5),
        mesh.agent("x", "c", by="b", owner_epoch=2),
        mesh.agent("x", "d", by="c", owner_epoch=3),
        mesh.agent("x", "c", owner_epoch=2, status="removed", counter=2),
        mesh.agent("y", "c"),
        mesh.agent("y", "b", by="seed2", owner_epoch=4),
        mesh.agent("y", "c", by="seed", owner_epoch=4),
    ]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_the_order_of_arrival_does_not_matter(mesh, data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.sampled_from(universe(mesh)), unique=True, min_size=3))
    order = data.draw(st.permutations(texts))
    repeated = order + data.draw(st.lists(st.sampled_from(texts), max_size=5))
    one, two = mesh.index(), mesh.index()
    offer(one, *texts)
    offer(two, *repeated)
    assert one.digest() == two.digest()
    assert msgspec.structs.replace(one.view({}), version=0) == msgspec.structs.replace(
        two.view({}), version=0
    )


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_looking_often_shows_the_same_as_looking_once(mesh, data: st.DataObject) -> None:
    """Parts of the view are kept until something changes them."""
    texts = data.draw(st.permutations(universe(mesh)))
    often, once = mesh.index(), mesh.index()
    for number, text in enumerate(texts):
        offer(often, text)
        often.view({NodeId("b"): Seen(True, number)} if data.draw(st.booleans()) else {})
        offer(once, text)
    assert often.view({}) == once.view({})


def test_waiting_records_are_bounded(mesh, monkeypatch) -> None:
    monkeypatch.setattr("stateroom.index.WAITING_MAX", 10)
    index = mesh.index()
    for number in range(30):
        offer(index, mesh.node(f"n{number:02}"))
    assert len(index._slots) <= 12
    for number in range(30):
        offer(index, mesh.admission(f"n{number:02}"))
    shown = {record.key for record in index.records(RoomMap.NODES)}
    assert shown == {f"n{number:02}" for number in range(20, 30)}


def test_forgeries_of_one_key_are_bounded_and_do_not_push_the_owner_out(mesh) -> None:
    index = mesh.index("b")
    offer(index, mesh.node("b"))
    for counter in range(2, 60):
        offer(index, mesh.node("b", counter=counter, forged_by="c"))
    slot = index._slots[RoomMap.NODES, "b"]
    assert len(slot.candidates) <= 16
    assert slot.best.counter == 1


def test_a_full_index_takes_no_new_keys_but_new_records(mesh, monkeypatch) -> None:
    monkeypatch.setattr("stateroom.index.KEYS_MAX", 3)
    index = mesh.index("b")
    offer(index, mesh.node("b"), mesh.agent("x", "b"), mesh.node("b", counter=2))
    assert index.record(RoomMap.AGENTS, "x") is None
    assert index.record(RoomMap.NODES, "b").counter == 2
    assert index.rejects == {"index_full": 1}


def test_admitted_keys_are_known_by_node(mesh) -> None:
    index = mesh.index("b")
    assert index.admitted("b").role == "member"
    assert index.admitted("c") is None


def test_a_heartbeat_of_another_mesh_or_about_another_node_is_none(mesh) -> None:
    index = mesh.index("b")
    assert index.heartbeat(mesh.heartbeat("b", 1)).key == "b"
    about_another = mesh.record(RoomMap.PRESENCE, "seed", "b", parse_record(mesh.heartbeat("b", 1)).body)
    assert index.heartbeat(about_another) is None
    assert index.heartbeat(mesh.heartbeat("c", 1)) is None
    assert index.heartbeat(mesh.heartbeat("b", 2, forged_by="c")) is None
    assert index.heartbeat("junk") is None
    assert index.rejects == {"not_entitled": 1, "unknown_signer": 1, "bad_signature": 1, "form": 1}


def test_signatures_are_checked_once(mesh) -> None:
    index = mesh.index("b")
    calls = []
    genuine = index._verdicts._verify
    index._verdicts._verify = lambda *call: calls.append(call) or genuine(*call)
    for _ in range(5):
        offer(index, mesh.node("b"))
    assert len(calls) == 1


def test_equal_digests_mean_equal_content(mesh) -> None:
    one, two = mesh.index("b"), mesh.index("b")
    assert one.digest() == two.digest()
    offer(one, mesh.node("b"))
    assert one.digest() != two.digest()


def test_presence_shows_in_the_view(mesh) -> None:
    index = mesh.index("b")
    offer(index, mesh.node("b"))
    view = index.view({NodeId("b"): Seen(True, 5, (NodeId("seed"),), ("http://new",))}, 3)
    assert view.online(NodeId("b"))
    assert not view.online(NodeId("seed"))
    assert view.nodes["b"].endpoints == ("http://new",)
    assert view.version == index.version + 3
