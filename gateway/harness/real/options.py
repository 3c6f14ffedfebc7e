"""What a user may choose for a run."""

from pathlib import Path

import msgspec

from gateway.config import HostWord
from gateway.harness.real.faultclass import FaultClass
from gateway.harness.real.net import Net


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of ``gateway harness run``."""

    nodes: int
    duration_s: int
    """How long talk and faults go on; then everything is healed and has to come to rest."""
    faults: tuple[FaultClass, ...]
    rate: float
    """Messages a second of the whole mesh, bursts not counted."""
    seed: int
    directory: Path | None = None
    """Where everything goes; it must be empty or new. None makes a temporary one."""
    net: Net = Net.LOOPBACK
    engine_host: HostWord = "inline"
    report: bool = False
    """Whether the outboxes are collected and the Spark report is held against the journals."""
    keep: bool = False
    """Keep homes and logs of a run in which nothing broke."""
    json: bool = False

    @property
    def command(self) -> str:
        """What repeats the run."""
        faults = ",".join(self.faults) or "none"
        net = "" if self.net is Net.LOOPBACK else f" --net {self.net}"
        host = "" if self.engine_host == "inline" else f" --engine-host {self.engine_host}"
        report = " --report" if self.report else ""
        return (
            f"gateway harness run --nodes {self.nodes} --duration {self.duration_s} --faults {faults}"
            f" --rate {self.rate:g} --seed {self.seed}{net}{host}{report}"
        )
