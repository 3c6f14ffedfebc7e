"""Bounds of blobs, each with its reason."""

PIECE_BYTES = 256 * 1024
"""What is read or written at once: it pays for a hop to another thread, and nobody waits long for it."""

SYNC_EVERY_BYTES = 16 * 1024 * 1024
"""What comes is brought to the disk in such steps: the last sync is short, and so is that of a commit which
waits for the file system meanwhile."""

UNSWEPT_S = 24 * 3600.0
"""So long a transfer that was cut short may be gone on with, and a file that no row knows stays."""
