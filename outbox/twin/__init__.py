"""The journal's twin in memory, a noun a file; ``outbox.memory`` puts them together."""
