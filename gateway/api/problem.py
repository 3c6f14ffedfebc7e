"""The problem document (RFC 9457): as a gateway writes it, and what another program makes of it."""

import msgspec

from gateway.errors import Denied, Unreachable
from gateway.limits import PROBLEM_CODE_CHARS_MAX, PROBLEM_TEXT_CHARS_MAX

MEDIA_TYPE = "application/problem+json"


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The document's members."""

    type: str
    title: str
    status: int
    detail: str
    error: str
    """The code again, under the name that the joining protocol gives it."""
    code: str
    hint: str
    retryable: bool
    revocations: tuple[str, ...] = ()
    """Of ``node_revoked`` at the peer listener: the signed words about the key. Left out where none are."""


class _Read(msgspec.Struct, frozen=True):
    """What matters of it to a reader; another version may leave out the rest."""

    code: str
    detail: str = ""
    hint: str = ""
    retryable: bool = False
    revocations: tuple[str, ...] = ()


def refusal_of(place: str, status: int, body: bytes) -> Denied | Unreachable:
    """Denied with the code of a problem document; Unreachable when something else answered at ``place``."""
    try:
        problem = msgspec.json.decode(body, type=_Read)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Unreachable(f"what answers HTTP {status} at {place} is no gateway", hint="check the address")
    code = problem.code[:PROBLEM_CODE_CHARS_MAX]
    what = problem.detail[:PROBLEM_TEXT_CHARS_MAX] or code
    return Denied(
        code,
        what,
        hint=problem.hint[:PROBLEM_TEXT_CHARS_MAX],
        retryable=problem.retryable,
        words=problem.revocations,
    )
