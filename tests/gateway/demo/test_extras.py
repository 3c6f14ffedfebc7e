"""The extras keep out of the way of whatever conversation they are added to."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.demo.conversation import Conversation
from gateway.demo.extras import PLANTED, Part, Trouble, extras
from gateway.demo.limits import BURST
from outbox.ids import agent_id

agents = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,62}", fullmatch=True) | st.sampled_from([*Part, "herald-2"])


@given(st.lists(agents, min_size=1, unique=True))
def test_names_are_legal_and_nobodys(names):
    conversation = Conversation(lines=(), homes=dict.fromkeys(names, "vps"))
    made = extras(conversation, seed="vps", other="mbp", killed="lab")
    assert set(made.names) == set(made.homes) == set(Part)
    taken = [*names, *made.names.values(), made.misspelt]
    assert len(set(taken)) == len(taken)
    assert all(agent_id(name) for name in taken)


def test_the_burst_and_the_one_who_waits_are_where_the_crash_is():
    conversation = Conversation(lines=(), homes={"planner": "vps"})
    made = extras(conversation, seed="vps", other="mbp", killed="lab")
    assert made.homes[Part.PORTER] == made.homes[Part.HERMIT] == "lab"
    assert made.homes[Part.HERALD] == "vps"
    assert len(set(made.burst)) == BURST


def test_every_trouble_has_its_end():
    assert set(PLANTED) == set(Trouble)
