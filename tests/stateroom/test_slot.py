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


def test_only_a_later_word_of_a_node_about_itself_goes_on(mesh) -> None:
    first, second = parse_record(mesh.node("b")), parse_record(mesh.node("b", counter=2))
    slot = Slot()
    assert not slot.goes_on(first), "there is nothing to go on from"
    slot.candidates, slot.best = {second.text: second}, second
    assert not slot.goes_on(first)
    assert not slot.goes_on(second)
    slot.candidates, slot.best = {first.text: first}, first
    assert slot.goes_on(second)
    slot.go_on(second)
    assert (slot.best, slot.candidates) == (second, {second.text: second})


def test_where_several_may_speak_all_are_weighed(mesh) -> None:
    slot, seeds = Slot(), [parse_record(mesh.admission("b", by="seed", counter=n)) for n in (1, 2)]
    slot.candidates, slot.best = {seeds[0].text: seeds[0]}, seeds[0]
    assert not slot.goes_on(seeds[1])


def test_a_new_slot_shows_nothing() -> None:
    assert Slot().best is None
