import re

from spark.incidentlist import MEANINGS, classes, samples
from spark.limits import SAMPLES_MAX
from spark.rules import IncidentClass
from spark.summary import Bucket, ClassCount, IncidentCount
from tests.spark.test_report import summary

AT = 1_780_000_000_000


def plain(html):
    return " ".join(re.sub("<[^>]*>", " ", html).split())


def test_a_class_has_its_numbers_and_a_column_where_its_incidents_opened():
    page = classes(
        summary(
            buckets=tuple(Bucket(AT + i * 1000, 1, 0, 0) for i in range(4)),
            classes=(ClassCount("dead_letter", "critical", 1200, 2), ClassCount("late_ack", "minor", 1, 0)),
            incident_counts=(
                IncidentCount(AT + 1000, "dead_letter", 1000),
                IncidentCount(AT + 3000, "dead_letter", 200),
            ),
        )
    )
    assert re.findall(r'<rect class="bad" x="([\d.]+)"', page) == ["1.08", "3.08"]
    assert "Dead letter" in page
    assert " 1 200 2 " in plain(page)
    assert plain(page).endswith("Late ack on the other disk, later than promised 1 0")


def test_each_class_says_what_it_means_and_no_other():
    assert set(MEANINGS) == set(IncidentClass)
    assert all(len(words) < 80 for words in MEANINGS.values())


def test_without_incidents_or_times_it_says_so():
    assert "None: every promise was kept." in classes(summary(classes=()))
    assert "Dead letter" in classes(summary(buckets=()))
    assert samples(summary(incidents=())) == '<p class="none">None.</p>'


def test_each_sample_has_its_command_and_there_are_not_too_many():
    page = samples(summary(size=SAMPLES_MAX * 2))
    assert page.count("<code>gateway trace boom</code>") == SAMPLES_MAX
    assert "30 of 9" in plain(page)
    assert "open from 2026-05-28 20:26:40 UTC to 2026-05-28 20:26:41 UTC" in page
    assert "3 attempts" in page
