"""The schema of a database: migrations, and the roles that own and use it."""
