"""One Spark session for all tests: starting it is what takes time."""

from pathlib import Path

import pytest

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
    with spark_session(setup) as session:
        yield session
