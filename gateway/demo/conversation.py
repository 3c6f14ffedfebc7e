r"""A conversation to play: JSON Lines, one message a line, as plain records.

::

    {"from": "planner@vps", "to": "coder@mbp", "text": "Morning!", "at_ms": 0}
    {"from": "coder", "to": "planner", "text": "Hi.", "at_ms": 4000, "reply_to": 1}

``from`` and ``to`` are agents, ``name`` or ``name@node``; an agent lives on one node, which any of its
mentions may name. ``at_ms`` never falls. ``reply_to`` is the number of an earlier line, or its ``id``; it
answers a message between the same two agents, in the other direction. Other fields are errors.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
from msgspec.structs import replace

from gateway.demo.errors import InvalidConversation
from gateway.demo.limits import AT_MS_MAX, FILE_BYTES_MAX, LINES_MAX, TEXT_BYTES_MAX
from outbox.errors import InvalidId
from outbox.ids import AgentId, NodeId, agent_id, node_id
from outbox.limits import HOPS_MAX


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One message."""

    number: int
    """1, 2, 3 …: its line in the file."""
    sender: AgentId
    recipient: AgentId
    text: str
    at_ms: int
    """When it is said, from the start."""
    reply_to: int | None = None
    """The number of the line that it answers."""


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """All lines in their order, and where each agent lives."""

    lines: tuple[Line, ...]
    homes: dict[AgentId, NodeId]

    def replies(self) -> dict[int, tuple[Line, ...]]:
        """The answers to each line that has any."""
        found: dict[int, tuple[Line, ...]] = {}
        for line in self.lines:
            if line.reply_to is not None:
                found[line.reply_to] = (*found.get(line.reply_to, ()), line)
        return found


class _Row(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
    rename={"sender": "from", "recipient": "to"},
):  # fmt: skip
    sender: str
    recipient: str
    text: Annotated[str, msgspec.Meta(min_length=1)]
    at_ms: Annotated[int, msgspec.Meta(ge=0, le=AT_MS_MAX)]
    reply_to: Annotated[int, msgspec.Meta(ge=1)] | str | None = None
    id: str | None = None


_row = msgspec.json.Decoder(_Row)


def parse(content: bytes, nodes: Sequence[NodeId]) -> Conversation:
    """Read a file and place its agents on ``nodes``. Raises InvalidConversation with the line's number."""
    if len(content) > FILE_BYTES_MAX:
        raise InvalidConversation(0, f"a conversation has at most {FILE_BYTES_MAX} bytes")
    rows = [_read(number, text) for number, text in enumerate(_split(content), 1)]
    homes = _place(rows, nodes)
    return Conversation(lines=_link(rows), homes=homes)


def scaled(conversation: Conversation, duration_ms: int) -> Conversation:
    """The same conversation stretched or squeezed so that its last line is said at ``duration_ms``."""
    last_ms = conversation.lines[-1].at_ms
    if last_ms == 0:
        return conversation
    lines = (replace(line, at_ms=line.at_ms * duration_ms // last_ms) for line in conversation.lines)
    return replace(conversation, lines=tuple(lines))


def _split(content: bytes) -> list[bytes]:
    """By line feeds alone: other line separators may stand inside a JSON text."""
    lines = content.removesuffix(b"\n").split(b"\n")
    if lines == [b""]:
        raise InvalidConversation(0, "the conversation is empty", hint="write one JSON object a line")
    if len(lines) > LINES_MAX:
        raise InvalidConversation(0, f"a conversation has at most {LINES_MAX} lines")
    return lines


def _read(number: int, text: bytes) -> _Row:
    try:
        row = _row.decode(text)
        size = len(row.text.encode())
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        hint = 'a line is {"from": …, "to": …, "text": …, "at_ms": …, "reply_to": …}'
        raise InvalidConversation(number, f"not a message: {error}", hint=hint) from None
    if size > TEXT_BYTES_MAX:
        raise InvalidConversation(number, f"the text has {size} bytes, at most {TEXT_BYTES_MAX} are allowed")
    return row


def _agent(number: int, address: str) -> tuple[AgentId, NodeId | None]:
    name, at, node = address.partition("@")
    try:
        return agent_id(name), node_id(node) if at else None
    except InvalidId as error:
        raise InvalidConversation(number, str(error), hint=error.hint) from None


def _mentions(rows: Sequence[_Row]) -> Iterator[tuple[int, AgentId, NodeId | None]]:
    for number, row in enumerate(rows, 1):
        for address in (row.sender, row.recipient):
            yield (number, *_agent(number, address))


def _place(rows: Sequence[_Row], nodes: Sequence[NodeId]) -> dict[AgentId, NodeId]:
    """Every agent where a mention puts it; the others where the fewest live, in order of appearance."""
    named: dict[AgentId, NodeId | None] = {}
    for number, agent, node in _mentions(rows):
        if node is not None and node not in nodes:
            raise InvalidConversation(number, f"there is no node {node!r}", hint=f"use {', '.join(nodes)}")
        before = named.setdefault(agent, node)
        if before is None:
            named[agent] = node
        elif node is not None and node != before:
            raise InvalidConversation(number, f"{agent} lives on {before}, not on {node}")
    crowd = Counter(dict.fromkeys(nodes, 0))
    crowd.update(node for node in named.values() if node is not None)
    return {agent: node or _emptiest(crowd) for agent, node in named.items()}


def _emptiest(crowd: Counter[NodeId]) -> NodeId:
    node = min(crowd, key=lambda node: crowd[node])
    crowd[node] += 1
    return node


def _link(rows: Sequence[_Row]) -> tuple[Line, ...]:
    lines: list[Line] = []
    by_id: dict[str, int] = {}
    depth: list[int] = []
    for number, row in enumerate(rows, 1):
        line = Line(
            number=number,
            sender=_agent(number, row.sender)[0],
            recipient=_agent(number, row.recipient)[0],
            text=row.text,
            at_ms=row.at_ms,
            reply_to=_target(number, row.reply_to, by_id),
        )
        _check(line, lines, depth)
        lines.append(line)
        depth.append(0 if line.reply_to is None else depth[line.reply_to - 1] + 1)
        if row.id is not None and by_id.setdefault(row.id, number) != number:
            raise InvalidConversation(number, f"line {by_id[row.id]} has the id {row.id[:40]!r} already")
    return tuple(lines)


def _target(number: int, reply_to: int | str | None, by_id: dict[str, int]) -> int | None:
    if isinstance(reply_to, str):
        if reply_to not in by_id:
            raise InvalidConversation(number, f"no earlier line has the id {reply_to[:40]!r}")
        return by_id[reply_to]
    if reply_to is not None and reply_to >= number:
        raise InvalidConversation(number, f"reply_to {reply_to} is no earlier line")
    return reply_to


def _check(line: Line, before: Sequence[Line], depth: Sequence[int]) -> None:
    if before and line.at_ms < before[-1].at_ms:
        raise InvalidConversation(line.number, f"at_ms {line.at_ms} is before the line above it")
    if line.reply_to is None:
        return
    question = before[line.reply_to - 1]
    if (line.sender, line.recipient) != (question.recipient, question.sender):
        raise InvalidConversation(
            line.number,
            f"it answers line {question.number}, which {question.sender} wrote to {question.recipient}",
            hint=f'an answer goes from "{question.recipient}" to "{question.sender}"',
        )
    if depth[question.number - 1] >= HOPS_MAX:
        raise InvalidConversation(
            line.number, f"more than {HOPS_MAX} answers in a row", hint="send a new message"
        )
