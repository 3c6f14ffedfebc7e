"""uvicorn's WebSocket protocol, which stops reading only when messages pile up.

As it comes it stops at each message and goes on when the application has taken it: two calls of the kernel a
message, and applications mostly take them at once.
"""

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol


class WsProtocol(WebSocketsSansIOProtocol):
    """One socket. What is not taken is two messages, and what else came in one read with the second."""

    def send_receive_event_to_app(self) -> None:
        """A message is whole: read on if the application has taken the one before."""
        if not self.queue.empty():
            super().send_receive_event_to_app()
            return
        paused, self.read_paused = self.read_paused, True  # a socket that has stopped is not stopped again
        super().send_receive_event_to_app()
        self.read_paused = paused
