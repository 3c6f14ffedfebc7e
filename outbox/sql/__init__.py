"""The journal's tables in SQL, a noun a file: the questions for readers, and what the one writer adds."""
