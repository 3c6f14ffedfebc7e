"""The Yjs state room: signed records, the index over them, replication. Knows nothing of HTTP."""
