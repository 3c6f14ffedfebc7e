"""The wall clock as the engine writes it: it never goes back.

A clock that was set back is followed by running at half speed until the real one has caught up, as adjtime
does: what was created later also says so, and no timer stands still for as long as the clock was wrong. A
clock that was wrong by more than ``LEAD_MS_MAX`` is believed at once: years of half speed would help nobody.
"""

from gateway.engine.inputs import Now
from gateway.engine.limits import LEAD_MS_MAX
from outbox.chain import Head
from outbox.envelope import decode_event
from outbox.errors import CursorError
from outbox.ids import Seq
from outbox.store import Store
from outbox.timestamps import parse_rfc3339


class SteadyClock:
    """Begins where the newest entry of the own outbox stands, if the machine's clock is behind it."""

    def __init__(self, newest_ms: int, now: Now) -> None:
        self.base = Now(max(newest_ms, now.wall_ms), now.mono_ms)
        """Where the lead over the machine's clock began; without a lead, the last reading."""

    def read(self, now: Now) -> Now:
        """The time to go by."""
        time = steady(self.base, now)
        if time.wall_ms == now.wall_ms:
            self.base = now
        return time

    def peek(self, now: Now) -> Now:
        """The same, without remembering it."""
        return steady(self.base, now)


def steady(base: Now, now: Now) -> Now:
    """The time to go by, from where a clock's lead began."""
    passed_ms = max(0, now.mono_ms - base.mono_ms)
    slow_ms = base.wall_ms + passed_ms // 2
    if not now.wall_ms < slow_ms <= now.wall_ms + LEAD_MS_MAX:
        return now
    return Now(slow_ms, now.mono_ms)


def newest_ms(store: Store) -> int:
    """When the newest entry of the own outbox was created, by its own word; 0 when there is none."""
    head = store.head()
    if not head.seq:
        return 0
    try:
        page = store.read(Head(head.epoch, Seq(head.seq - 1), b""), 1, 1)
    except CursorError:
        return 0  # all of it was forgotten
    return parse_rfc3339(decode_event(page.entries[-1].body).created_at) if page is not None else 0
