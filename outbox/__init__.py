"""The append-only outbox of one gateway: envelope, chain, delivery rules and the journal that keeps them."""
