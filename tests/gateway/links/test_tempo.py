"""How often frames are handled: at once while a peer behaves, at their rate when it does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.links.limits import FRAMES_IN_A_ROW, HAVE_EVERY_S, OFFERS_MAX
from gateway.links.tempo import RATES, Tempo
from gateway.wire.frames import Bye, Credit, Entries, Filter, Frame, Have, Ping, Pong, Seen, Want
from gateway.wire.limits import HAVE_STREAMS_MAX
from outbox.ids import NodeId
from outbox.rates import Rate
from tests.mesh.piping import EPOCH

VPS = NodeId("vps")
SMALL: list[Frame] = [
    Have(()),
    Want(VPS, None, 0, Filter.MINE),
    Seen(VPS, EPOCH, 1),
    Credit(1),
    Ping(1),
    Pong(1, 1),
]


def waited_ms(tempo: Tempo, frame: Frame, now_ms: int) -> int:
    return round(1000 * (tempo.pause_s(frame, now_ms) or 0))


@pytest.mark.parametrize("frame", SMALL, ids=lambda frame: type(frame).__name__)
def test_a_flood_is_handled_at_its_rate(frame: Frame) -> None:
    """Whoever sends for ten seconds as fast as it is read gets its burst and ten seconds' worth."""
    tempo, rate, now_ms, handled = Tempo(), RATES[type(frame)], 5_000, 0
    while now_ms <= 15_000:
        now_ms += waited_ms(tempo, frame, now_ms)
        handled += 1
    assert handled == pytest.approx(rate.burst + 10 * rate.per_s, abs=rate.per_s / 100 + 3)


@given(st.lists(st.integers(0, 500), max_size=200))
def test_who_keeps_to_the_rate_never_waits(pauses_ms: list[int]) -> None:
    tempo, now_ms = Tempo({Ping: Rate(1, 10)}), 0
    for pause_ms in pauses_ms:
        now_ms += 100 + pause_ms
        assert waited_ms(tempo, Ping(1), now_ms) == 0


def test_whatever_comes_others_have_their_turn_after_some_frames() -> None:
    tempo = Tempo({})
    pauses = [tempo.pause_s(Bye("x"), 0) for _ in range(3 * FRAMES_IN_A_ROW)]
    assert pauses == 3 * [*[None] * (FRAMES_IN_A_ROW - 1), 0.0]


def test_kinds_do_not_wait_for_each_other() -> None:
    tempo = Tempo({Ping: Rate(1, 1), Seen: Rate(1, 1)})
    assert waited_ms(tempo, Ping(1), 0) == waited_ms(tempo, Seen(VPS, EPOCH, 1), 0) == 0
    assert waited_ms(tempo, Bye("x"), 0) == 0


def test_who_has_as_much_as_there_may_be_and_all_of_it_grows_never_waits() -> None:
    tempo, frames = Tempo(), OFFERS_MAX // HAVE_STREAMS_MAX
    for second in range(60):
        for _ in range(frames):
            assert waited_ms(tempo, Have(()), int(second * HAVE_EVERY_S * 1000)) == 0


def test_the_longest_first_list_and_all_wants_are_handled_at_once() -> None:
    tempo = Tempo()
    assert RATES[Have].burst > OFFERS_MAX // HAVE_STREAMS_MAX
    assert all(waited_ms(tempo, Have(()), 0) == 0 for _ in range(OFFERS_MAX // HAVE_STREAMS_MAX))
    assert all(waited_ms(tempo, SMALL[1], 0) == 0 for _ in range(1_000))
    assert Entries not in RATES, "pages have credit"
