"""The job where operators run it: a standalone cluster on loopback, spark-submit, and Spark Connect.

Each starts JVMs of its own, which takes most of a minute on two cores.
"""

import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from outbox.timestamps import rfc3339
from spark.java import find_java
from tests.spark.histories import AS_OF_MS, Turn, history
from tests.spark.reporting import one, put

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

DEPLOY = Path(__file__).parents[2] / "deploy" / "spark"
ROWS = history(
    [one(), one(accepted_ms=(5,)), one(accepted_ms=(5,), turns=(Turn(10, "ok", "b"),)), one(dead_ms=7)]
)
EXPECTED = {"accepted_not_processed": 1, "dead_letter": 1, "never_accepted": 1, "unknown_kind": 1}
CONNECT = ("google.rpc", "grpc", "grpc_status", "pandas", "zstandard")


def installed(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def environment(place, **more):
    """This one's, with a Java that works and without what would lead back to the checkout."""
    java = find_java(os.environ, place / "cache")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}
    return kept | {"JAVA_HOME": str(java.home), "PYTHON": sys.executable} | more


def left_running(work, within_s=30):
    """Command lines of processes that still work in a directory, once they had time to go."""
    deadline = time.monotonic() + within_s
    while True:
        found = [
            words
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if (words := words_of(path)) and any(str(work) in word for word in words)
        ]
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.2)


def words_of(path):
    try:
        return path.read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


@contextmanager
def cluster(place):
    """A master and a worker; yields the master's URL. All of it is gone at the end."""
    settings = environment(place, PORT="0", WORK=str(place / "standalone"), MEMORY="1g")
    process = subprocess.Popen(
        [DEPLOY / "standalone.sh"], env=settings, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        url = process.stdout.readline().strip()
        assert re.fullmatch(r"spark://127\.0\.0\.1:\d+", url), url
        yield url
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        process.stdout.close()
    assert not left_running(place / "standalone")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("cluster")
    put(directory / "lake", ROWS)
    return directory


@pytest.fixture(scope="module")
def master(place):
    with cluster(place) as url:
        yield url


def classes(out):
    document = json.loads((out / "incidents.json").read_bytes())
    return {line["name"]: line["incidents"] for line in document["classes"]}


def run(command, settings, where):
    done = subprocess.run(
        command, env=settings, cwd=where, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done


LOOPBACK = (
    "--conf spark.driver.host=127.0.0.1 --conf spark.driver.bindAddress=127.0.0.1"
    " --conf spark.ui.enabled=false"
)


def submit(place, master, out, *options):
    more = f"{LOOPBACK} --driver-memory 512m --conf spark.executor.memory=512m"
    settings = environment(place, MASTER=master, SUBMIT_OPTIONS=more, SPARK_LOCAL_IP="127.0.0.1")
    settings.pop("PYTHONPATH", None)
    arguments = [place / "lake", out, "--as-of", rfc3339(AS_OF_MS), "--cache", place / "cache", *options]
    return run([DEPLOY / "submit.sh", *arguments], settings, place)


def test_spark_submit_on_a_standalone_cluster_tells_what_one_machine_tells(place, master):
    done = submit(place, master, place / "clustered")
    assert "open incidents; report in" in done.stdout
    assert classes(place / "clustered") == EXPECTED
    applications = list((place / "standalone" / "worker").glob("app-*/*/stderr"))
    assert applications, "no executor of the cluster was used"


def test_spark_submit_on_this_machine_is_the_same_script(place):
    submit(place, "local[2]", place / "here")
    assert classes(place / "here") == EXPECTED


def test_the_command_reaches_a_cluster_by_its_url(place, master):
    options = ["--master", master, "--conf", "spark.executor.memory=512m"]
    options += LOOPBACK.replace("--conf ", "--conf\n").replace(" --", "\n--").split("\n")
    command = [sys.executable, "-m", "spark.job", "lake", "direct", "--as-of", rfc3339(AS_OF_MS)]
    run(
        [*command, "--cache", place / "cache", *options],
        environment(place, SPARK_LOCAL_IP="127.0.0.1"),
        place,
    )
    assert classes(place / "direct") == EXPECTED


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def connect(place):
    """A Spark Connect server of the same package."""
    port = free_port()
    home = Path(importlib.util.find_spec("pyspark").origin).parent
    command = [
        home / "bin" / "spark-submit", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
        "--master", "local[2]", *LOOPBACK.split(), "--driver-memory", "768m",
        "--conf", "spark.connect.grpc.binding.address=127.0.0.1",
        "--conf", f"spark.connect.grpc.binding.port={port}", "spark-internal",
    ]  # fmt: skip
    log = (place / "connect.log").open("w")
    server = subprocess.Popen(
        command,
        env=environment(place, SPARK_LOCAL_IP="127.0.0.1", SPARK_HOME=str(home)),
        stdout=log,
        stderr=log,
        cwd=place,
    )
    try:
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(60)
        log.close()


@pytest.mark.skipif(not all(map(installed, CONNECT)), reason="the connect extra is not installed")
def test_spark_connect_runs_the_same_job_without_a_jvm_here(place, connect):
    command = [sys.executable, "-m", "spark.job", "lake", "connected", "--as-of", rfc3339(AS_OF_MS)]
    nowhere = environment(place, MESH_JAVA_HOME="/nowhere", JAVA_HOME="/nowhere")
    run([*command, "--master", connect, "--cache", place / "cache"], nowhere, place)
    assert classes(place / "connected") == EXPECTED
