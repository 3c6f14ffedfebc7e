from gateway.lake.steps import MINUTE, SECOND, TURN, Who, ack, answer, done, group, root, taken
from outbox.kinds import AckStatus, Kind, Outcome


def fields(step):
    return dict(step.fields)


def test_a_root_is_its_sender_s_and_its_retries_come_two_seconds_apart():
    assert root() == root(attempt=1)
    assert (root().by, root().to, root().after_ms) == (Who.SENDER, Who.RECEIVER, (0, 0))
    assert root(attempt=3, to=Who.OTHER).after_ms == (6 * SECOND, 6 * SECOND)
    assert fields(root(hops=7)) == {"attempt": 1, "hops": 7}
    assert group() == root()._replace(to_group=True)


def test_an_ack_says_that_it_is_on_disk_or_how_the_turn_ended():
    assert fields(ack(TURN)) == {"status": AckStatus.ACCEPTED, "outcome": Outcome.OK}
    refused = ack(TURN, AckStatus.PROCESSED, Outcome.REFUSED, by=Who.OTHER, error="not_owner")
    assert (refused.by, fields(refused)["error"]) == (Who.OTHER, "not_owner")
    failed = done((5 * SECOND, MINUTE), Outcome.FAILED)
    assert (fields(failed)["outcome"], fields(failed)["error"]) == (Outcome.FAILED, "the handler died")
    assert failed.offsets == (("engagedAt", 4 * SECOND),)
    assert done((0, 0)).offsets == (("engagedAt", 0),), "nothing is engaged before it was created"
    assert "error" not in fields(done(TURN))


def test_an_answer_is_the_receiver_s_and_the_sender_takes_it():
    said, heard = answer(Kind.REPLY, TURN, error="no"), taken(3, TURN)
    assert (said.by, said.to, said.about, fields(said)) == (Who.RECEIVER, Who.SENDER, 0, {"error": "no"})
    assert (heard.by, heard.to, heard.about, heard.kind) == (Who.SENDER, Who.RECEIVER, 3, Kind.ACK)
