from auth.scopes import Admin, AsAgent, may_act_as
from outbox.ids import AgentId

JANE, BOB = AgentId("jane"), AgentId("bob")


def test_an_agent_is_itself_only() -> None:
    assert may_act_as(AsAgent(JANE), JANE)
    assert not may_act_as(AsAgent(JANE), BOB)
    assert may_act_as(Admin(), JANE)
