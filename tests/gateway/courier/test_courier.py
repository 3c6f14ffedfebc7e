from itertools import count

import pytest

from gateway.courier.courier import Courier
from gateway.courier.errors import Conflict, InvalidCredit, StreamFull, UnknownLease, UnknownStream
from gateway.courier.halts import Halt
from gateway.courier.item import HandOver, Item, ItemId, Pumped
from gateway.courier.limits import DEALT_MAX, CourierLimits
from outbox.ids import AgentId, EventId, NodeId
from tests.gateway.lines import lines_run

INBOX = "agents/jen/inbox"

A = NodeId("a")


def key(name: str) -> ItemId:
    return NodeId("a"), EventId(name), AgentId("jen")


class Desk:
    """A courier with one stream, a made-up clock and readable lease ids."""

    def __init__(self, **limits: int) -> None:
        self.courier = Courier(CourierLimits(**{"lease_ms": 100, "max_deliveries": 3, **limits}))  # type: ignore[arg-type]
        self.courier.open(INBOX)
        self.now_ms = 0
        self._leases = count(1)

    def offer(self, *names: str, priority: int = 2) -> None:
        for name in names:
            self.courier.offer(INBOX, Item(key(name), priority), self.now_ms)

    def read(self, subscriber: str, credit: int, session: str | None = "phone") -> None:
        self.courier.subscribe(subscriber, INBOX, session)
        self.courier.grant(subscriber, credit)

    def pump(self) -> list[HandOver]:
        return self.courier.pump(self.now_ms, lambda: f"l{next(self._leases)}").hand_overs

    def names(self) -> list[str]:
        return [given.item_id[1] for given in self.pump()]


def test_without_credit_nothing_is_handed_over() -> None:
    desk = Desk()
    desk.courier.subscribe("sub", INBOX, "phone")
    desk.offer("a")
    assert desk.pump() == []


def test_a_hand_over_names_the_lease_and_counts_from_one() -> None:
    desk = Desk()
    desk.read("sub", 1)
    desk.offer("a")
    assert desk.pump() == [HandOver("sub", INBOX, key("a"), "l1", "phone", 1, resumed=False)]
    assert desk.pump() == []


def test_priority_goes_first_and_equals_in_order() -> None:
    desk = Desk()
    desk.offer("n1", "n2")
    desk.offer("urgent", priority=0)
    desk.offer("low", priority=4)
    desk.read("sub", 10)
    assert desk.names() == ["urgent", "n1", "n2", "low"]


def test_a_full_stream_refuses_and_keeps_a_tenth_for_urgent_ones() -> None:
    desk = Desk(max_depth=10)
    desk.offer(*"abcdefghi", priority=4)
    assert not desk.courier.has_room(INBOX, 2)
    with pytest.raises(StreamFull):
        desk.offer("j", priority=2)
    desk.offer("alarm", priority=0)
    with pytest.raises(StreamFull):
        desk.offer("alarm-2", priority=0)
    desk.read("sub", 1)
    assert desk.names() == ["alarm"]
    assert len(desk.courier.ids()) == 10


def test_a_withheld_item_counts_and_is_not_dealt() -> None:
    desk = Desk(max_depth=2)
    desk.offer("a", "b", priority=0)
    desk.courier.withhold(INBOX, key("a"))
    assert not desk.courier.has_room(INBOX, 0)
    desk.read("sub", 3)
    assert desk.names() == ["b"]
    desk.courier.let_go(INBOX, key("a"), desk.now_ms)
    assert desk.names() == ["a"]
    for gone in ("x", "a"):
        desk.courier.discard(INBOX, key(gone))
        desk.courier.withhold(INBOX, key(gone))
        desk.courier.let_go(INBOX, key(gone), desk.now_ms)
    desk.courier.withhold("elsewhere", key("a"))
    desk.courier.let_go("elsewhere", key("a"), desk.now_ms)
    assert desk.names() == []


