"""Every bound of a fleet, with its reason."""

COMMAND_WITHIN_S = 60.0
"""``gateway init``, ``invite``, ``join``: below a second on an idle machine; only a failure waits so long."""

READY_WITHIN_S = 60.0
"""From the start of a process to ``/readyz``, and until all nodes see each other and all agents."""

STOP_WITHIN_S = 15.0
"""From SIGTERM to the end of a process; afterwards SIGKILL."""

LOOK_EVERY_S = 0.1
"""Between two looks at a condition that only another process can tell."""

LOG_LINES = 15
"""Of each gateway's log, shown when something went wrong."""
