"""A small asynchronous client of a local gateway.

::

    async with GatewayClient(socket=home.socket) as gateway:
        agent = gateway.agent("jen")
        await agent.send("bob@lab", "hello")
        async with agent.turns(session="jen-1") as turns:
            async for turn in turns:
                await turn.reply("got it")
"""

from gateway.client.agent import AgentClient
from gateway.client.gateway import GatewayClient
from gateway.client.turns import Turn, Turns

__all__ = ["AgentClient", "GatewayClient", "Turn", "Turns"]
