"""Gateway proofs: the server shows who it is before any secret is sent to it.

JWS ``typ ansible-gateway-proof+jwt`` by the gateway's node key (in the header), over the caller's own random
nonce. A seed's proof carries its seed certificate, so that whoever knows only the mesh can check it as well.
"""

import msgspec

from auth import jws
from auth.certificates import read_certificate
from auth.errors import InvalidJws, WrongGateway
from auth.keys import Jkt, PublicKey, SigningKey
from outbox.ids import MeshId, NodeId

_TYP = "ansible-gateway-proof+jwt"


class GatewayProof(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """Claims: all that the answer to a challenge says, and what was asked."""

    client_nonce: str
    node: str
    nonce: str
    gw: str
    mesh: str
    cert: str = ""
    """The gateway's seed certificate; absent when it is no seed."""


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller knows about the gateway beforehand. Without ``jkt``, any seed of the mesh will do."""

    mesh: MeshId
    jkt: Jkt | None = None
    """From a join code or an admission record."""
    seed: bool = True
    """Only a seed will do. A member's key can be known from its admission record alone."""


class KnownGateway(msgspec.Struct, frozen=True):
    """A server that has proved who it is."""

    node: NodeId
    key: PublicKey


def prove_gateway(claims: GatewayProof, key: SigningKey) -> str:
    """The proof as text."""
    return jws.sign(_TYP, claims, key)


def check_gateway_proof(
    proof: str, pin: Pin, *, client_nonce: str, node: NodeId, nonce: str, gateway: NodeId
) -> KnownGateway:
    """The gateway that gave this proof. Raises WrongGateway."""
    try:
        key, claims = jws.verify_with_own_key(proof, _TYP, GatewayProof)
    except InvalidJws:
        raise _wrong("it gave no proof that can be checked") from None
    wanted = GatewayProof(
        client_nonce=client_nonce, node=node, nonce=nonce, gw=gateway, mesh=pin.mesh, cert=claims.cert
    )
    if claims != wanted:
        raise _wrong("its proof is for something else")
    if pin.jkt is not None and key.jkt != pin.jkt:
        raise _wrong("its key is not the expected one")
    if pin.seed or pin.jkt is None:
        _check_certificate(claims.cert, pin.mesh, KnownGateway(gateway, key))
    return KnownGateway(gateway, key)


def _check_certificate(text: str, mesh: MeshId, gateway: KnownGateway) -> None:
    try:
        certificate = read_certificate(text, mesh)
    except InvalidJws:
        raise _wrong("the root of the mesh did not certify it") from None
    if (certificate.node, certificate.key) != (gateway.node, gateway.key):
        raise _wrong("its certificate is another node's")


def _wrong(why: str) -> WrongGateway:
    return WrongGateway(
        f"the server is not the gateway that was asked for: {why}",
        hint="nothing secret was sent; check the address, or ask for a new join code",
    )
