"""``gateway demo``: three real gateways, a conversation, a crash, and a verdict over the journals."""
