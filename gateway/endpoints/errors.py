"""What the listeners themselves refuse, before the engine is asked.

::

    CallerError
    └── RequestError                status code
        ├── BadRequest              400    invalid_request         a body, a parameter or a frame
        ├── Unauthorized            401    unauthorized            no token, or nobody's
        ├── Forbidden               403    forbidden               the token may not do this
        ├── ForeignOrigin           403    foreign_origin          a web page of somebody else asks
        ├── NoRoute                 404    no_route
        ├── MethodRefused           405    method_not_allowed
        ├── BodyTooLarge            413    too_large
        ├── NotJson                 415    unsupported_media_type
        ├── NotOctets               415    unsupported_media_type  a blob is no JSON and no form
        ├── BadRange                416    range_not_satisfiable
        ├── Misdirected             421    misdirected             the Host header names another server
        └── SubscriptionEnded              subscription_ended      subscribe again, or not at all
"""

from typing import ClassVar

from outbox.errors import CallerError


class RequestError(CallerError):
    """A request that a listener refuses; ``status`` is its HTTP status."""

    status: ClassVar[int] = 400


class BadRequest(RequestError):
    """A body, a parameter or a frame does not have the shape that the protocol asks for."""

    code = "invalid_request"


class Unauthorized(RequestError):
    """No token, or one that is nobody's: the answer says the same to all."""

    code = "unauthorized"
    status = 401

    def __init__(self) -> None:
        super().__init__("a valid token is needed", hint="tokens are in the home, under agents/")


class Forbidden(RequestError):
    """The caller is known and may not do this."""

    code = "forbidden"
    status = 403


class ForeignOrigin(RequestError):
    """A browser says that a page of another site asks."""

    code = "foreign_origin"
    status = 403


class NoRoute(RequestError):
    """Nothing is served at this path."""

    code = "no_route"
    status = 404


class MethodRefused(RequestError):
    """The path does not take this method."""

    code = "method_not_allowed"
    status = 405


class BodyTooLarge(RequestError):
    """The body is above the limit; it was not read to its end."""

    code = "too_large"
    status = 413


class NotJson(RequestError):
    """The body does not say that it is JSON."""

    code = "unsupported_media_type"
    status = 415


class NotOctets(RequestError):
    """The body does not say that it is plain octets."""

    code = "unsupported_media_type"
    status = 415


class BadRange(RequestError):
    """Nothing of the stretch that was asked for is there."""

    code = "range_not_satisfiable"
    status = 416

    def __init__(self, size: int) -> None:
        super().__init__(f"the blob has {size} bytes")


class Misdirected(RequestError):
    """The Host header is not one of this listener's names: a rebound name, or a proxy that was not meant."""

    code = "misdirected"
    status = 421


class SubscriptionEnded(RequestError):
    """The subscription of a socket is over; ``close_code`` says how the socket closes."""

    code = "subscription_ended"

    def __init__(self, close_code: int, what: str) -> None:
        super().__init__(what)
        self.close_code = close_code
