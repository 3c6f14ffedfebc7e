"""A result made by hand, for what shows it."""

from gateway.harness.real.result import Result, counts_of, times_of
from gateway.judging.faults import Fault
from tests.gateway.harness.real.test_verdict import good


def result(*faults: Fault) -> Result:
    case = good()
    return Result(
        ok=not faults,
        seed=7,
        nodes=3,
        duration_s=60,
        took_s=75.5,
        rate=20.0,
        counts=counts_of(case, faults),
        times=times_of(case, ()),
        injected={"kill": 3},
        skipped={"diskfull": "a small disk needs Linux and root"},
        ends={"failfsync": 1},
        starts=4,
        entries={node: facts.seq for node, facts in case.mesh.items()},
        schedule=("    1.5 s  kill       n1 for 0.5 s", "    2.5 s  oneway     n1 > n2 for 1.0 s"),
        faults=faults,
        repeat="gateway harness run --seed 7",
        directory="/home/somebody/runs",
        kept=bool(faults),
    )
