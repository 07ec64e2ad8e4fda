"""Rules of lifecycle.yaml about how stores keep entities: PostgreSQL, SQLite, Redis and buckets."""
