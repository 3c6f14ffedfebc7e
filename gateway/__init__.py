"""The gateway of a node: engine, links, endpoints and the command line."""
