"""Every error of the lake and of the report job, as branches of the mesh's tree.

::

    MeshError
    ├── CallerError
    │   ├── LakeEmpty        lake_empty      there is nothing to report on
    │   ├── LakeNotEmpty     lake_not_empty  made-up history would mix with collected events
    │   ├── InvalidLake      invalid_lake    an address that names no lake
    │   ├── InvalidThreshold invalid_threshold   a promise that cannot be judged
    │   ├── InvalidMaster    invalid_master  no place that Spark runs at, or no setting of it
    │   └── InvalidSlo       invalid_slo     a line of the SLO file that cannot be read
    └── WorldError
        ├── LakeDamaged      lake_damaged    a file is not what its name says
        ├── LakeBusy         lake_busy       another collector writes to it
        ├── LakeUnreachable  lake_unreachable    its object store does not answer, or refuses
        ├── SparkMissing     spark_missing   the optional parts are not installed
        ├── JavaMissing      java_missing    no Java that Spark can use
        └── SparkFailed      spark_failed    the job itself failed
"""

from outbox.errors import CallerError, WorldError


class LakeEmpty(CallerError):
    """No collected events are there."""

    code = "lake_empty"


class LakeNotEmpty(CallerError):
    """There are events already: generated ones would mix with them."""

    code = "lake_not_empty"


class InvalidLake(CallerError):
    """What was given as ``--lake`` is none, or cannot be used for this."""

    code = "invalid_lake"


class InvalidThreshold(CallerError):
    """A promise for a kind that nobody acknowledges, or of no time at all."""

    code = "invalid_threshold"


class InvalidSlo(CallerError):
    """The SLO file says something that cannot be judged; the message names file, line and field."""

    code = "invalid_slo"


class InvalidMaster(CallerError):
    """What was given as ``--master`` or ``--conf`` is none."""

    code = "invalid_master"


class LakeDamaged(WorldError):
    """A file of the lake cannot be read, or does not hold what its name promises."""

    code = "lake_damaged"
    retryable = False


class LakeBusy(WorldError):
    """Another process is collecting into this lake."""

    code = "lake_busy"


class LakeUnreachable(WorldError):
    """The object store of a lake does not answer, or does not let us in."""

    code = "lake_unreachable"

    def __init__(self, what: str) -> None:
        super().__init__(
            what, hint="is the address right, and do AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY let you in?"
        )


class SparkMissing(WorldError):
    """PySpark, pyarrow or PyYAML is not installed."""

    code = "spark_missing"
    retryable = False

    def __init__(self, what: str, extra: str = "spark") -> None:
        super().__init__(what, hint=f'install them with: pip install "gateway-mesh[{extra}]"')


class JavaMissing(WorldError):
    """No Java of version 17 or later was found."""

    code = "java_missing"
    retryable = False

    def __init__(self, what: str) -> None:
        super().__init__(
            what,
            hint='pip install "gateway-mesh[spark]" (brings one), or install a JDK >= 17 and set JAVA_HOME',
        )


class SparkFailed(WorldError):
    """Spark gave up; its log has the details."""

    code = "spark_failed"
