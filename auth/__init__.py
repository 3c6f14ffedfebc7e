"""Keys, invites, proofs and tickets: who may join the mesh and open a socket. Knows nothing of HTTP."""
