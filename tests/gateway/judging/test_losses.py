"""What went with a history is counted, whether others had read it or not."""

from msgspec.structs import replace

from gateway.judging.losses import NOTHING, losses
from gateway.judging.pasts import NONE
from tests.gateway.judging.bygones import again, gave_up, past, present
from tests.gateway.judging.stories import ANSWER, VPS, mesh, witness


def test_what_others_have_read_is_forgotten_and_what_nobody_has_is_gone():
    now, told = present(), witness().account()
    assert losses(now, told, gave_up()).forgotten == {ANSWER}
    assert losses(now, told, gave_up()).gone == set()
    now[VPS] = replace(now[VPS], received={})
    assert losses(now, told, gave_up()).gone == {ANSWER}


def test_what_agents_of_a_clone_were_told_counts_as_well():
    told = replace(witness().account(), promises=())
    clone = past(account=witness().account())
    assert losses(present(), told, gave_up()).forgotten == set()
    assert losses(present(), told, gave_up(clone)).forgotten == {ANSWER}


def test_a_turn_that_was_dealt_once_more_is_counted_once():
    assert losses(present(), again().account(), gave_up()).dealt_again == 1
    assert losses(present(), witness().account(), gave_up()).dealt_again == 0
    assert losses(mesh(), again().account(), NONE) == NOTHING
