"""The stream says what the batch job says, in whatever pieces the lake came and wherever it was killed."""

import signal
import subprocess
import sys
import time
from itertools import count

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from spark import stream
from spark.errors import LakeEmpty
from spark.layout import EVENTS, stream_dir
from spark.limits import FOLLOW_HORIZON_MS, FOLLOW_LINGER_MS
from spark.rules import STREAM_RULES
from spark.spans import Span
from spark.stream import Following, incidents_told, start
from tests.spark.histories import ACCEPT_MS, AS_OF_MS, START_MS, Turn, history, root_of, scripts
from tests.spark.reporting import THRESHOLDS, one, put_file, report, table

pytestmark = pytest.mark.timeout(300)

_runs = count()
TELLS = ("class", "rootId", "openedAt", "closedAt", "severity", "detail", "state")
"""What a line is told again for; its other columns, as the number of attempts, are those of that time."""


class Killed(Exception):
    """The process is gone."""


class Growing:
    """A lake into which rows are put piece by piece."""

    def __init__(self, place):
        self.lake, self.out = place / "lake", place / "stream"
        (self.lake / EVENTS).mkdir(parents=True)
        self._files = count()

    def add(self, rows):
        """One file an outbox; names chain on as a collector's do."""
        number = next(self._files)
        for node, epoch in {(row.source_node_id, row.epoch) for row in rows}:
            entries = [row for row in rows if (row.source_node_id, row.epoch) == (node, epoch)]
            span = Span(1 + number * 1000, 1000 + number * 1000)
            put_file(self.lake / EVENTS / stream_dir(node, epoch) / span.file_name, entries)


def follow(spark, growing, now_ms=AS_OF_MS, tell=lambda _: None, **more):
    """Take what is there, in one batch at least: with no new file that needs a second to have passed."""
    following = Following(
        lake=growing.lake, out=growing.out, thresholds=THRESHOLDS, now_ms=lambda: now_ms, tell=tell, **more
    )
    done = batches_done(following)
    for _ in range(20):
        query = start(spark, following, interval_s=None)
        assert query.awaitTermination(60)
        if batches_done(following) > done:
            return following
        time.sleep(0.1)
    pytest.fail("no second passed")


def batches_done(following):
    return max((int(path.name) for path in following.place.glob("checkpoint/commits/[0-9]*")), default=-1)


def told(rows):
    return sorted((tuple(row[name] for name in TELLS) for row in rows), key=str)


def batch_tells(spark, place, rows):
    _, out = report(spark, place, rows)
    return told(row for row in table(out, "incidents") if row["class"] not in STREAM_RULES)


def stream_tells(spark, following):
    return told(incidents_told(spark, following.place).toArrow().to_pylist())


def examples(number):
    return settings(
        max_examples=number,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
        ],
    )


drawn, order = st.lists(scripts, min_size=1, max_size=40), st.randoms(use_true_random=False)


@given(drawn, order)
@examples(1)
def test_says_what_the_batch_job_says_in_whatever_pieces_the_rows_came(spark, tmp_path, drawn, order):
    says_what_the_batch_job_says(spark, tmp_path, drawn, order)


@pytest.mark.long
@pytest.mark.timeout(900)
@given(drawn, order)
@examples(12)
def test_says_what_the_batch_job_says_of_many_histories(spark, tmp_path, drawn, order):
    says_what_the_batch_job_says(spark, tmp_path, drawn, order)


