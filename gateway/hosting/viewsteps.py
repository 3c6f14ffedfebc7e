"""What changed from one view to the next: a view of thousands need not be told again for each beat."""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from outbox.ids import AgentId, MeshId, NodeId
from stateroom.view import CursorsView, ForkView, NodeView, OwnerView, RevocationView, View

_Key = TypeVar("_Key", bound=str)
_Value = TypeVar("_Value")


class ViewStep(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="t"):
    """From a view to a later one: what is new or different, and what is there no more."""

    version: int
    mesh: MeshId
    nodes: dict[NodeId, NodeView] = {}
    agents: dict[AgentId, OwnerView] = {}
    cursors: dict[NodeId, CursorsView] = {}
    forks: dict[NodeId, tuple[ForkView, ...]] = {}
    revocations: dict[NodeId, tuple[RevocationView, ...]] = {}
    nodes_gone: tuple[NodeId, ...] = ()
    agents_gone: tuple[AgentId, ...] = ()
    cursors_gone: tuple[NodeId, ...] = ()
    forks_gone: tuple[NodeId, ...] = ()
    revocations_gone: tuple[NodeId, ...] = ()


def nothing(mesh: MeshId) -> View:
    """The view before the first one."""
    return View(version=0, mesh=mesh, nodes={}, agents={}, cursors={})


def step(before: View, after: View) -> ViewStep:
    """What to tell somebody who knows ``before``."""
    return ViewStep(
        version=after.version,
        mesh=after.mesh,
        nodes=_new(before.nodes, after.nodes),
        agents=_new(before.agents, after.agents),
        cursors=_new(before.cursors, after.cursors),
        forks=_new(before.forks, after.forks),
        revocations=_new(before.revocations, after.revocations),
        nodes_gone=_gone(before.nodes, after.nodes),
        agents_gone=_gone(before.agents, after.agents),
        cursors_gone=_gone(before.cursors, after.cursors),
        forks_gone=_gone(before.forks, after.forks),
        revocations_gone=_gone(before.revocations, after.revocations),
    )


def follow(before: View, told: ViewStep) -> View:
    """The view that a step leads to; parts without a change are the same objects."""
    return View(
        version=told.version,
        mesh=told.mesh,
        nodes=_followed(before.nodes, told.nodes, told.nodes_gone),
        agents=_followed(before.agents, told.agents, told.agents_gone),
        cursors=_followed(before.cursors, told.cursors, told.cursors_gone),
        forks=_followed(before.forks, told.forks, told.forks_gone),
        revocations=_followed(before.revocations, told.revocations, told.revocations_gone),
    )


def _new(before: Mapping[_Key, _Value], after: Mapping[_Key, _Value]) -> dict[_Key, _Value]:
    if after is before:
        return {}
    return {
        key: value
        for key, value in after.items()
        if (known := before.get(key)) is not value and known != value
    }


def _gone(before: Mapping[_Key, _Value], after: Mapping[_Key, _Value]) -> tuple[_Key, ...]:
    return () if after is before else tuple(key for key in before if key not in after)


def _followed(
    before: dict[_Key, _Value], new: dict[_Key, _Value], gone: tuple[_Key, ...]
) -> dict[_Key, _Value]:
    if not new and not gone:
        return before
    after = {**before, **new}
    for key in gone:
        del after[key]
    return after
