#!/bin/sh
# Runs the SLA report with spark-submit: on this machine, a standalone cluster or Kubernetes.
#
#   submit.sh LAKE OUT [OPTIONS OF THE JOB …]
#
#   MASTER=spark://host:7077 submit.sh /shared/lake /shared/report --as-of 2026-11-27T12:00:00Z
#   MASTER=k8s://https://host:6443 SUBMIT_OPTIONS="--conf spark.kubernetes.container.image=…" submit.sh …
#
# LAKE and OUT must be the same directories to the driver and to every executor. The driver needs a Python with
# msgspec, pyarrow and pyyaml; the job is shipped with --py-files, and executors run no Python at all.
#
#   MASTER          local[*] unless it names a cluster
#   SUBMIT_OPTIONS  more options for spark-submit, split at spaces
#   PYTHON          the driver's Python (python3)
#   SPARK_HOME      another Spark than the one that the Python's pyspark package brings
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
python=${PYTHON:-python3}
if [ $# -lt 2 ]; then
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p;}' "$0" >&2
    exit 2
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

"$python" "$here/pack.py" "$work/job.zip"
printf 'import sys\n\nfrom spark.job import main\n\nsys.exit(main([*sys.argv[1:], "--master", ""]))\n' >"$work/report.py"

if [ -z "${SPARK_HOME:-}" ]; then
    SPARK_HOME=$("$python" -c 'import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent)')
fi
PYSPARK_PYTHON=$python
export SPARK_HOME PYSPARK_PYTHON

# SUBMIT_OPTIONS is a list: it has to be split.
# shellcheck disable=SC2086
"$SPARK_HOME/bin/spark-submit" --master "${MASTER:-local[*]}" --name gateway-report \
    --py-files "$work/job.zip" ${SUBMIT_OPTIONS:-} "$work/report.py" "$@"
