"""Links between gateways: how outboxes travel."""
