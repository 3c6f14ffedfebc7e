from stateroom import verdicts
from stateroom.records import parse_record
from stateroom.verdicts import Verdicts


def test_a_verdict_is_remembered_by_record_and_key_and_bounded(mesh, monkeypatch) -> None:
    monkeypatch.setattr(verdicts, "VERDICTS_MAX", 2)
    calls: list[bytes] = []

    def verify(key: bytes, signature: bytes, message: bytes) -> bool:
        calls.append(key)
        return key == b"good"

    memory = Verdicts(verify)
    record = parse_record(mesh.node("b"))
    assert [memory.holds(record, key) for key in (b"good", b"bad", b"good")] == [True, False, True]
    assert calls == [b"good", b"bad"]
    memory.holds(record, b"third")
    assert len(memory._known) == 2
