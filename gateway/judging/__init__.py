"""What a run must have come to: journals read, invariants checked, every broken promise named."""
