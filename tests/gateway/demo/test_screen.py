"""What the screen claims is what was looked at."""

import pytest

from gateway.demo.screen import passed


@pytest.mark.parametrize("reported", [True, False])
def test_only_a_run_with_a_report_speaks_of_one(reported):
    assert ("the report agrees" in passed(reported=reported)) is reported
    assert passed(reported=reported).startswith("PASSED")