def test_who_has_an_item_keeps_it() -> None:
    desk = Desk()
    desk.offer("a")
    desk.read("sub", 3)
    (given,) = desk.pump()
    desk.courier.withhold(INBOX, key("a"))
    desk.courier.let_go(INBOX, key("a"), desk.now_ms)
    assert desk.courier.lease_of(INBOX, key("a")) == given.lease_id
    desk.now_ms += CourierLimits().lease_ms
    assert desk.names() == ["a"]


@pytest.mark.parametrize("back", ["nack", "expired", "its reader left"])
@pytest.mark.parametrize("free", [False, True])
def test_an_item_of_a_halted_source_waits_when_it_comes_back(back: str, free: bool) -> None:
    desk = Desk()
    desk.offer("a")
    desk.read("sub", 3, session=None)
    (given,) = desk.pump()
    desk.courier.halt(A, Halt.NEW if free else Halt.ALL, desk.now_ms)
    assert desk.courier.lease_of(INBOX, key("a")) == given.lease_id, "who has it keeps it"
    match back:
        case "nack":
            desk.courier.nack(INBOX, key("a"), given.lease_id, None, 0, desk.now_ms)
        case "expired":
            desk.now_ms += CourierLimits().lease_ms
        case _:
            desk.courier.unsubscribe("sub", desk.now_ms)
            desk.read("another", 3)
    assert desk.names() == (["a"] if free else [])
    desk.courier.halt(A, None, desk.now_ms)
    assert desk.names() == ([] if free else ["a"])


@pytest.mark.parametrize("gone", [False, True])
def test_an_item_that_had_its_deliveries_is_given_up_when_its_source_is_not_halted_any_more(
    *, gone: bool
) -> None:
    desk = Desk(max_deliveries=1)
    desk.offer("a")
    desk.read("sub", 3)
    (given,) = desk.pump()
    desk.courier.halt(A, Halt.ALL, desk.now_ms)
    desk.courier.nack(INBOX, key("a"), given.lease_id, None, 0, desk.now_ms)
    for _ in range(2):
        assert desk.courier.pump(desk.now_ms, lambda: "l") == Pumped([], [])
        assert (desk.courier.ids(), desk.courier.next_deadline_ms()) == ([key("a")], None)
    if gone:
        desk.courier.discard(INBOX, key("a"))
    desk.courier.halt(A, Halt.NEW, desk.now_ms)
    pumped = desk.courier.pump(desk.now_ms, lambda: "l")
    assert [item.id for _, item in pumped.exhausted] == ([] if gone else [key("a")])
    assert desk.courier.ids() == []


def test_the_items_of_a_stream_and_the_ids_of_all() -> None:
    desk = Desk()
    desk.offer("a", "b")
    desk.courier.offer("elsewhere", Item(key("c"), 2), 0)
    assert [item.id for item in desk.courier.items(INBOX)] == [key("a"), key("b")]
    assert desk.courier.items("nowhere") == []
    assert desk.courier.ids() == [key("a"), key("b"), key("c")]


def test_items_in_flight_take_up_room() -> None:
    desk = Desk(max_depth=2)
    desk.read("sub", 2)
    desk.offer("a", "b", priority=0)
    assert len(desk.pump()) == 2
    with pytest.raises(StreamFull):
        desk.offer("c", priority=0)


def test_an_id_is_refused_while_it_is_queued_or_in_flight_only() -> None:
    desk = Desk()
    desk.offer("a")
    with pytest.raises(Conflict):
        desk.offer("a")
    desk.read("sub", 1)
    desk.pump()
    with pytest.raises(Conflict):
        desk.offer("a")
    desk.courier.discard(INBOX, key("a"))
    desk.offer("a")


def test_a_lease_that_runs_out_is_dealt_again_without_other_traffic() -> None:
    desk = Desk()
    desk.read("sub", 5)
    desk.offer("a")
    desk.pump()
    assert desk.courier.next_deadline_ms() == 100
    desk.now_ms = 99
    assert desk.pump() == []
    desk.now_ms = 100
    assert desk.pump() == [HandOver("sub", INBOX, key("a"), "l2", "phone", 2)]
    with pytest.raises(UnknownLease):
        desk.courier.extend(INBOX, key("a"), "l1", "phone", 1, desk.now_ms)
    assert desk.courier.lease_of(INBOX, key("a")) == "l2"
    desk.courier.discard(INBOX, key("a"))
    assert desk.courier.next_deadline_ms() is None


