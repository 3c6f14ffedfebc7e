from tests.spark.test_report import summary


def test_counts_what_is_open_and_what_was_not_collected():
    shown = summary(size=2)
    assert shown.open_incidents == 6
    assert shown.missing_nodes == ("vps0", "vps1")
    assert [line.source for line in shown.of("kind")] == ["message", "reply"]
