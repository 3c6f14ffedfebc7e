#!/bin/sh
# Starts a Spark master and a worker of the pyspark package in the foreground, until it is told to stop.
#
#   standalone.sh        a cluster of this machine: spark://127.0.0.1:7077
#
# Another machine joins with a worker of its own:
#   spark-class org.apache.spark.deploy.worker.Worker spark://HOST:7077
#
#   HOST      the address to listen on (127.0.0.1); beyond loopback set spark.authenticate and a secret as well
#   PORT      of the master (7077); 0 takes a free one
#   CORES     of the worker (2)
#   MEMORY    of the worker (2g)
#   WORK      directory for logs and what workers leave (./spark-standalone)
#   PYTHON    the Python whose pyspark it is (python3)
set -eu

python=${PYTHON:-python3}
host=${HOST:-127.0.0.1}
work=${WORK:-$PWD/spark-standalone}
mkdir -p "$work/local" "$work/worker"

SPARK_HOME=$("$python" -c 'import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent)')
SPARK_LOCAL_IP=$host
SPARK_LOCAL_DIRS=$work/local
SPARK_DAEMON_MEMORY=${SPARK_DAEMON_MEMORY:-256m}
export SPARK_HOME SPARK_LOCAL_IP SPARK_LOCAL_DIRS SPARK_DAEMON_MEMORY

master=
worker=
stop() {
    for pid in $worker $master; do kill "$pid" 2>/dev/null || true; done
    wait
}
# Waits up to a minute until a log says something; what it says is printed.
said() {
    for _ in $(seq 300); do
        found=$(sed -n "s/.*$2/\\1/p" "$1" 2>/dev/null)
        if [ -n "$found" ]; then
            echo "$found"
            return
        fi
        sleep 0.2
    done
    cat "$1" >&2
    return 1
}
trap stop EXIT
trap 'exit 0' INT TERM

"$SPARK_HOME/bin/spark-class" org.apache.spark.deploy.master.Master \
    --host "$host" --port "${PORT:-7077}" --webui-port 0 >"$work/master.log" 2>&1 &
master=$!

url=$(said "$work/master.log" 'Starting Spark master at \(spark:[^ ]*\).*')

"$SPARK_HOME/bin/spark-class" org.apache.spark.deploy.worker.Worker \
    --host "$host" --cores "${CORES:-2}" --memory "${MEMORY:-2g}" --webui-port 0 --work-dir "$work/worker" \
    "$url" >"$work/worker.log" 2>&1 &
worker=$!

said "$work/worker.log" 'Successfully \(registered\) with master.*' >/dev/null
echo "$url"

# A worker that has lost its master for good ends as well.
wait "$worker"
