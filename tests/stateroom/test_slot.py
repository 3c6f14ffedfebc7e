from stateroom.records import parse_record
from stateroom.slot import Slot, dominated


def test_only_lower_records_of_equal_standing_are_useless(mesh) -> None:
    old, new = parse_record(mesh.node("b")), parse_record(mesh.node("b", counter=2))
    assert dominated([new, old]) == dominated([old, new]) == [old]
    claims = [parse_record(mesh.agent("x", owner)) for owner in ("b", "c")]
    assert dominated(claims) == []


def test_admissions_of_two_seeds_do_not_shadow_each_other(mesh) -> None:
    both = [parse_record(mesh.admission("b", by=by, counter=n)) for n, by in ((1, "seed"), (2, "seed2"))]
    assert dominated(both) == []


def test_a_new_slot_shows_nothing() -> None:
    assert Slot().best is None
