"""Bounds of backups, each with its reason."""

PAGES_AT_ONCE = 256
"""A MiB between two looks at the progress."""

MANIFEST_BYTES_MAX = 1024 * 1024
"""The list of a backup's parts: some lines of JSON."""

PIECE_BYTES = 1024 * 1024
"""Read and hashed at a time."""

BLOB_LIST_BYTES_MAX = 64 * 1024 * 1024
"""Half a million blobs."""
