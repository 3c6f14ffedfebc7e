from spark.summary import forgetting
from tests.spark.test_report import summary


def test_counts_what_is_open_and_what_was_not_collected():
    shown = summary(size=2)
    assert shown.open_incidents == 6
    assert shown.missing_nodes == ("vps0", "vps1")
    assert [line.source for line in shown.of("kind")] == ["message", "reply"]


def test_what_was_forgotten_is_told_by_node_over_all_epochs():
    forgot = forgetting(summary(size=2), {("vps", "1"): 3, ("vps", "2"): 4, ("elsewhere", "1"): 5})
    assert [(stream.node, stream.forgotten) for stream in forgot.streams] == [("vps", 7)]
