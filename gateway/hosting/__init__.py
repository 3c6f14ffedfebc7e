"""Where the tick runs: in the event loop, or in a process of its own."""
