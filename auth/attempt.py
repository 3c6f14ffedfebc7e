"""What is known so far about a request: filled in step by step, so that a refusal can be recorded with it."""

from dataclasses import dataclass

from auth.audit import AuditAction, AuditEvent
from auth.errors import AuthError
from auth.limits import CLIENT_CHARS_MAX


@dataclass(slots=True)
class Attempt:
    """One request of one client. Only facts that hold no secret go in here."""

    what: str
    """``exchange``, ``renew`` or ``upgrade``."""
    client: str
    at_ms: int
    node: str = ""
    jkt: str = ""
    subject: str = ""
    """Invite id or ticket id, once one was found."""

    def event(self, action: AuditAction, detail: str = "") -> AuditEvent:
        """The audit event for what came of it."""
        return AuditEvent(
            at_ms=self.at_ms,
            action=action,
            node=self.node,
            jkt=self.jkt,
            client=self.client[:CLIENT_CHARS_MAX],
            subject=self.subject,
            detail=detail,
        )

    def refusal(self, error: AuthError) -> AuditEvent:
        """The audit event for its refusal."""
        return self.event(AuditAction.REFUSED, f"{self.what} {error.code}")
