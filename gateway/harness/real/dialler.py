"""Who dials: read from the first bytes of a connection between two gateways.

All of them name the dialling node: a challenge and a renewal in their bodies, an upgrade in its proof. A
cable needs it to know which two nodes it connects.
"""

import re

import msgspec

from auth.messages import PROOF_HEADER
from outbox import base64url
from outbox.errors import CallerError
from outbox.ids import NodeId, node_id

_IN_BODY = re.compile(rb'"nodeId"\s*:\s*"([^"]{1,63})"')
_IN_PROOF = re.compile(rb"\r\n" + PROOF_HEADER.encode() + rb":\s*[\w-]+\.([\w-]+)\.", re.IGNORECASE)


class _Claims(msgspec.Struct):
    node: str


def dialler_of(start: bytes) -> NodeId | None:
    """The node that these bytes name; None while they name none."""
    found = _IN_BODY.search(start)
    name = found[1].decode(errors="replace") if found else _from_proof(start)
    try:
        return node_id(name)
    except CallerError:
        return None


def _from_proof(start: bytes) -> str:
    found = _IN_PROOF.search(start)
    if found is None:
        return ""
    try:
        return msgspec.json.decode(base64url.decode(found[1].decode()), type=_Claims).node
    except (ValueError, CallerError):
        return ""
