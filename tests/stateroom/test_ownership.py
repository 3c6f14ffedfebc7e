from hypothesis import given
from hypothesis import strategies as st

from stateroom.ownership import agent_body, may_ever_count, settle
from stateroom.records import parse_record

NODES = ["a", "b", "c", "s"]


def is_seed(node: str) -> bool:
    return node == "s"


def settled(*texts: str) -> tuple[str, int] | None:
    outcome = settle([parse_record(text) for text in texts], is_seed)
    body = agent_body(outcome.shown) if outcome else None
    return (body.owner, body.owner_epoch) if body else None


def test_a_first_claim_is_made_by_the_claimant(mesh) -> None:
    assert may_ever_count(parse_record(mesh.agent("x", "a")))
    assert not may_ever_count(parse_record(mesh.agent("x", "a", by="b")))
    assert settled() is None


def test_the_present_owner_hands_over(mesh) -> None:
    assert settled(mesh.agent("x", "a"), mesh.agent("x", "b", by="a", owner_epoch=2)) == ("b", 2)


def test_a_former_owner_cannot_take_back(mesh) -> None:
    history = [mesh.agent("x", "a"), mesh.agent("x", "b", by="a", owner_epoch=2)]
    assert settled(*history, mesh.agent("x", "a", owner_epoch=3)) == ("b", 2)


def test_a_seed_goes_before_the_owner(mesh) -> None:
    grants = [mesh.agent("x", "b", by="a", owner_epoch=2), mesh.agent("x", "c", by="s", owner_epoch=2)]
    assert settled(mesh.agent("x", "a"), *grants) == ("c", 2)


def test_the_owner_speaks_for_itself_once_it_does(mesh) -> None:
    grant = mesh.agent("x", "b", by="a", owner_epoch=2, counter=99)
    own = mesh.agent("x", "b", owner_epoch=2, status="removed")
    outcome = settle([parse_record(text) for text in (mesh.agent("x", "a"), grant, own)], is_seed)
    assert (outcome.shown.text, outcome.proof) == (own, grant)


@given(
    st.lists(
        st.tuples(st.sampled_from(NODES), st.sampled_from(NODES), st.integers(1, 4), st.integers(1, 2)),
        max_size=8,
        unique=True,
    ),
    st.randoms(use_true_random=False),
)
def test_order_does_not_matter_and_only_entitled_nodes_own(mesh, moves, shuffler) -> None:
    texts = [
        mesh.agent("x", owner, by=signer, owner_epoch=epoch, counter=counter)
        for signer, owner, epoch, counter in moves
    ]
    expected = settled(*texts)
    shuffler.shuffle(texts)
    assert settled(*texts) == expected
    if expected is not None:
        claimants = {signer for signer, owner, epoch, _ in moves if epoch == 1 and signer == owner}
        assert claimants or any(signer == "s" for signer, *_ in moves)