def test_extend_moves_the_expiry_and_is_cut_to_its_limit() -> None:
    desk = Desk(lease_ms_max=500)
    desk.read("sub", 1)
    desk.offer("a")
    desk.pump()
    desk.now_ms = 50
    assert desk.courier.extend(INBOX, key("a"), "l1", "phone", 400, 50) == 450
    assert desk.courier.extend(INBOX, key("a"), "l1", "phone", 10**12, 50) == 550
    assert desk.courier.next_deadline_ms() == 550
    with pytest.raises(UnknownLease):
        desk.courier.extend(INBOX, key("a"), "l9", "phone", 400, 50)


def test_nack_goes_to_the_tail() -> None:
    desk = Desk()
    desk.offer("a", "b")
    desk.read("sub", 1)
    desk.pump()
    desk.courier.nack(INBOX, key("a"), "l1", "phone", 0, 0)
    desk.courier.grant("sub", 2)
    assert desk.names() == ["b", "a"]


def test_an_item_that_only_waits_for_credit_has_no_deadline() -> None:
    desk = Desk()
    desk.offer("a")
    desk.read("sub", 1)
    desk.pump()
    desk.courier.nack(INBOX, key("a"), "l1", "phone", 0, 0)
    assert desk.courier.next_deadline_ms() is None


def test_a_delayed_nack_waits_for_its_time() -> None:
    desk = Desk()
    desk.offer("a")
    desk.read("sub", 2)
    desk.pump()
    desk.courier.nack(INBOX, key("a"), None, None, 30, 10)
    desk.now_ms = 39
    assert desk.names() == []
    assert desk.courier.next_deadline_ms() == 40
    desk.now_ms = 40
    assert desk.names() == ["a"]


def test_an_item_offered_for_later_waits_for_its_time() -> None:
    desk = Desk()
    desk.read("sub", 1)
    desk.courier.offer(INBOX, Item(key("a"), 2, ready_at_ms=25), 0)
    assert desk.names() == []
    desk.now_ms = 25
    assert desk.names() == ["a"]


def test_an_item_nobody_can_digest_is_given_up() -> None:
    desk = Desk(max_deliveries=2)
    desk.read("sub", 9)
    desk.offer("a")
    desk.pump()
    desk.courier.nack(INBOX, key("a"), "l1", "phone", 0, 0)
    desk.pump()
    desk.courier.nack(INBOX, key("a"), "l2", "phone", 5_000, 1)
    assert desk.courier.next_deadline_ms() == 1
    pumped = desk.courier.pump(1, lambda: "never")
    assert [(stream, item.id, item.deliveries) for stream, item in pumped.exhausted] == [(INBOX, key("a"), 2)]
    assert pumped.hand_overs == []
    assert desk.courier.ids() == []


def test_expiry_of_the_last_delivery_gives_up_too() -> None:
    desk = Desk(max_deliveries=1)
    desk.read("sub", 9)
    desk.offer("a")
    desk.pump()
    assert [item.id for _, item in desk.courier.pump(100, lambda: "never").exhausted] == [key("a")]


def test_a_session_resumes_its_lease_without_credit_or_a_new_count() -> None:
    desk = Desk()
    desk.read("first", 1)
    desk.offer("a")
    desk.pump()
    desk.courier.unsubscribe("first", 10)
    desk.courier.subscribe("second", INBOX, "phone")
    assert desk.courier.can_deal
    assert desk.pump() == [HandOver("second", INBOX, key("a"), "l1", "phone", 1, resumed=True)]
    assert desk.courier.extend(INBOX, key("a"), "l1", "phone", 5, 10) == 15


def given_again(**limits: int) -> Desk:
    """A session that has ten of fifteen in hand comes back, ready for as many."""
    desk = Desk(**limits)
    desk.read("first", 10)
    desk.offer(*"abcdefghijklmno")
    desk.pump()
    desk.read("other", 2, session="laptop")
    desk.pump()
    desk.read("second", 10)
    return desk


