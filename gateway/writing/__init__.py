"""Who writes to a node's journal: the gateway itself, or a process of its own beside it."""
