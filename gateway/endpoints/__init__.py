"""What a gateway answers on its listeners: HTTP and WebSocket, over engine, journal and state room."""
