"""What a node that was put out is told when it knocks: who did it and why, and their signed words.

Only who has proved to hold a key is refused as revoked, so nobody else hears of it here. The words are those
of the state room, which every member has.
"""

from auth.errors import KeyRevoked
from auth.messages import RENEW_PATH, ExchangeRequest, RenewRequest, read_request
from auth.proofs import check_request_proof
from gateway.errors import Denied
from gateway.rooms import Rooms
from gateway.wire.limits import HELLO_CHARS_MAX
from outbox import base64url
from outbox.ids import NodeId
from stateroom.revocations import fitting, revocation_body
from stateroom.view import RevocationView


def explained(refusal: Denied, path: str, body: bytes, here: NodeId, rooms: Rooms) -> Denied:
    """A refusal of this request, with what the mesh says about the key or the name."""
    if refusal.wire_code != KeyRevoked.code:
        return refusal
    renews = path == RENEW_PATH
    request = read_request(body, RenewRequest) if renews else read_request(body, ExchangeRequest)
    key = check_request_proof(
        request.node_proof,
        htu=path,
        nonce=request.nonce,
        node=request.node_id,
        gateway=here,
        rh=request.proof_hash(),
    )
    known = rooms.view().revocations.get(request.node_id, ())
    word = next((word for word in known if word.public_key == key.raw), None)
    word = word or next((word for word in known if word.ban), None)
    if word is None:
        return refusal
    return Denied(
        refusal.wire_code,
        f"{refusal}: {_said(word)}",
        hint=refusal.hint,
        words=_words(rooms, word),
    )


def _words(rooms: Rooms, word: RevocationView) -> tuple[str, ...]:
    """All about that key that fit, the shortest first."""
    key = base64url.encode(word.public_key)
    about = (record for record in rooms.revocations() if revocation_body(record).public_key == key)
    return fitting((record.text for record in about), HELLO_CHARS_MAX)


def _said(word: RevocationView) -> str:
    return f"by {word.by}, {word.reason}" if word.reason else f"by {word.by}"
