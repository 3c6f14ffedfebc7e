"""The steps of the journal's tables, one a file; ``outbox.schema`` lists them."""
