import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auth.audit import AuditAction, AuditEvent, AuditRow, next_row, verify_audit
from auth.errors import AuditBroken


def chain(length: int) -> list[AuditRow]:
    rows: list[AuditRow] = []
    for number in range(length):
        event = AuditEvent(at_ms=number, action=AuditAction.REFUSED, node="mbp", detail="x")
        rows.append(next_row(rows[-1] if rows else None, event))
    return rows


def test_a_chain_holds_from_its_genesis() -> None:
    assert verify_audit(chain(5)) == 5
    assert verify_audit([]) == 0


@given(st.integers(0, 4))
def test_a_missing_or_changed_row_shows(place: int) -> None:
    rows = chain(6)
    changed = AuditRow(
        rows[place].seq, msgspec.structs.replace(rows[place].event, node="lab"), rows[place].hash
    )
    for broken in (rows[:place] + rows[place + 1 :], [*rows[:place], changed, *rows[place + 1 :]]):
        with pytest.raises(AuditBroken):
            verify_audit(broken)


def test_fields_do_not_run_into_each_other() -> None:
    one = next_row(None, AuditEvent(at_ms=1, action=AuditAction.REFUSED, node="ab", jkt="c"))
    two = next_row(None, AuditEvent(at_ms=1, action=AuditAction.REFUSED, node="a", jkt="bc"))
    assert one.hash != two.hash
