"""Records that the local listener answers with: written by the endpoints, read by the client. No I/O."""
