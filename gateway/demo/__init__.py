"""``gateway demo``: three real gateways, a conversation, a crash, and a verdict over what their journals say."""
