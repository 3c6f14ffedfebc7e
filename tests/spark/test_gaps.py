from functools import reduce
from itertools import groupby, pairwise
from operator import or_

from hypothesis import given, settings
from hypothesis import strategies as st

from spark.gaps import BUCKET, Bucket, buckets_of, gaps, gaps_table, seq_gaps
from spark.layout import covering
from spark.limits import GAP_RANGES_MAX
from spark.spans import Span
from tests.spark.histories import EPOCH, history
from tests.spark.reporting import frame, one


def buckets(places, node="a"):
    """The buckets that these places fall into, as Spark makes them."""
    for number, found in groupby(sorted(places), key=lambda place: (place - 1) // BUCKET + 1):
        places_in = list(found)
        bits = sum(1 << ((place - 1) % BUCKET) for place in places_in)
        whole = bits == (1 << BUCKET) - 1
        yield Bucket(
            node, "e", number, None if whole else bits.to_bytes(BUCKET // 8, "little"), len(places_in), 0
        )


def bits_of(ranges):
    """A number with a bit for each place: sets of a hundred thousand places take seconds."""
    return reduce(or_, (((1 << last - first + 1) - 1) << first for first, last in ranges), 0)


near = st.sets(
    st.one_of(
        st.integers(1, 60), st.integers(BUCKET - 30, BUCKET + 30), st.integers(5 * BUCKET, 5 * BUCKET + 9)
    )
)


@given(near.filter(bool), near.filter(bool))
@settings(deadline=None)
def test_finds_exactly_what_is_missing(first, second):
    found = list(gaps([*buckets(first, "a"), *buckets(second, "b")], {}))
    for node, places in (("a", first), ("b", second)):
        ranges = [(gap.first, gap.last) for gap in found if gap.node == node]
        assert bits_of(ranges) == bits_of([(1, max(places))]) & ~bits_of((place, place) for place in places)
        assert all(high + 1 < low for (_, high), (low, _) in pairwise(ranges))
    assert all(gap.missing == gap.last - gap.first + 1 for gap in found)


def test_a_full_bucket_between_two_others_has_no_hole():
    whole = set(range(1, 3 * BUCKET + 1)) - {7, 3 * BUCKET - 1}
    assert [(gap.first, gap.last) for gap in gaps(buckets(whole), {})] == [(7, 7), (3 * BUCKET - 1,) * 2]


@given(near.filter(bool), st.lists(st.tuples(st.integers(1, 70), st.integers(0, 9)), max_size=4))
@settings(deadline=None)
def test_what_its_writer_signed_away_is_not_missing(places, spans):
    signed = covering(Span(first, first + more).file_name for first, more in spans)
    found = gaps(buckets(places), {("a", "e"): signed})
    there = bits_of([*((place, place) for place in places), *signed])
    assert bits_of((gap.first, gap.last) for gap in found) == bits_of([(1, max(places))]) & ~there


def test_more_holes_than_anybody_reads_are_counted_in_the_last():
    holes = range(2, 4 * GAP_RANGES_MAX, 2)
    found = list(gaps(buckets(set(range(1, 4 * GAP_RANGES_MAX + 1)) - set(holes)), {}))
    assert len(found) == GAP_RANGES_MAX
    assert sum(gap.missing for gap in found) == len(holes)
    assert found[-1].last == holes[-1]


def test_spark_makes_the_buckets_and_repeated_rows_fill_no_hole(spark, tmp_path):
    rows = [row for row in history([one()] * 20) if row.seq not in {3, 4, 9}]
    held = buckets_of(frame(spark, tmp_path, rows + rows))
    flagged = sum(row.flags is not None for row in rows)
    assert [(each.events, each.flagged) for each in held] == [(2 * len(rows), 2 * flagged)]
    table = gaps_table(spark, held, {})
    assert [tuple(row) for row in table.collect()] == [("a", EPOCH, 3, 4, 2), ("a", EPOCH, 9, 9, 1)]
    pruned = gaps_table(spark, held, {("a", EPOCH): [Span(1, 8)]})
    assert [tuple(row) for row in pruned.collect()] == [("a", EPOCH, 9, 9, 1)]
    (subject,) = seq_gaps(table).collect()
    assert (subject.subject, subject.detail) == (f"a/{EPOCH}", "3 entries between 3 and 9")


def test_no_gap_is_an_empty_table(spark, tmp_path):
    table = gaps_table(spark, buckets_of(frame(spark, tmp_path, history([one()]))), {})
    assert table.collect() == seq_gaps(table).collect() == []
