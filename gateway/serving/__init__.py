"""Listeners: their sockets, and uvicorn as we want it."""
