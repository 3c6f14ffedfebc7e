"""What another gateway said no to, as an error of ours."""

import msgspec

from gateway.errors import Denied, Unreachable
from outbox.errors import MeshError


class _Problem(msgspec.Struct, frozen=True):
    code: str
    detail: str = ""
    hint: str = ""
    retryable: bool = False


def refusal_of(status: int, body: bytes) -> MeshError:
    """Denied with the code of a problem document; Unreachable when something else answered."""
    try:
        problem = msgspec.json.decode(body, type=_Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Unreachable(f"something answered HTTP {status}, but no gateway", hint="check the address")
    return Denied(
        problem.code[:80],
        problem.detail[:300] or problem.code[:80],
        hint=problem.hint[:300],
        retryable=problem.retryable,
    )
