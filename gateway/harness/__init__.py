"""Proof that an operator can run: many simulated meshes under faults, judged by what is in their stores."""
