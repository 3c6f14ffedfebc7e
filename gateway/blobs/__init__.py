"""Blobs of one gateway: their files, and how bytes become one."""
