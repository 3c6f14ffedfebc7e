"""Nodes whose key was revoked: what is still taken of them, and who answers for their agents.

Up to the place that the revocation names everything of their outbox counts, whenever it comes; what stands
behind it is read by nobody, unless it was read before.
"""

from gateway.engine.inputs import (
    AddAgent,
    Extend,
    Grant,
    LinkUp,
    Nack,
    Reply,
    Request,
    Send,
    SetAgent,
    Settle,
    Subscribe,
    TellIncident,
)
from outbox.chain import Excerpt, Head, Page
from outbox.errors import NodeRevoked
from outbox.forks import fold
from outbox.ids import AgentId, NodeId, epoch_ordinal
from stateroom.view import View

REVOKED = NodeRevoked.code
NO_OWNER = "no_owner"
_OF_AGENTS = Send | Reply | TellIncident | Settle | Nack | Extend | Subscribe | Grant | AddAgent | SetAgent


def check_here(view: View, node: NodeId, item: Request) -> None:
    """Raises NodeRevoked when an agent asks and this node may speak for nobody any more."""
    if view.revocations and isinstance(item, _OF_AGENTS):
        check_speaks(view, node)


def check_speaks(view: View, node: NodeId) -> None:
    """Raises NodeRevoked when a node may speak for nobody any more."""
    word = view.revoked(node)
    if word is not None:
        why = f": {word.reason}" if word.reason else ""
        raise NodeRevoked(
            f"the key of {node} was revoked by {word.by}{why}",
            hint="nobody in the mesh hears this node any more; ask the operator of a seed",
        )


def cut(view: View, node: NodeId, page: Excerpt) -> Excerpt | None:
    """What may be taken of a page: all of it, the part that a revocation leaves, or nothing."""
    word = view.ended(node, page.epoch)
    if word is None:
        return page
    last, ordinal = word.last, epoch_ordinal(page.epoch)
    if last is None or ordinal > epoch_ordinal(last.epoch):
        return None
    if ordinal < epoch_ordinal(last.epoch):
        return page
    if page.epoch != last.epoch or (page.checkpoint.seq == last.seq and page.checkpoint.hash != last.hash):
        return None
    if page.checkpoint.seq <= last.seq:
        return page
    kept = tuple(entry for entry in page.entries if entry.seq <= last.seq)
    return Excerpt(page.epoch, kept, last, page.before) if kept else None


def left_of(view: View, stream: NodeId, page: Page) -> Page | None:
    """What of a page may be served on, or collected: nothing behind the end of a node that was put out."""
    part = cut(view, stream, Excerpt(page.epoch, page.entries, page.checkpoint, page.before))
    if part is None or part.checkpoint is page.checkpoint:
        return None if part is None else page
    kept = page.entries[: len(part.entries)]
    if fold(page.before, (entry.leaf for entry in kept)) != part.checkpoint.hash:
        return None  # another history than the one that was accepted
    return Page(page.epoch, kept, part.checkpoint, page.before)


def is_read(view: View, node: NodeId, cursor: Head | None) -> bool:
    """Whether there is nothing more to come of a revoked node."""
    word = view.revoked(node)
    if word is None or word.last is None:
        return True
    last = word.last
    at = (0, 0) if cursor is None else (epoch_ordinal(cursor.epoch), cursor.seq)
    return at >= (epoch_ordinal(last.epoch), last.seq)


def readable(view: View, link: LinkUp) -> LinkUp:
    """What a link has to offer, without what nobody reads to its end: nothing waits for that."""
    if not view.revocations:
        return link
    heads = tuple(head for head in link.heads if view.ended(head.node, head.epoch) is None)
    return LinkUp(link.peer, heads)


def nobody(view: View, agent: AgentId) -> str:
    """Why an agent has no node that answers for it."""
    owner = view.owner(agent)
    return REVOKED if owner is not None and view.revoked(owner.node) is not None else NO_OWNER
