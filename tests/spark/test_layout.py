from itertools import pairwise
from pathlib import PurePath

from hypothesis import given
from hypothesis import strategies as st

from spark.layout import covering, span_of, stream_dir, stream_of
from spark.spans import Span

spans = st.tuples(st.integers(1, 60), st.integers(0, 20)).map(lambda pair: Span(pair[0], pair[0] + pair[1]))


@given(st.lists(spans, max_size=12))
def test_covering_files_hold_everything_once_and_none_lies_in_another(given_spans):
    chosen = covering(span.file_name for span in given_spans)
    held = {seq for span in given_spans for seq in range(span.first, span.last + 1)}
    assert {seq for span in chosen for seq in range(span.first, span.last + 1)} == held
    for earlier, later in pairwise(chosen):
        assert earlier.first < later.first
        assert earlier.last < later.last


@given(spans)
def test_names_say_what_they_hold(span):
    assert span_of(span.file_name) == span_of(span.note_name) == span
    assert span.file_name < Span(span.last + 1, span.last + 1).file_name


def test_other_names_are_not_ours():
    for name in (
        ".seq-000000000001-000000000002.parquet.tmp", "seq-1-2.parquet",
        "seq-000000000002-000000000001.parquet",
        "seq-000000000000-000000000001.parquet", "seq-000000000001-000000000002.parquet\n", "_SUCCESS",
        f"seq-{chr(0x661) * 12}-000000000002.parquet",
    ):  # fmt: skip
        assert span_of(name) is None
        assert covering([name]) == []


def test_a_directory_names_its_stream():
    assert stream_of(PurePath("/lake/events/v=1") / stream_dir("007", "000001-0")) == ("007", "000001-0")
    assert stream_of(PurePath("/lake/events")) is None
