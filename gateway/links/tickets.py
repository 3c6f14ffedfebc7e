"""Tickets for sockets to other gateways: prove, be proved to, renew. Every socket takes one.

The gateway proves itself before it is told anything; answers are bounded; redirects are not followed.
"""

from dataclasses import dataclass
from http import HTTPStatus

import aiohttp

from auth.addresses import check_gateway_url
from auth.errors import WrongGateway
from auth.gateway_proofs import Pin
from auth.invites import InviteToken
from auth.joiner import Joiner, Trusted
from auth.limits import ENTROPY_BYTES
from auth.messages import CHALLENGE_PATH, EXCHANGE_PATH, RENEW_PATH
from gateway.api.problem import refusal_of
from gateway.clock import Clock
from gateway.errors import Unreachable
from gateway.links.limits import ANSWER_BYTES_MAX, ASK_WITHIN_S
from outbox.ids import NodeId


@dataclass(frozen=True, slots=True)
class Opening:
    """What opens one socket, and whose it is."""

    gateway: NodeId
    headers: dict[str, str]


class TicketOffice:
    """Gets tickets for one node. One HTTP client for its life; close it at the end."""

    def __init__(self, joiner: Joiner, clock: Clock, *, allow_plain: bool) -> None:
        self._joiner = joiner
        self._clock = clock
        self._allow_plain = allow_plain
        self._http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ASK_WITHIN_S), trust_env=False)

    async def close(self) -> None:
        """Close the HTTP client."""
        await self._http.close()

    async def renew(self, url: str, pin: Pin, room: str, path: str) -> Opening:
        """A member's opening for one socket.

        Raises WrongGateway, BadJoinCode (an address that is never called), Denied, Unreachable.
        """
        trusted = await self._trust(url, pin)
        body = self._joiner.renew(trusted, self._clock.wall_ms(), rooms=(room,))
        return self._opening(trusted, await self._post(url, RENEW_PATH, body), path)

    async def exchange(self, url: str, pin: Pin, token: InviteToken, path: str) -> Opening:
        """A newcomer's opening; the token leaves after the gateway has proved itself. Raises as ``renew``."""
        trusted = await self._trust(url, pin)
        body = self._joiner.exchange(trusted, token, self._clock.wall_ms())
        return self._opening(trusted, await self._post(url, EXCHANGE_PATH, body), path)

    async def _trust(self, url: str, pin: Pin) -> Trusted:
        body, asked = self._joiner.challenge(pin, self._clock.entropy(ENTROPY_BYTES))
        return self._joiner.accept(asked, await self._post(url, CHALLENGE_PATH, body))

    def _opening(self, trusted: Trusted, answer: bytes, path: str) -> Opening:
        ticket = self._joiner.ticket(answer).ws_ticket
        gateway = trusted.gateway.node
        return Opening(gateway, self._joiner.upgrade_headers(gateway, ticket, path, self._clock.wall_ms()))

    async def _post(self, url: str, path: str, body: bytes) -> bytes:
        base = check_gateway_url(url, allow_plain=self._allow_plain)
        headers = {"content-type": "application/json"}
        try:
            async with self._http.post(
                base + path, data=body, headers=headers, allow_redirects=False
            ) as response:
                answer = await _bounded(response.content)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unreachable(
                f"no gateway answers at {base}", hint=f"is it running? ({type(error).__name__})"
            ) from None
        if response.status != HTTPStatus.OK:
            raise refusal_of(base, response.status, answer)
        return answer


async def _bounded(stream: aiohttp.StreamReader) -> bytes:
    answer = b""
    async for chunk in stream.iter_chunked(ANSWER_BYTES_MAX):
        answer += chunk
        if len(answer) > ANSWER_BYTES_MAX:
            raise WrongGateway("the answer is too long for a gateway's", hint="check the address")
    return answer
