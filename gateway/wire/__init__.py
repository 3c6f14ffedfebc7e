"""The frames of a link between two gateways. Pure: bytes in, frozen records out."""
