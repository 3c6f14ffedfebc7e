import msgspec
from hypothesis import given
from hypothesis import strategies as st

from stateroom.exchange import Entry
from stateroom.limits import HEARD_RATE, STALE_MS
from stateroom.picture import Seen
from stateroom.presence import Presence, client_of
from stateroom.records import Record


def presence(mesh, *nodes: str) -> Presence:
    return Presence(mesh.index(*nodes).heartbeat)


def entry(text: str, client: int = 9, clock: int = 1) -> Entry:
    return Entry(client, clock, msgspec.json.encode({"record": text}).decode())


def test_identity_comes_from_the_record_and_never_from_the_message(mesh) -> None:
    here = presence(mesh, "b")
    news = here.hear([entry(mesh.heartbeat("b", 5), client=client_of("seed"), clock=2**50)], now_ms=100)
    assert set(here.seen()) == {"b"}
    assert news == here.snapshot()
    assert (news[0].client, news[0].clock) == (client_of("b"), 5)


def test_strangers_forgeries_and_stock_states_are_not_passed_on(mesh) -> None:
    here = presence(mesh, "b")
    other_map = mesh.node("b")
    for state in (
        entry(mesh.heartbeat("c", 5)).state,
        entry(mesh.heartbeat("b", 5, forged_by="c")).state,
        entry(other_map).state,
        entry("junk").state,
        '{"user":{"name":"viewer"}}',
        "null",
        "[" * 5000,
        "",
    ):
        assert here.hear([Entry(1, 1, state)], 0) == ()
    assert here.seen() == {}


def test_a_heartbeat_counts_once_even_after_its_node_expired(mesh) -> None:
    here = presence(mesh, "b")
    beat = entry(mesh.heartbeat("b", 5))
    assert here.hear([beat], 0)
    assert not here.hear([beat], 10)
    assert not here.expire(STALE_MS - 1)
    assert here.expire(STALE_MS)
    assert here.online() == {}
    assert not here.hear([beat], STALE_MS + 1)
    assert here.hear([entry(mesh.heartbeat("b", 6))], STALE_MS + 2)


def test_of_a_node_that_sends_without_end_a_bounded_number_is_looked_at_and_passed_on(mesh) -> None:
    index, looked = mesh.index("b", "c"), []

    def judge(text: str) -> Record | None:
        looked.append(text)
        return index.heartbeat(text)

    here, passed = Presence(judge), 0
    for number in range(1, 1_001):
        passed += len(here.hear([entry(mesh.heartbeat("b", number))], now_ms=5 * number))
    assert passed == len(looked)
    assert passed in range(HEARD_RATE.burst, HEARD_RATE.burst + int(5 * HEARD_RATE.per_s) + 1)
    assert here.hear([entry(mesh.heartbeat("c", 1))], 5_000), "others are heard as before"
    assert here.hear([entry(mesh.heartbeat("b", 2_000))], 6_000), "and it itself, when it has calmed down"


def test_what_many_pass_on_and_what_is_old_uses_nothing_up(mesh) -> None:
    here = presence(mesh, "b")
    beats = [entry(mesh.heartbeat("b", number)) for number in range(1, 4)]
    assert here.hear([beats[1]], 0)
    for _ in range(500):
        assert not here.hear([beats[0], beats[1]], 0)
    assert here.hear([beats[2]], 0)


def test_nobody_uses_up_what_is_another_ones(mesh) -> None:
    here = presence(mesh, "b")
    for number in range(1, 1_000):
        assert not here.hear([entry(mesh.heartbeat("b", number, forged_by="c"))], 0)
    assert here.hear([entry(mesh.heartbeat("b", 1))], 0)


def test_when_a_node_was_last_heard_is_known_after_it_went(mesh) -> None:
    here = presence(mesh, "b")
    here.hear([entry(mesh.heartbeat("b", 5))], 7)
    assert here.expire(STALE_MS + 7)
    assert not here.expire(2 * STALE_MS), "told once"
    assert here.seen() == {"b": Seen(online=False, last_seen_ms=7)}
    assert here.snapshot() == ()
    here.hear([entry(mesh.heartbeat("b", 6))], 3 * STALE_MS)
    assert here.seen()["b"].online


def test_a_new_outbox_epoch_begins_a_new_count(mesh) -> None:
    here = presence(mesh, "b")
    assert here.hear([entry(mesh.heartbeat("b", 500))], 0)
    assert here.hear([entry(mesh.heartbeat("b", 5, epoch=2))], 0)


def test_our_own_heartbeat_is_shown_and_sent(mesh) -> None:
    here = presence(mesh, "b")
    assert here.beat(mesh.heartbeat("seed", 3), 7) == here.snapshot()
    assert here.seen()["seed"].last_seen_ms == 7


def test_the_table_is_bounded_and_shrinks(mesh, monkeypatch) -> None:
    monkeypatch.setattr("stateroom.presence.NODES_PRESENT_MAX", 3)
    nodes = [f"n{number}" for number in range(6)]
    here = presence(mesh, *nodes)
    here.hear([entry(mesh.heartbeat(node, 1)) for node in nodes], 0)
    assert len(here.seen()) == 3
    here.expire(STALE_MS)
    assert len(here._heard) == 0


@given(st.lists(st.tuples(st.sampled_from("bc"), st.integers(1, 6), st.integers(0, 3)), max_size=12))
def test_the_version_rises_with_each_change_and_news_are_new(mesh, beats) -> None:
    here = presence(mesh, "b", "c")
    last: dict[str, int] = {}
    for node, counter, now in beats:
        version = here.version
        news = here.hear([entry(mesh.heartbeat(node, counter))], now)
        assert bool(news) == (counter > last.get(node, 0)) == (here.version > version)
        last[node] = max(counter, last.get(node, 0))


def test_activity_is_kept_passed_on_and_changes_nothing_about_who_is_alive(mesh) -> None:
    here = presence(mesh, "b")
    active = entry(mesh.activity("b", 7, {"bob": 70}))
    assert here.hear([active], 0) == (), "of a node that nobody has heard"
    here.hear([entry(mesh.heartbeat("b", 5))], 0)
    version = here.version
    (news,) = here.hear([active], 1)
    assert (news.client, news.clock) == (client_of("activity/b"), 7)
    assert here.hear([active], 2) == (), "heard before"
    assert here.hear([entry(mesh.activity("b", 6, {"bob": 60}))], 2) == (), "older than what was heard"
    assert (here.version, here.seen()["b"].last_seen_ms) == (version, 0)
    assert here.snapshot()[1:] == (news,)
    assert [here.last_active_ms("b", name) for name in ("bob", "ann")] == [70, None]
    assert here.last_active_ms("c", "bob") is None


def test_activity_outlasts_its_nodes_absence_and_is_not_told_meanwhile(mesh) -> None:
    here = presence(mesh, "b")
    here.hear([entry(mesh.heartbeat("b", 5)), entry(mesh.activity("b", 7, {"bob": 70}))], 0)
    here.expire(STALE_MS)
    assert here.snapshot() == ()
    assert here.last_active_ms("b", "bob") == 70
    assert here.hear([entry(mesh.activity("b", 1, {"bob": 80}, epoch=2))], STALE_MS)
    assert here.last_active_ms("b", "bob") == 80


def test_nobody_tells_of_the_agents_of_another_node(mesh) -> None:
    here = presence(mesh, "b", "c")
    here.hear([entry(mesh.heartbeat("b", 5))], 0)
    assert here.hear([entry(mesh.activity("b", 7, {"bob": 70}, forged_by="c"))], 0) == ()
    assert here.last_active_ms("b", "bob") is None
