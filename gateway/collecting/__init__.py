"""Collecting over links: an admitted node that runs no gateway reads the outboxes of the others."""
