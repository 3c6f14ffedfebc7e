"""The verified index: the only way to read the state room.

Any writer of a CRDT can write any key, so a value counts only as a signed record:

- ``admissions/<node>`` by the mesh root (any role), or by a seed (members only). A seed is a node whose
  admission the *root* signed with role ``seed``. The root's word goes before a seed's.
- ``nodes/<node>``, ``cursors/<node>`` and heartbeats by that node, with its admitted key.
- ``agents/<name>`` as ``stateroom.ownership`` says.
- ``forks/<node>/<epoch>`` by anybody: it counts when it proves that the node's admitted key wrote two
  histories. All proofs of one fork are alike, so the lowest is kept, and nobody gains by another one.
- ``revocations/<key>/<signer>`` by the root or a seed: that key is admitted no more, and of what it has
  signed only that counts which the revocation names (``stateroom.revocations``).

Of the records that count for a key the highest ``(epoch, counter)`` is shown. The result is a function of the
*set* of records offered, whatever their order: records whose signer is not admitted yet wait, and are judged
again when an admission comes. Everything else is invisible and counted by reason.
"""

from collections import Counter
from collections.abc import Mapping

from outbox.ids import AgentId, MeshId, NodeId
from stateroom import picture
from stateroom.bodies import IN_AWARENESS, ROOT, NodeBody, RoomMap
from stateroom.entitlement import may_ever_count, place_of, speaker
from stateroom.errors import InvalidRecord
from stateroom.forks import accused
from stateroom.limits import (
    CANDIDATES_PER_KEY_MAX,
    FORKS_PER_NODE_MAX,
    HANDOVERS_MAX,
    KEYS_MAX,
    WAITING_MAX,
)
from stateroom.ownership import agent_body, settle
from stateroom.parts import Parts
from stateroom.picture import Admitted, Seen, admitted_by
from stateroom.records import Record, Verify, parse_record, parse_stored
from stateroom.revocations import Revoked, by_last_keys, by_need, severity
from stateroom.slot import Change, Slot, SlotKey, digest_of, dominated
from stateroom.verdicts import Verdicts
from stateroom.view import NodeView, View

_OF_SEEDS = frozenset({RoomMap.ADMISSIONS, RoomMap.REVOCATIONS})
"""Maps in which only seeds and the root have a say."""


