"""The keys of a simulated mesh. Signatures are keyed hashes: fast, and only the key makes them.

The public halves are real Ed25519 keys, since the gateway refuses anything else as one.
"""

from hashlib import blake2b, sha256
from typing import Literal

from auth.keys import SigningKey
from outbox import base64url
from outbox.ids import AgentId, MeshId, NodeId
from stateroom.bodies import ROOT, AdmissionBody, AgentBody, RoomMap
from stateroom.records import Record, Verify, sign_record, thumbprint
from stateroom.verdicts import Verdicts


class SimKey:
    """Signs and verifies as one node."""

    def __init__(self, name: str) -> None:
        self._secret = sha256(f"secret of {name}".encode()).digest()
        self.raw = SigningKey(self._secret).public.raw

    def sign(self, message: bytes) -> bytes:
        """64 bytes."""
        return blake2b(message, digest_size=64, key=self._secret).digest()

    def verify(self, signature: bytes, message: bytes) -> bool:
        """Whether this key made it."""
        return signature == self.sign(message)


class SimVerdicts(Verdicts):
    """Signature checks that all nodes of a world share."""

    def __init__(self, verify: Verify) -> None:
        super().__init__(verify)
        self._shared: dict[tuple[bytes, str], bool] = {}

    def holds(self, record: Record, public_key: bytes) -> bool:
        """As ``Verdicts``, without a hash: a world ends before its texts fill the memory."""
        name = (public_key, record.text)
        known = self._shared.get(name)
        if known is None:
            known = self._shared[name] = super().holds(record, public_key)
        return known


class Keys:
    """Everybody's."""

    def __init__(self) -> None:
        self._by_name: dict[str, SimKey] = {}
        self._by_raw: dict[bytes, SimKey] = {}
        self.parsed: dict[tuple[str, str, object], Record] = {}
        """Records of the world that somebody has read."""
        self.verdicts = SimVerdicts(self.verify_raw)
        root = self.key(ROOT)
        self.mesh: MeshId = thumbprint(root.raw)

    def key(self, name: str) -> SimKey:
        """A node's key; made when first asked for."""
        key = self._by_name.get(name)
        if key is None:
            key = self._by_name[name] = SimKey(name)
            self._by_raw[key.raw] = key
        return key

    def verify_raw(self, public_key: bytes, signature: bytes, message: bytes) -> bool:
        """``stateroom.records.Verify``."""
        key = self._by_raw.get(public_key)
        return key is not None and key.verify(signature, message)

    def ownership(self, agent: AgentId, node: NodeId) -> str:
        """A node's word that an agent lives there."""
        return sign_record(
            self.key(node).sign,
            mesh=self.mesh,
            room_map=RoomMap.AGENTS,
            key=agent,
            signer=node,
            epoch=1,
            counter=1,
            body=AgentBody(owner=node, owner_epoch=1),
        )

    def admission(
        self, node: NodeId, role: Literal["member", "seed"] = "member", *, reads_all: bool = False
    ) -> str:
        """The root's word that a node is a member, or a seed, and whether it may read what is for others."""
        root = self.key(ROOT)
        return sign_record(
            root.sign,
            mesh=self.mesh,
            room_map=RoomMap.ADMISSIONS,
            key=node,
            signer=ROOT,
            epoch=1,
            counter=1,
            body=AdmissionBody(
                public_key=base64url.encode(self.key(node).raw), role=role, reads_all=reads_all
            ),
            root_key=root.raw,
        )
