"""Version 12, 2026-11: fewer pages change with a commit.

Most rows are open for milliseconds. Each index that has them for so long costs a page in the commit that puts
them in and one in the commit that takes them out. So deliveries are listed by state from the moment when
something was heard of them; before, there is the index of what each node has not answered. All turns of an
agent are found by their states.
"""

from outbox.migration import Migration

_INDEXES = """
DROP INDEX deliveries_state;
CREATE INDEX deliveries_heard ON deliveries (state, created_at_ms) WHERE state <> 'emitted';
DROP INDEX deliveries_unanswered;
CREATE INDEX deliveries_unanswered ON deliveries (node, seq, state) WHERE state = 'emitted';
DROP INDEX received_agent;
"""

STEP = Migration(12, "fewer pages", _INDEXES)
"""The step from version 11."""
