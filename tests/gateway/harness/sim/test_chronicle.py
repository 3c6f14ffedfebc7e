"""Traces: times, digests and what is kept of them."""

from hashlib import sha256

from gateway.harness.sim.chronicle import LINES_KEPT, Chronicle


def test_a_line_has_a_time_and_no_trailing_space() -> None:
    heard: list[str] = []
    chronicle = Chronicle(lambda: 1_234_567, echo=heard.append)
    chronicle.note("n1", "dies")
    chronicle.note("n2", "bye", "n1 link_ended")
    assert heard == list(chronicle.lines) == ["1.235 n1 dies", "1.235 n2 bye n1 link_ended"]
    assert chronicle.digest() == sha256(b"1.235 n1 dies\n1.235 n2 bye n1 link_ended\n").hexdigest()


def test_the_digest_covers_what_is_kept_no_longer() -> None:
    one, other = Chronicle(lambda: 0), Chronicle(lambda: 0)
    one.note("a", "b")
    for chronicle in (one, other):
        for _ in range(LINES_KEPT):
            chronicle.note("n", "x")
    assert one.lines == other.lines
    assert one.digest() != other.digest()
    assert (one.count, len(one.lines)) == (LINES_KEPT + 1, LINES_KEPT)
