"""Collected outboxes as files: what reports are made of."""