def test_no_pump_gives_again_more_than_it_may_and_nothing_new_goes_before() -> None:
    desk, pumps = given_again(), []
    while desk.courier.can_deal:
        given = desk.courier.pump(desk.now_ms, lambda: "new", 4).hand_overs
        assert len(given) <= 4
        pumps.append("".join(hand.item_id[1] if hand.resumed else hand.item_id[1].upper() for hand in given))
        assert {hand.subscriber for hand in given} <= {"second"}
    assert pumps == ["abcd", "efgh", "ij", "MNO"], "with what another session has, four were looked at"


def test_what_is_given_again_lasts_for_a_full_lease_however_late_it_came_back() -> None:
    desk = given_again()
    desk.now_ms = 100
    assert [hand.resumed for hand in desk.pump()] == [True] * 10 + [False] * 5, "in time: no pump was before"
    desk.now_ms = 199
    assert desk.pump() == []


def test_what_ends_or_runs_out_before_its_turn_is_not_given_again() -> None:
    desk = given_again()
    desk.courier.pump(0, lambda: "new", 4)
    desk.courier.discard(INBOX, key("e"))
    desk.courier.nack(INBOX, key("f"), None, None, 0, 0)
    given = {hand.item_id[1]: hand.resumed for hand in desk.pump()}
    assert given == dict.fromkeys("ghij", True) | dict.fromkeys("fmno", False)


def test_who_leaves_or_is_replaced_is_given_nothing_more() -> None:
    desk = given_again()
    desk.courier.pump(0, lambda: "new", 4)
    desk.read("third", 1)
    assert [(hand.subscriber, hand.resumed) for hand in desk.pump()] == [("third", True)] * 10 + [
        ("third", False)
    ]
    desk.read("fourth", 1)
    desk.courier.unsubscribe("fourth", 0)
    assert desk.pump() == []


def test_leases_of_a_source_end_at_once_and_its_items_come_back_one_by_one() -> None:
    desk = given_again()
    desk.offer("x")
    desk.courier.halt(A, Halt.ALL, 0)
    in_hand = desk.courier.end_leases([A])
    assert sorted(item_id[1] for item_id in in_hand) == [*"abcdefghijkl"]
    assert desk.courier.leased(INBOX, 99) == []
    for item_id in in_hand:
        assert desk.courier.lease_of(INBOX, item_id) is None
        with pytest.raises(UnknownLease):
            desk.courier.extend(INBOX, item_id, None, "phone", 5, 0)
    assert desk.pump() == [], "nor is anything given again"
    for item_id in in_hand[:6]:
        desk.courier.take_back(INBOX, item_id, 0)
    desk.now_ms = 100
    assert desk.pump() == []
    for item_id in in_hand[6:]:
        desk.courier.take_back(INBOX, item_id, 100)
    desk.courier.halt(A, None, 100)
    given = [(hand.item_id[1], hand.delivery_count) for hand in desk.pump()]
    desk.courier.grant("second", 10)
    given += [(hand.item_id[1], hand.delivery_count) for hand in desk.pump()]
    assert sorted(given) == [*((name, 2) for name in "abcdefghijkl"), *((name, 1) for name in "mnox")]


def test_to_end_leases_and_to_come_back_looks_at_none_of_them() -> None:
    work = []
    for items in (10, 1_000):
        desk = Desk()
        desk.read("sub", items)
        desk.offer(*(str(number) for number in range(items)))
        assert len(desk.courier.pump(0, lambda: "l").hand_overs) == min(items, DEALT_MAX)
        while desk.courier.can_deal:
            desk.pump()
        back = lines_run(lambda desk=desk: desk.courier.subscribe("back", INBOX, "phone"))
        pumped = lines_run(lambda desk=desk: desk.courier.pump(0, lambda: "l", 5))
        ended = lines_run(lambda desk=desk: desk.courier.end_leases([A]))
        work.append((back, pumped, ended))
    assert work[0] == work[1]


