"""From collected outboxes to SLA incidents: rules as data, one group-by, one report."""