def says_what_the_batch_job_says(spark, tmp_path, drawn, order):
    """What is over is put aside with every batch, and asked for when it is heard of again."""
    place = tmp_path / str(next(_runs))
    rows = history(drawn)
    mixed = rows + order.sample(rows, len(rows) // 4)
    order.shuffle(mixed)
    growing = Growing(place)
    cut = sorted(order.randrange(len(mixed) + 1) for _ in range(2))
    pieces = [mixed[begin:end] for begin, end in zip((0, *cut), (*cut, len(mixed)), strict=True)]
    for left, piece in zip(range(len(pieces), 0, -1), pieces, strict=True):
        growing.add(piece)
        follow(spark, growing, AS_OF_MS - 2 * left, linger_ms=1)
    following = follow(spark, growing, AS_OF_MS, linger_ms=1)  # answers what the last piece asked
    assert stream_tells(spark, following) == batch_tells(spark, place, rows)


@pytest.mark.long
def test_what_turns_out_to_be_for_several_is_withdrawn_as_a_whole(spark, tmp_path):
    """Its first attempt, which went elsewhere, came after an incident had been told of it."""
    rows = history([one(sender="b", receiver="*", attempts=2, turns=(Turn(850, "failed", "b"),))])
    first = [row for row in rows if row.event_id == root_of(0) and row.attempt == 1]
    assert first
    growing = Growing(tmp_path)
    growing.add([row for row in rows if row not in first])
    following = follow(spark, growing, AS_OF_MS - 2)
    assert any(
        name == "turn_failed" and subject == root_of(0)
        for name, subject, *_ in stream_tells(spark, following)
    )
    growing.add(first)
    following = follow(spark, growing, AS_OF_MS)
    assert stream_tells(spark, following) == batch_tells(spark, tmp_path, rows)


QUESTION, ANSWERED = one(), one(accepted_ms=(5,), turns=(Turn(10, "ok", "b"),))


def test_silence_raises_incidents_an_answer_closes_or_withdraws_them_and_each_node_speaks_for_itself(
    spark, tmp_path
):
    growing, heard = Growing(tmp_path), []

    def tell(news):
        heard.append(sorted((row["change"], row["class"], row["subject"]) for row in news.collect()))

    group = one(receiver="b,007", accepted_ms=(5,), turns=(Turn(9, "ok", "b"),))
    rows = history([one(accepted_ms=(2 * ACCEPT_MS,)), group])
    late, silent, done = root_of(0), f"{root_of(1)}@007", f"{root_of(1)}@b"
    growing.add([row for row in rows if row.source_node_id == "a"])
    follow(spark, growing, START_MS + 10, tell)
    follow(spark, growing, START_MS + ACCEPT_MS + 10, tell)  # nothing came, and time went by
    follow(spark, growing, START_MS + ACCEPT_MS + 20, tell)
    growing.add([row for row in rows if row.source_node_id == "b"])
    follow(spark, growing, START_MS + 3 * ACCEPT_MS, tell)
    compiled = classes_compiled(spark)
    follow(spark, growing, START_MS + 3 * ACCEPT_MS + 10, tell)
    assert classes_compiled(spark) == compiled, "the moment of judgement is no part of the code"
    assert heard == [
        [],
        sorted(("opened", "never_accepted", subject) for subject in (late, silent, done)),
        [],
        [
            ("opened", "late_ack", late),
            *sorted(("withdrawn", "never_accepted", subject) for subject in (late, done)),
        ],
        [],
    ]


def classes_compiled(spark):
    return spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME().getCount()


STEPS = ("state", "changes", "over", "tell", "forget")


@pytest.mark.long
def test_a_death_at_any_step_of_a_batch_changes_nothing(spark, tmp_path, monkeypatch):
    deaths = [(step, moment) for step in STEPS for moment in ("before", "after")]
    die_everywhere(spark, tmp_path, monkeypatch, deaths)


def die_everywhere(spark, place, monkeypatch, deaths):
    """One death after another, with something new in the lake before each."""
    scripts = [QUESTION, ANSWERED, one(dead_ms=7), one(accepted_ms=(5,)), one(accepted_ms=(2 * ACCEPT_MS,))]
    rows = history(scripts * 2)
    growing = Growing(place)
    for number, (step, moment) in enumerate(deaths):
        growing.add(rows[number :: len(deaths)])
        with monkeypatch.context() as patched, pytest.raises(Exception, match="Killed"):
            follow(spark, growing, tell=dies_at(patched, step, moment), linger_ms=0)
    follow(spark, growing, linger_ms=0)  # does the batch that nobody finished
    follow(spark, growing, linger_ms=0)
    following = follow(spark, growing, linger_ms=0)  # tells of those that the last batch asked for
    assert stream_tells(spark, following) == batch_tells(spark, place, rows)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_process_killed_at_each_step_goes_on_where_it_was(spark, tmp_path):
    rows = history([QUESTION, ANSWERED, one(dead_ms=7), one(accepted_ms=(5,))] * 2)
    growing = Growing(tmp_path)
    steps = ("state", "changes", "over", "tell", "forget", "commit")
    command = [sys.executable, "-m", "tests.spark.followed", growing.lake, growing.out, tmp_path / "cache"]
    for number, step in enumerate(steps):
        growing.add(rows[number :: len(steps)])
        died = subprocess.run([*command, step], capture_output=True, timeout=200, check=False)
        assert died.returncode == -signal.SIGKILL, died.stderr[-2000:]
    done = subprocess.run(command, capture_output=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    following = follow(spark, growing)
    assert stream_tells(spark, following) == batch_tells(spark, tmp_path, rows)


def dies_at(patched, step, moment):
    """Make one step of a batch end the process, before or after it did its work. Returns what is told to."""

    def deadly(work, is_it):
        def run(*arguments):
            if is_it(arguments) and moment == "before":
                raise Killed
            work(*arguments)
            if is_it(arguments):
                raise Killed

        return run

    def tell(_news):
        if step == "tell":
            raise Killed  # before and after are the same: it does nothing here

    patched.setattr(
        stream, "_write", deadly(stream._write, lambda arguments: arguments[1].parent.name == step)
    )
    patched.setattr(stream, "put", deadly(stream.put, lambda _: step == "over"))
    patched.setattr(stream, "_forget", deadly(stream._forget, lambda _: step == "forget"))
    return tell


@pytest.mark.long
def test_finished_messages_are_forgotten_after_the_horizon_and_open_ones_are_not(spark, tmp_path):
    growing = Growing(tmp_path)
    growing.add(history([QUESTION, ANSWERED]))
    following = follow(spark, growing, AS_OF_MS, horizon_ms=1000)
    follow(spark, growing, AS_OF_MS + 5000, horizon_ms=1000)
    state = spark.read.parquet(str(max((following.place / "state").glob("v=*"), key=number_of)))
    assert state.where("stage <> 'gone'").count() == 1
    assert [(line[0], line[3]) for line in stream_tells(spark, following)] == [("never_accepted", None)]


@pytest.mark.long
def test_what_is_over_is_put_aside_and_known_again_when_it_is_heard_of(spark, tmp_path):
    twice = one(attempts=2, accepted_ms=(5,), turns=(Turn(9, "ok", "b"), Turn(20, "ok", "a")))
    rows = [row for row in history([twice]) if row.kind in {"message", "ack"}]
    before, late = rows[:-1], rows[-1:]
    growing, heard, now_ms = Growing(tmp_path), [], AS_OF_MS

    def tell(news):
        heard.extend((row["change"], row["class"]) for row in news.collect())

    def after(delay_ms):
        nonlocal now_ms
        now_ms += delay_ms
        heard.clear()
        following = follow(
            spark,
            growing,
            now_ms,
            lambda news: heard.extend((row["change"], row["class"]) for row in news.collect()),
        )
        state = spark.read.parquet(str(max((following.place / "state").glob("v=*"), key=number_of)))
        return state.where("stage in ('open', 'asked')").count(), list(heard)

    growing.add(before)
    assert after(0) == (1, [])
    assert after(FOLLOW_LINGER_MS) == (0, [])
    growing.add(before)  # as when a compaction wrote them anew
    assert after(1) == (1, [])
    assert after(1) == (1, []), "it is known again, and nothing is new"
    assert after(FOLLOW_LINGER_MS) == (0, [])
    growing.add(late)
    assert after(1) == (1, []), "it is asked for first"
    assert after(1) == (1, [("opened", "duplicate_engagement")])
    assert after(FOLLOW_LINGER_MS) == (0, [])
    growing.add(late)
    assert after(1) == (1, [])
    assert after(1) == (1, []), "it was told"
    aside = len(list((tmp_path / "stream" / "follow" / "over").iterdir()))
    after(FOLLOW_HORIZON_MS + 1)
    left = list((tmp_path / "stream" / "follow" / "over").iterdir())
    assert (aside, len(left)) == (4, 1), "what nobody asked for in a day is gone"


@pytest.mark.long
def test_a_message_to_several_is_put_aside_when_all_have_ended_it_and_comes_back_as_one(spark, tmp_path):
    group = one(receiver="b,007", accepted_ms=(5,), turns=(Turn(9, "ok", "b"), Turn(20, "failed", "007")))
    rows = [row for row in history([group]) if row.kind in {"message", "ack"}]
    half = [row for row in rows if row.source_node_id != "007"]
    growing, heard = Growing(tmp_path), []

    def at(delay_ms):
        """Subjects at hand, and what was told of whom."""
        heard.clear()
        following = follow(spark, growing, AS_OF_MS + delay_ms, lambda news: heard.extend(news.collect()))
        newest = max((following.place / "state").glob("v=*"), key=number_of)
        state = spark.read.parquet(str(newest)).where("stage in ('open', 'asked')")
        told = sorted((row["change"], row["class"], row["subject"]) for row in heard)
        return sorted(row.subject for row in state.collect()), told

    def of(*nodes):
        return [f"{root_of(0)}@{node}" for node in nodes]

    growing.add(half)
    assert at(0) == (of("007", "b"), [("opened", "never_accepted", *of("007"))])
    assert at(FOLLOW_LINGER_MS) == (of("007", "b"), []), "one of them is open: they belong together"
    growing.add(rows)
    told = [("opened", "turn_failed", *of("007")), ("withdrawn", "never_accepted", *of("007"))]
    assert at(FOLLOW_LINGER_MS + 1) == (of("007", "b"), told)
    assert at(2 * FOLLOW_LINGER_MS + 1) == ([], [])
    growing.add(rows)  # as when a compaction wrote them anew
    assert at(2 * FOLLOW_LINGER_MS + 2) == (of("007", "b"), [])
    assert at(2 * FOLLOW_LINGER_MS + 3) == (of("007", "b"), []), "both are known again, and nothing is new"
    assert at(3 * FOLLOW_LINGER_MS + 3) == ([], [])
    following = follow(spark, growing, AS_OF_MS + 3 * FOLLOW_LINGER_MS + 4)
    assert stream_tells(spark, following) == batch_tells(spark, tmp_path, rows)


def number_of(directory):
    return int(directory.name.removeprefix("v="))


@pytest.mark.long
def test_goes_on_while_a_compaction_replaces_files(spark, tmp_path):
    rows = history([QUESTION, ANSWERED, one(dead_ms=7)])
    growing = Growing(tmp_path)
    growing.add(rows)
    follow(spark, growing)
    for path in growing.lake.rglob("seq-*.parquet"):
        entries = [row for row in rows if stream_dir(row.source_node_id, row.epoch) in str(path)]
        put_file(path.with_name(Span(1, 2000).file_name), entries)
        path.unlink()
    following = follow(spark, growing)
    assert stream_tells(spark, following) == batch_tells(spark, tmp_path, rows)


@pytest.mark.long
def test_a_stream_ticks_without_files_until_it_is_stopped(spark, tmp_path):
    growing, ticks = Growing(tmp_path), []
    growing.add(history([QUESTION]))
    following = Following(
        lake=growing.lake, out=growing.out, thresholds=THRESHOLDS, now_ms=lambda: AS_OF_MS,
        tell=lambda news: ticks.append(news.count()),
    )  # fmt: skip
    query = start(spark, following, interval_s=0.5)
    try:
        deadline = time.monotonic() + 60
        while len(ticks) < 3 and query.isActive and time.monotonic() < deadline:
            query.awaitTermination(0.1)
    finally:
        query.stop()
    assert query.exception() is None
    assert sum(ticks) == 1


def test_without_a_lake_it_says_how_to_make_one(spark, tmp_path):
    following = Following(
        lake=tmp_path, out=tmp_path, thresholds=THRESHOLDS, now_ms=lambda: 0, tell=lambda _: None
    )
    with pytest.raises(LakeEmpty) as caught:
        start(spark, following, interval_s=None)
    assert "gateway collect" in caught.value.hint