class Index:
    """Verified records of one mesh. No I/O, no clock; one owner, one thread."""

    def __init__(self, mesh: MeshId, verify: Verify) -> None:
        self.mesh = mesh
        self.version = 0
        self.rejects: Counter[str] = Counter()
        """Offers that came to nothing, by reason."""
        self._verdicts = Verdicts(verify)
        self._slots: dict[SlotKey, Slot] = {}
        self._signed_by: dict[str, set[SlotKey]] = {}
        self._admitted: dict[str, Admitted] = {}
        self._waiting: dict[str, SlotKey] = {}
        self._revoked = Revoked()
        self._parts = Parts()

    def check(self, room_map: str, key: str, value: object) -> None:
        """Raises InvalidRecord for what no set of admissions could ever make right."""
        self._chain(self._parse(room_map, key, value))

    def offer(self, room_map: str, key: str, value: object) -> Change | None:
        """Take a value that was found in the room under ``room_map`` and ``key``.

        Returns what became visible, or None. Never raises for bad values: they are counted in ``rejects``.
        """
        try:
            record = self._parse(room_map, key, value)
            chain = self._chain(record)
        except InvalidRecord as error:
            self.rejects[error.reason] += 1
            return None
        changed: dict[SlotKey, None] = {}
        for link in chain:
            name = (link.map, link.key)
            slot = self._slots.get(name)
            if slot is not None and slot.goes_on(link) and self._holds(link):
                slot.go_on(link)
                changed[name] = None
            elif self._keep(link):
                self._settle(name, changed)
        self._count_reject(record)
        return self._changed(changed)

    def record(self, room_map: RoomMap, key: str) -> Record | None:
        """The record that counts for a key; a tombstone has no body."""
        slot = self._slots.get((room_map, key))
        return slot.best if slot else None

    def records(self, *maps: RoomMap) -> list[Record]:
        """Every record that counts in these maps: what a room is rebuilt from."""
        return [slot.best for (room_map, _), slot in self._slots.items() if room_map in maps and slot.best]

    def admitted(self, node: str) -> Admitted | None:
        """Key and role of a node, if its admission counts."""
        return self._admitted.get(node)

    def next_counter(self, room_map: RoomMap, key: str, epoch: int) -> int:
        """The counter for the next record of a key by its owner; tombstones are counted too."""
        best = self.record(room_map, key)
        return best.counter + 1 if best is not None and best.epoch >= epoch else 1

    def proof(self, agent: AgentId) -> str:
        """The record a successor (or, above the first owner epoch, the owner) carries as ``handover``."""
        slot = self._slots.get((RoomMap.AGENTS, agent))
        return slot.ownership.proof if slot and slot.ownership else ""

    def standing(self, node: NodeId) -> list[Record]:
        """What a node has said that others build on: a revocation of its key has to name it, or it falls."""
        names = self._signed_by.get(node, ())
        said = (each for name in names for each in self._slots[name].candidates.values())
        return by_need(each for each in said if each.signer == node and self._holds(each))

    def counts(self, record: Record) -> bool:
        """Whether somebody has signed it who may say so."""
        return may_ever_count(record) and self._holds(record)

    def heartbeat(self, text: str) -> Record | None:
        """The record in awareness if an admitted node signed it about itself, else None (counted)."""
        try:
            record = parse_record(text)
        except InvalidRecord as error:
            self.rejects[error.reason] += 1
            return None
        if record.mesh != self.mesh or record.map not in IN_AWARENESS or record.signer != record.key:
            self.rejects["not_entitled"] += 1
        elif not self._holds(record):
            self.rejects["bad_signature" if record.signer in self._admitted else "unknown_signer"] += 1
        else:
            return record
        return None

    def digest(self) -> str:
        """Hex SHA-256 over everything shown. Equal digests mean equal content; state vectors can lie."""
        return digest_of(self._slots)

    def view(self, presence: Mapping[NodeId, Seen], presence_version: int = 0) -> View:
        """The picture of now. Its version is the sum of the index' version and that of the presence.

        Parts that did not change are those of the last picture: most changes are of cursors, agents are many.
        """
        self._parts.look(presence)
        return View(
            version=self.version + presence_version,
            mesh=self.mesh,
            nodes=self._parts.of(RoomMap.NODES, lambda: self._nodes_view(presence)),
            agents=self._parts.of(RoomMap.AGENTS, lambda: picture.agents_view(self.records(RoomMap.AGENTS))),
            cursors=self._parts.of(
                RoomMap.CURSORS, lambda: picture.cursors_view(self.records(RoomMap.CURSORS))
            ),
            forks=self._parts.of(RoomMap.FORKS, lambda: picture.forks_view(self.records(RoomMap.FORKS))),
            revocations=self._parts.of(
                RoomMap.REVOCATIONS, lambda: picture.revocations_view(self._revoked.all(), self._admitted)
            ),
        )

    def _nodes_view(self, presence: Mapping[NodeId, Seen]) -> dict[NodeId, NodeView]:
        return {
            NodeId(node): picture.node_view(
                NodeId(node), admitted, self._node_body(node), presence.get(NodeId(node))
            )
            for node, admitted in self._admitted.items()
        }

    def _node_body(self, node: str) -> NodeBody | None:
        record = self.record(RoomMap.NODES, node)
        return record.body if record is not None and isinstance(record.body, NodeBody) else None

    def _parse(self, room_map: str, key: str, value: object) -> Record:
        return parse_stored(self.mesh, room_map, key, value)

    def _chain(self, record: Record) -> list[Record]:
        """The record and those it carries as proof, oldest first. Raises InvalidRecord."""
        chain = [record]
        self._check_entitled(record)
        while record.map is RoomMap.AGENTS and (text := agent_body(record).handover):
            outer, record = record, parse_record(text)
            if len(chain) > HANDOVERS_MAX or place_of(outer) != place_of(record):
                raise InvalidRecord("handover")
            self._check_entitled(record)
            chain.append(record)
        return chain[::-1]

    def _check_entitled(self, record: Record) -> None:
        """Refuse what no set of admissions could ever make right."""
        if not may_ever_count(record):
            raise InvalidRecord("not_entitled")
        if record.signer == ROOT and not self._holds(record):
            raise InvalidRecord("bad_signature")

    def _keep(self, record: Record) -> bool:
        """Add a candidate; False when it is held already or there is no room for it."""
        name = (record.map, record.key)
        slot = self._slots.get(name)
        if record.map is RoomMap.FORKS and not self._may_tell(record, known=slot is not None):
            return False
        if slot is None:
            if len(self._slots) >= KEYS_MAX:
                self.rejects["index_full"] += 1
                return False
            slot = self._slots[name] = Slot()
        if record.text in slot.candidates:
            return False
        slot.candidates[record.text] = record
        self._signed_by.setdefault(speaker(record), set()).add(name)
        return True

    def _may_tell(self, record: Record, *, known: bool) -> bool:
        """Whether a fork is worth keeping: what cannot be judged yet waits, what proves nothing does not."""
        node = accused(record)
        if node not in self._admitted:
            return True
        told = sum(name[0] is RoomMap.FORKS for name in self._signed_by.get(node, ()))
        return self._holds(record) and (known or told < FORKS_PER_NODE_MAX)

    def _settle(self, name: SlotKey, changed: dict[SlotKey, None]) -> None:
        """Choose again for a key, and for all keys that an admission that changes thereby decides."""
        pending = [name]
        while pending:
            name = pending.pop()
            if (slot := self._slots.get(name)) is None:
                continue
            before = slot.best
            self._choose(name, slot)
            self._trim(name, slot)
            if slot.best is before:
                continue
            changed[name] = None
            if name[0] is RoomMap.ADMISSIONS and self._admit(name[1], slot.best):
                pending.extend(self._signed_by.get(name[1], ()))
            elif name[0] is RoomMap.REVOCATIONS and (node := self._revoked.say(name[1], slot.best)):
                pending.extend(self._signed_by.get(node, ()))
                pending.extend(other for other in self._slots if other[0] is RoomMap.ADMISSIONS)

    def _choose(self, name: SlotKey, slot: Slot) -> None:
        valid = [record for record in slot.candidates.values() if self._holds(record)]
        if self._revoked:
            valid = by_last_keys(valid, self._holds_now)
        for record in dominated(valid):
            self._forget(name, slot, record)
            valid.remove(record)
        if name[0] is RoomMap.AGENTS:
            slot.ownership = settle(valid, self._is_seed)
            slot.best = slot.ownership.shown if slot.ownership else None
        elif name[0] is RoomMap.FORKS:
            slot.best = min(valid, key=lambda record: record.rank, default=None)
            self._keep_one_proof(name, slot)
        elif name[0] is RoomMap.REVOCATIONS:
            slot.best = min(valid, key=severity, default=None)
        else:
            if name[0] is RoomMap.ADMISSIONS:
                valid = [record for record in valid if not self._revoked.ends(record)]
            slot.best = max(valid, key=lambda record: (record.signer == ROOT, record.rank), default=None)

    def _keep_one_proof(self, name: SlotKey, slot: Slot) -> None:
        """What proves nothing goes, and with one proof all others."""
        for record in list(slot.candidates.values()):
            if record is not slot.best and (slot.best or accused(record) in self._admitted):
                self._forget(name, slot, record)

    def _holds(self, record: Record) -> bool:
        """Whether the signature is by a key whose word counts for this kind of record now."""
        if record.map is RoomMap.FORKS:
            node = self._admitted.get(accused(record))
            return node is not None and self._verdicts.holds(record, node.public_key)
        return self._holds_now(record) or self._stands(record)

    def _holds_now(self, record: Record) -> bool:
        """Whether it is by the root, or by the key of now of a node that may say so."""
        if record.signer == ROOT:
            return self._verdicts.holds(record, record.root_key)
        signer = self._admitted.get(record.signer)
        if signer is None or (record.map in _OF_SEEDS and not self._is_seed(record.signer)):
            return False
        return self._verdicts.holds(record, signer.public_key)

    def _stands(self, record: Record) -> bool:
        """Whether it is by a revoked key, and its revocation lets it stand."""
        key = self._revoked.former_key(record)
        return key is not None and self._verdicts.holds(record, key)

    def _is_seed(self, signer: str) -> bool:
        admitted = self._admitted.get(signer)
        return signer == ROOT or (admitted is not None and admitted.by_root and admitted.role == "seed")

    def _admit(self, node: str, record: Record | None) -> bool:
        """Follow the admission that counts; True when key or role changed."""
        before = self._admitted.pop(node, None)
        if record is not None:
            self._admitted[node] = admitted_by(record)
        return self._admitted.get(node) != before

    def _trim(self, name: SlotKey, slot: Slot) -> None:
        """Hold the bounds on records that do not count (yet): a few a key, and the oldest of all go first."""
        if slot.best is not None and len(slot.candidates) == 1:
            self._waiting.pop(slot.best.text, None)  # as nearly always: all that is left counts
            return
        useful = {slot.best.text} if slot.best else set()
        if slot.ownership:
            useful.add(slot.ownership.grant.text)
        spare = [record for record in slot.candidates.values() if record.text not in useful]
        spare.sort(key=lambda record: (self._holds(record), record.rank))
        for record in spare[: max(0, len(slot.candidates) - CANDIDATES_PER_KEY_MAX)]:
            self._forget(name, slot, record)
        for record in slot.candidates.values():
            if self._holds(record):
                self._waiting.pop(record.text, None)
            else:
                self._waiting.setdefault(record.text, name)
        while len(self._waiting) > WAITING_MAX:
            text, other = next(iter(self._waiting.items()))
            self._forget(other, self._slots[other], self._slots[other].candidates[text])
            self._drop_if_empty(other)
        self._drop_if_empty(name)

    def _forget(self, name: SlotKey, slot: Slot, record: Record) -> None:
        del slot.candidates[record.text]
        self._waiting.pop(record.text, None)
        whose = speaker(record)
        if all(speaker(other) != whose for other in slot.candidates.values()):
            self._signed_by[whose].discard(name)
            if not self._signed_by[whose]:
                del self._signed_by[whose]

    def _drop_if_empty(self, name: SlotKey) -> None:
        slot = self._slots.get(name)
        if slot is not None and not slot.candidates:
            del self._slots[name]

    def _count_reject(self, record: Record) -> None:
        if self.record(record.map, record.key) is record or self._holds(record):
            return
        known = record.signer == ROOT or speaker(record) in self._admitted
        wrong = "no_proof" if record.map is RoomMap.FORKS else "bad_signature"
        self.rejects[wrong if known else "unknown_signer"] += 1

    def _changed(self, changed: dict[SlotKey, None]) -> Change | None:
        if not changed:
            return None
        self.version += 1
        self._parts.change(room_map for room_map, _ in changed)
        return Change(tuple(changed))
