"""A node in one file, and a node made of one again."""
