import pytest

from spark.errors import InvalidMaster
from spark.masters import LOCAL, SUBMITTED, Place, parse_settings, place_of


@pytest.mark.parametrize(
    ("master", "place"),
    [
        (LOCAL, Place.LOCAL),
        ("local", Place.LOCAL),
        ("local[2]", Place.LOCAL),
        ("spark://host:7077", Place.CLUSTER),
        ("k8s://https://host:6443", Place.CLUSTER),
        ("yarn", Place.CLUSTER),
        ("sc://host:15002/;token=x", Place.CONNECT),
        (SUBMITTED, Place.SUBMITTED),
    ],
)
def test_a_master_says_where_the_job_runs(master, place):
    assert place_of(master) is place


@pytest.mark.parametrize(
    "master", ["locale", "local[0]", "http://host", "mesos://host", "local[*] ", "lokal[2]"]
)
def test_anything_else_is_refused_with_what_to_write(master):
    with pytest.raises(InvalidMaster) as caught:
        place_of(master)
    assert "local[*]" in caught.value.hint


def test_settings_are_pairs_of_spark():
    assert parse_settings(["spark.executor.memory=2g", "spark.x=a=b", "spark.y="]) == {
        "spark.executor.memory": "2g",
        "spark.x": "a=b",
        "spark.y": "",
    }
    for bad in ("spark.executor.memory", "executor.memory=2g", "=x"):
        with pytest.raises(InvalidMaster, match="no setting"):
            parse_settings([bad])
