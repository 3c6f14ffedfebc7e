"""``gateway harness run``: real gateways under faults, and a verdict from what they left on their disks."""
