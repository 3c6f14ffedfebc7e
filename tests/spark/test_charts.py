import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark.charts import bar, columns, flow, latency_axis, latency_range, strip
from spark.summary import Bucket, LatencyLine

counts = st.integers(0, 10**9)


def parse(markup):
    """A drawing must be well formed; HTML's own entities do not occur in it."""
    return ET.fromstring(f"<div>{markup}</div>")


@given(st.floats(-10, 10))
def test_a_bar_stays_in_its_place(part):
    assert 0 <= float(parse(bar(part, "good")).findall(".//rect")[1].get("width").rstrip("%")) <= 100


@given(st.lists(st.builds(Bucket, st.integers(0, 10**12), counts, counts, counts), min_size=1, max_size=60))
def test_columns_stack_up_to_the_top_and_no_further(buckets):
    if max(b.done + b.waiting + b.failed for b in buckets) == 0:
        return
    tree = parse(columns(buckets, 1000))
    stacks = [
        sum(float(rect.get("height")) for rect in group.findall("rect")) for group in tree.findall(".//g")
    ]
    assert len(stacks) == len(buckets)
    assert max(stacks) == pytest.approx(100, abs=0.1)


@given(st.lists(st.integers(-(10**9), 10**12), min_size=3, max_size=3).map(sorted))
def test_ranges_stay_on_the_scale_in_order(percentiles):
    drawn = latency_range(tuple(percentiles))
    parse(drawn)
    places = [float(x) for x in re.findall(r'x[12]="([\d.]+)%"', drawn)]
    assert all(0 <= place <= 100 for place in places)
    far = re.search(r'class="far" x1="([\d.]+)%" x2="([\d.]+)%"', drawn)
    assert float(far[1]) <= float(far[2])
    assert latency_range(None) == ""
    assert "10 ms" in latency_axis()


names = st.sampled_from(("vps", "mbp", "lab", ""))


@given(st.lists(st.tuples(names, names, st.integers(1, 10**6)), min_size=1, max_size=12))
def test_ribbons_have_the_weight_of_their_messages(pairs):
    lines = [LatencyLine("nodes", s, t, n, 0, 0, 0, 0, 0, 0, 0, None, None, None) for s, t, n in pairs]
    tree = parse(flow(lines))
    drawn = tree.findall(".//path")
    assert len(drawn) == len(pairs)
    ends = [float(y) for path in drawn for y in re.findall(r"(?:100 |V)(-?[\d.]+)", path.get("d"))]
    assert all(-0.1 <= end <= 100.1 for end in ends)


@given(st.lists(counts, min_size=1, max_size=60))
def test_a_strip_has_a_column_for_each_slice_that_has_something(numbers):
    drawn = strip(numbers, [place * 1000 for place in range(len(numbers))], 1000, "bad")
    if not any(numbers):
        assert drawn == ""
        return
    columns = parse(drawn).findall(".//rect")
    assert len(columns) == sum(number > 0 for number in numbers)
    assert all(0 < float(column.get("height")) <= 28 for column in columns)
