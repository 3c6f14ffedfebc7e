"""Local queues between the gateway and its agents: credit, leases, redelivery. Pure; time is an argument."""