def test_a_lease_that_is_made_after_others_have_ended_counts() -> None:
    desk = Desk()
    desk.courier.end_leases([A])
    desk.offer("a")
    desk.courier.restore(INBOX, Item(key("b"), 2), "old", "phone", 0)
    desk.read("sub", 1)
    assert sorted(hand.item_id[1] for hand in desk.pump()) == ["a", "b"]
    desk.courier.take_back(INBOX, key("a"), 0)
    assert desk.courier.lease_of(INBOX, key("a"))
    assert desk.courier.lease_of(INBOX, key("b")) == "old"


def test_another_session_gets_nothing_before_the_lease_runs_out() -> None:
    desk = Desk()
    desk.read("first", 1)
    desk.offer("a")
    desk.pump()
    desk.courier.unsubscribe("first", 10)
    desk.read("other", 5, session="laptop")
    assert desk.names() == []
    with pytest.raises(UnknownLease):
        desk.courier.extend(INBOX, key("a"), "l1", "laptop", 1, desk.now_ms)
    desk.now_ms = 100
    assert desk.pump() == [HandOver("other", INBOX, key("a"), "l2", "laptop", 2)]


def test_a_lease_that_survived_a_restart_has_its_full_term_and_its_count() -> None:
    desk = Desk()
    desk.now_ms = 1_000
    desk.courier.restore(INBOX, Item(key("a"), 2, deliveries=2), "old", "phone", 1_000)
    assert desk.courier.next_deadline_ms() == 1_100
    desk.read("sub", 1)
    assert desk.pump() == [HandOver("sub", INBOX, key("a"), "old", "phone", 2, resumed=True)]
    desk.now_ms = 1_100
    assert desk.pump() == [HandOver("sub", INBOX, key("a"), "l1", "phone", 3)]


def test_what_was_accepted_before_a_restart_fits_even_under_a_lower_limit() -> None:
    desk = Desk(max_depth=1)
    for name in "abc":
        desk.courier.readmit(INBOX, Item(key(name), 2), 0)
    desk.read("sub", 9)
    assert desk.names() == ["a", "b", "c"]


def test_a_reader_without_session_returns_its_items_when_it_leaves() -> None:
    desk = Desk()
    desk.read("lone", 1, session=None)
    desk.offer("a")
    desk.pump()
    desk.courier.unsubscribe("lone", 5)
    desk.read("other", 1, session=None)
    assert desk.pump() == [HandOver("other", INBOX, key("a"), "l2", None, 2)]


def test_the_newer_connection_of_a_session_takes_over() -> None:
    desk = Desk()
    desk.read("half-open", 5)
    desk.read("fresh", 1)
    desk.offer("a")
    assert [given.subscriber for given in desk.pump()] == ["fresh"]
    with pytest.raises(Conflict):
        desk.courier.grant("half-open", 1)
    desk.courier.unsubscribe("half-open", 0)
    desk.courier.grant("fresh", 1)
    desk.offer("b")
    assert desk.names() == ["b"]


def test_sessions_of_one_name_on_two_streams_do_not_meet() -> None:
    desk = Desk()
    desk.courier.open("agents/bob/inbox")
    desk.read("jen", 1)
    desk.courier.subscribe("bob", "agents/bob/inbox", "phone")
    desk.courier.grant("jen", 1)
    desk.offer("a")
    assert [given.subscriber for given in desk.pump()] == ["jen"]


def test_a_subscriber_id_is_taken_once() -> None:
    desk = Desk()
    desk.read("sub", 1)
    with pytest.raises(Conflict):
        desk.courier.subscribe("sub", INBOX, "laptop")


@pytest.mark.parametrize("credit", [0, -1, True, 1.0, float("nan"), float("inf"), "1", None, 2**63])
def test_only_positive_whole_numbers_are_credit(credit: object) -> None:
    desk = Desk()
    desk.courier.subscribe("sub", INBOX, "phone")
    with pytest.raises(InvalidCredit):
        desk.courier.grant("sub", credit)  # type: ignore[arg-type]
    desk.offer("a")
    assert desk.pump() == []


