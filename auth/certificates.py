"""Seed certificates: the mesh root says which node, with which key, may admit others.

JWS ``typ ansible-seed+jwt`` with the root key in its header. The thumbprint of that key *is* the mesh id, so
a reader that knows the mesh needs nothing else to check one.
"""

from typing import Literal

import msgspec

from auth import jws
from auth.errors import InvalidJws, InvalidKey
from auth.keys import PublicKey, SigningKey
from outbox.ids import MeshId, NodeId

_TYP = "ansible-seed+jwt"


class _Claims(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    mesh: str
    node: str
    key: str
    role: Literal["seed"]
    iat: int


class SeedCertificate(msgspec.Struct, frozen=True):
    """What a certificate says."""

    mesh: MeshId
    node: NodeId
    key: PublicKey
    issued_at_s: int


def mesh_id_of(root: PublicKey) -> MeshId:
    """The mesh that a root key founds."""
    return MeshId(root.jkt)


def issue_certificate(root: SigningKey, node: NodeId, key: PublicKey, now_ms: int) -> str:
    """Make a node a seed of the root's mesh."""
    mesh = mesh_id_of(root.public)
    claims = _Claims(mesh=mesh, node=node, key=key.text, role="seed", iat=now_ms // 1000)
    return jws.sign(_TYP, claims, root)


def read_certificate(text: str, mesh: MeshId) -> SeedCertificate:
    """What the root of this mesh certified. Raises InvalidJws."""
    root, claims = jws.verify_with_own_key(text, _TYP, _Claims)
    if mesh_id_of(root) != mesh or claims.mesh != mesh:
        raise InvalidJws("the certificate is of another mesh")
    try:
        key = PublicKey.from_text(claims.key)
    except InvalidKey:
        raise InvalidJws("the certificate holds no key") from None
    return SeedCertificate(mesh, NodeId(claims.node), key, claims.iat)
