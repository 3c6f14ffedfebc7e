"""Every kind of errand is gone on with after a restart."""

from typing import Any

import pytest

from gateway.courier.courier import Courier
from gateway.courier.limits import CourierLimits
from gateway.engine.errands import Task
from gateway.engine.turns import Turns
from gateway.engine.unfinished import resumed
from outbox.records import Errand

DETAILS = {
    Task.RECALL: '{"since":"000001-0123456789ab","read":3}',
    Task.LAPSE: "000001-0123456789ab/3",
    Task.SAYING: "3",
    Task.JOINING: '[5,"evt_1","x"]',
    Task.HEARD: '{"signal":"recalled","since":"000001-0123456789ab"}',
    Task.NAMED: '{"since":"000001-0123456789ab","read":3,"refs":[]}',
    Task.AGAIN: '{"since":"000002-0123456789ab","read":["000001-0123456789ab",3]}',
    Task.LOSS: "5 gone",
    Task.QUESTION: '{"since":"000002-0123456789ab","ended":"000001-0123456789ab","seq":3,"wait":true}',
}


@pytest.mark.parametrize("task", Task)
def test_an_errand_is_gone_on_with_as_it_was_kept(task: Task) -> None:
    subject = "x/000002-0123456789ab" if task is Task.LAPSE else "x"
    row = Errand(task, subject, DETAILS.get(task, ""))
    assert resumed(row, Turns(Courier(CourierLimits()), 1, 1)).row == row


def test_what_another_version_left_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match="later"):
        resumed(Errand("later", "x"), Any)
