"""Whoever follows the steps sees the same views, and the same objects where nothing changed."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.hosting.viewsteps import ViewStep, follow, nothing, step
from outbox.ids import Epoch, Seq
from stateroom.view import CursorsView, ForkView, NodeView, OwnerView, View

EPOCH = Epoch("000001-0123456789ab")
names = st.sampled_from([f"n{number}" for number in range(6)])
nodes = st.dictionaries(names, st.booleans())
agents = st.dictionaries(names, st.integers(1, 3))
cursors = st.dictionaries(names, st.dictionaries(names, st.integers(0, 3)))
forks = st.dictionaries(names, st.integers(1, 3))


@st.composite
def views(draw: st.DrawFn) -> View:
    return View(
        version=draw(st.integers(1, 9)),
        mesh="mesh",
        nodes={
            name: NodeView(node=name, public_key=b"\xff" * 32, role="member", online=online)
            for name, online in draw(nodes).items()
        },
        agents={
            name: OwnerView(agent=name, node="n0", owner_epoch=epoch, status="active")
            for name, epoch in draw(agents).items()
        },
        cursors={
            name: CursorsView(cursors={of: (EPOCH, seq) for of, seq in read.items()}, head=(EPOCH, 5))
            for name, read in draw(cursors).items()
        },
        forks={name: (ForkView(epoch=EPOCH, seq=Seq(seq)),) for name, seq in draw(forks).items()},
    )


@given(views(), st.lists(views(), max_size=5))
def test_the_steps_lead_to_the_same_views(first: View, later: list[View]) -> None:
    told, seen = nothing("mesh"), nothing("mesh")
    for view in (first, *later):
        seen = follow(seen, step(told, view))
        told = view
        assert seen == view


@given(views(), st.integers(10, 20))
def test_what_did_not_change_is_not_told_and_stays_the_same_object(view: View, version: int) -> None:
    later = View(
        version=version,
        mesh=view.mesh,
        nodes=view.nodes,
        agents=dict(view.agents),
        cursors=view.cursors,
        forks=view.forks,
    )
    told = step(view, later)
    assert told == ViewStep(version=version, mesh="mesh")
    seen = follow(view, told)
    assert seen.version == version
    for part in ("nodes", "agents", "cursors", "forks"):
        assert getattr(seen, part) is getattr(view, part)


@given(views(), names)
def test_one_node_that_comes_online_is_all_that_is_told(view: View, name: str) -> None:
    here = NodeView(node=name, public_key=b"\xff" * 32, role="seed", online=True)
    later = View(
        version=view.version,
        mesh=view.mesh,
        nodes={**view.nodes, name: here},
        agents=view.agents,
        cursors=view.cursors,
        forks=view.forks,
    )
    assert step(view, later) == ViewStep(version=view.version, mesh="mesh", nodes={name: here})
