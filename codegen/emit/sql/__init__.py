"""Names and fields that the emitters for PostgreSQL and SQLite share."""
