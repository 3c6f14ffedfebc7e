from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from spark.spans import overlaps, without
from tests.spark.test_layout import spans


@given(spans, st.lists(spans, max_size=6))
def test_what_is_left_of_a_range_without_others(span, others):
    left = [place for part in without(span, sorted(others)) for place in range(part.first, part.last + 1)]
    gone = {place for other in others for place in range(other.first, other.last + 1)}
    assert left == [place for place in range(span.first, span.last + 1) if place not in gone]


@given(st.lists(spans, max_size=12))
def test_overlaps_are_the_places_held_more_than_once(given_spans):
    held = Counter(seq for span in given_spans for seq in range(span.first, span.last + 1))
    found = overlaps(given_spans)
    assert {seq for span in found for seq in range(span.first, span.last + 1)} == {
        seq for seq, times in held.items() if times > 1
    }
    assert all(earlier.last + 1 < later.first for earlier, later in pairwise(found))
