from collections import Counter

import pyarrow.compute as pc

from gateway.lake.blocks import EVENTS_PER_ROOT, Mesh, make_block
from outbox.ids import event_id
from spark.schema import arrow_schema

MESH = Mesh(("n0", "n1", "n2", "n3"), ("x", "y"), ("cap.a",), (0, 0, 5000, 0))
START_MS = 1_780_000_000_000


def block(seed=1, number=0, count=3000):
    return make_block(MESH, seed, number, count, START_MS)


def test_the_same_seed_makes_the_same_block_and_another_one_another():
    assert block().rows.equals(block().rows)
    assert not block().rows.equals(block(seed=2).rows)
    assert not block().rows.equals(block(number=1).rows)


def test_rows_have_all_columns_but_their_place_outbox_by_outbox():
    rows = block().rows
    assert rows.schema.names == [n for n in arrow_schema().names if n not in {"epoch", "seq"}] + ["node"]
    assert rows["node"].to_pylist() == sorted(rows["node"].to_pylist())
    assert 0.9 < len(rows) / (3000 * EVENTS_PER_ROOT) < 1.1
    senders = Counter(rows["sourceNodeId"].filter(pc.equal(rows["kind"], "message")).to_pylist())
    assert senders["n0"] > 2 * senders["n3"], "one node is the busiest"


def test_ids_are_ids_each_event_has_its_own_and_attempts_share_theirs():
    rows = block().rows.select(["eventId", "kind", "attempt"]).to_pylist()
    assert all(event_id(row["eventId"]) for row in rows[:200])
    assert len({(row["eventId"], row["attempt"]) for row in rows}) == len(rows)
    assert len({row["eventId"] for row in rows}) < len(rows)


def test_a_clock_that_is_behind_shows_in_the_truth():
    truth = block().truth.to_pylist()
    skewed = {row["subject"] for row in truth if row["class"] == "clock_skew"}
    assert skewed == {"n0>n2", "n1>n2", "n3>n2"}
