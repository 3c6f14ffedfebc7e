"""A real browser, spoken to over its own debugging pipe: what a page shows, asks for and complains about."""

import base64
import fcntl
import json
import os
import shutil
from pathlib import Path

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))),
    None,
)

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip


def _spawn(orders: int, answers: int, profile: Path) -> int:
    """Start it; it reads its orders from descriptor 3 and answers on 4, wherever ours happen to be."""
    pipes = [(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10), place) for fd, place in ((orders, 3), (answers, 4))]
    os.close(orders)
    os.close(answers)
    actions = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    actions += [(os.POSIX_SPAWN_DUP2, fd, place) for fd, place in pipes]
    command = [str(CHROMIUM), *_FLAGS, f"--user-data-dir={profile}"]
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=actions)
    for fd, _ in pipes:
        os.close(fd)
    return pid


class Browser:
    """One page of a headless Chromium. Not thread safe; every call waits for its answer."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        self._pid = _spawn(theirs_in, theirs_out, profile)
        self._buffer, self._last, self._session = b"", 0, None
        self.events: list[dict] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._to)  # end of orders: it goes by itself
        while os.read(self._from, 1 << 20):
            pass
        os.close(self._from)
        os.waitpid(self._pid, 0)

    def call(self, method: str, **params: object) -> dict:
        """Give one order and wait for its answer; what happens meanwhile is in ``events``."""
        self._last += 1
        order = {"id": self._last, "method": method, "params": params}
        if self._session is not None:
            order["sessionId"] = self._session
        os.write(self._to, json.dumps(order).encode() + b"\0")
        while True:
            message = self._read()
            if message.get("id") == self._last:
                assert "error" not in message, message["error"]
                return message["result"]
            self.events.append(message)

    def open(self, path: Path, width: int, *, dark: bool = False) -> None:
        """Show a file at so many pixels' width."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())

    def ask(self, expression: str) -> object:
        """The value of a JavaScript expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, path: Path, *, height: int | None = None) -> None:
        """The page as PNG, from its top: all of it, or so many pixels."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {
            "x": 0,
            "y": 0,
            "scale": 1,
            "width": size["width"],
            "height": min(size["height"], height or 20_000),
        }
        shot = self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _read(self) -> dict:
        while b"\0" not in self._buffer:
            part = os.read(self._from, 1 << 20)
            assert part, "the browser is gone"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)
