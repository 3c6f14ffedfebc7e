"""Every bound of the lake and of the report, with its reason."""

FILE_ROWS_MAX = 20_000
"""Rows that make a full lake file: about 40 MB while it is being built, and quick to list."""

COLLECT_EVERY_S = 2.0
"""Between two looks at an outbox that is followed: reports are made of minutes, not of milliseconds."""

PROOFS_EVERY = 30
"""Of so many of these looks one goes to the state room: forks are rare, and it is read as a whole."""

LOOK_AROUND_S = 60.0
"""Over links the state room is brought up to date so often while a link is kept."""

VISIT_EVERY_S = 5.0
"""The same over links, which a gateway pays for as well."""

FORK_ROWS_MAX = 100_000
"""Entries of another history that are kept as evidence: a few files, however long a copy ran unseen."""

COMPACT_ROWS_MAX = 1_000_000
"""Rows of a file that was made from smaller ones: about 30 MB, and one task of Spark."""

TEXT_MAX = 500
"""Characters kept of an error or a reason; the whole text stays in the outbox."""

COUNT_MAX = 2**31 - 1
"""Attempts and deliveries above this are nonsense from a stranger and no reader's integer."""

CREATED_AT_MIN_MS = 1_577_836_800_000
"""2020-01-01: before this project; an earlier time is a clock that was never set."""

CREATED_AHEAD_MS_MAX = 24 * 3600 * 1000
"""A day: more than any time zone mistake of a clock that is otherwise right."""

TASK_PROGRESS_MS = 15 * 60 * 1000
"""Without a word from the agent of a task for this long somebody should ask."""

TASK_COMPLETE_MS = 60 * 60 * 1000
"""A task that was taken on without an estimate is done by then."""

CLOCK_SKEW_MS = 1000
"""An ACK this much older than what it answers: NTP keeps clocks closer, and no link is faster than none."""

GAP_RANGES_MAX = 1000
"""Missing ranges named for one stream; more of them are counted."""

CONDITIONS_MAX = 50
"""Ranges in the condition of a query: Spark compiles each of them."""

SAMPLE_IDS_MAX = 5
"""Examples named in a skill review."""

JAVA_VERSION_MIN = 17
"""The oldest Java that Spark 4 runs on."""

JAVA_CHECK_S = 20
"""``java -version`` takes 0.1 s; a broken launcher may hang."""

ARCHIVE_BYTES = 200 * 1024 * 1024
"""What the classes of Spark take in a class archive; twice as much must be free for one to be made."""

ARCHIVE_WITHIN_S = 60.0
"""A JVM writes one in three seconds; on a slow disk it is waited for so long."""

DRAFT_AGE_S = 24 * 3600.0
"""A draft that is older is of a report that was killed."""

ARCHIVE_AGE_S = 180 * 24 * 3600.0
"""An archive that was not read for so long is of a Java or a Spark that is gone."""

SMALL_LAKE_BYTES = 64 * 1024 * 1024
"""Below this the optimising JIT compiler costs more than it brings, so it stays off."""

SAMPLES_MAX = 30
"""Incidents shown in the HTML report, worst first; Parquet has all of them."""

INCIDENTS_JSON_MAX = 1000
"""Incidents listed in ``incidents.json``."""

SLO_FILE_CHARS_MAX = 256 * 1024
"""A hundred objectives with comments are 100 kB; more is some other file."""

SLOS_MAX = 100
"""Each is six counters of one pass over the lifecycle table."""

ROUTES_MAX = 10
"""Routes in the table of the slowest: what is read; Parquet has all of them."""

AGENTS_MAX = 10
"""Agents in the latency chart, likewise."""

CAPABILITIES_MAX = 10
"""Capabilities likewise."""

FLOWS_MAX = 24
"""Ribbons between nodes; more cannot be told apart."""

BUCKETS_MAX = 60
"""Columns of the chart over time: wide enough to touch on a phone's screen."""

THREADS_MAX = 5
"""Threads drawn: what an operator reads before picking up the phone."""

THREAD_EVENTS_MAX = 12
"""Messages drawn of one thread, those with incidents first."""

NAME_MAX = 40
"""Characters shown of a name; an ordinary one is whole, a hostile one cannot fill the page."""

FOLLOW_FILES_MAX = 200
"""Files of a lake that one micro-batch takes: with the collector's pages about a million events."""

FOLLOW_HORIZON_MS = 24 * 3600 * 1000
"""A finished message is remembered so long after it was last heard of: longer than any collector is away."""

FOLLOW_LINGER_MS = 10 * 60 * 1000
"""A finished message is at hand so long: what its nodes still say of it is collected by then."""

NAMES_MAX = 20
"""Nodes listed by name in the head of the page."""

DETAIL_MAX = 120
"""Characters of an error in the HTML report: all of them escaped leave the page below 100 KiB."""

MAINTENANCES_MAX = 1000
"""Announcements of maintenance of one node that a report looks at, the latest: years of an honest node."""

MAINTENANCES_SHOWN = 100
"""Of all nodes, in ``incidents.json``."""

MAINTENANCES_NAMED = 5
"""Of these, at the head of the page."""