def test_unused_credit_is_bounded() -> None:
    desk = Desk(credit_max=10)
    desk.read("sub", 6)
    with pytest.raises(InvalidCredit):
        desk.courier.grant("sub", 5)
    desk.courier.grant("sub", 4)
    desk.offer(*"abcdefghijkl")
    assert len(desk.pump()) == 10
    desk.courier.grant("sub", 10)
    assert desk.names() == ["k", "l"]


@pytest.mark.parametrize("readers", [2, 7])
def test_readers_that_grant_one_at_a_time_are_served_in_turn(readers: int) -> None:
    desk, shares = Desk(), dict[str, int]()
    for reader in range(readers):
        desk.read(f"r{reader}", 1, session=f"s{reader}")
    for place in range(readers * 10):
        desk.offer(f"e{place}")
        for given in desk.pump():
            desk.courier.discard(INBOX, given.item_id)
            desk.courier.grant(given.subscriber, 1)
            shares[given.subscriber] = shares.get(given.subscriber, 0) + 1
    assert shares == {f"r{reader}": 10 for reader in range(readers)}


def test_a_cancelled_item_is_gone_wherever_it_was() -> None:
    desk = Desk()
    desk.read("sub", 1)
    desk.offer("flying", "waiting")
    desk.courier.offer(INBOX, Item(key("delayed"), 2, ready_at_ms=50), 0)
    desk.pump()
    for name in ("flying", "waiting", "delayed", "never"):
        desk.courier.discard(INBOX, key(name))
    desk.courier.discard("no such stream", key("flying"))
    desk.courier.grant("sub", 5)
    desk.now_ms = 1_000
    assert desk.pump() == []
    assert desk.courier.next_deadline_ms() is None
    assert desk.courier.ids() == []
    with pytest.raises(UnknownLease):
        desk.courier.extend(INBOX, key("flying"), "l1", "phone", 1, desk.now_ms)


def test_a_stream_that_nobody_opened_is_unknown() -> None:
    courier = Courier(CourierLimits())
    assert courier.has_room("x", 4)
    for call in (
        lambda: courier.subscribe("sub", "x", "phone"),
        lambda: courier.nack("x", key("a"), None, None, 0, 0),
        lambda: courier.extend("x", key("a"), None, None, 1, 0),
    ):
        with pytest.raises(UnknownStream):
            call()


def test_the_live_lease_of_an_item_can_be_asked_for() -> None:
    desk = Desk()
    desk.read("sub", 1)
    desk.offer("a")
    assert desk.courier.lease_of(INBOX, key("a")) is None
    desk.pump()
    assert desk.courier.lease_of(INBOX, key("a")) == "l1"
    assert desk.courier.lease_of("no such stream", key("a")) is None
    desk.courier.discard(INBOX, key("a"))
    assert desk.courier.lease_of(INBOX, key("a")) is None


def test_no_pump_deals_more_than_it_may_and_nobody_waits_for_one_that_takes_all() -> None:
    desk = Desk()
    for stream in ("one", "other"):
        for number in range(5):
            desk.courier.offer(stream, Item(key(f"{stream}-{number}"), 2), 0)
        desk.courier.subscribe(f"sub {stream}", stream, None)
        desk.courier.grant(f"sub {stream}", 5)
    dealt = []
    while desk.courier.can_deal:
        dealt.append([given.stream for given in desk.courier.pump(0, lambda: "l", 4).hand_overs])
    assert dealt == [["one"] * 4, ["other"] * 4, ["one", "other"]]


def test_no_pump_takes_back_more_than_it_may() -> None:
    desk = Desk()
    desk.courier.open(INBOX)
    desk.courier.subscribe("sub", INBOX, None)
    for number in range(5):
        desk.courier.offer(INBOX, Item(key(str(number)), 2), 0)
    desk.courier.grant("sub", 5)
    assert len(desk.courier.pump(0, lambda: "l").hand_overs) == 5
    in_hand = []
    while (due_ms := desk.courier.next_deadline_ms()) is not None:
        desk.courier.pump(due_ms, lambda: "l", 2)
        in_hand.append(len(desk.courier.leased(INBOX, 5)))
    assert in_hand == [3, 1, 0]
