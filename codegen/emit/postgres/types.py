"""What fields of a record are in PostgreSQL."""

from __future__ import annotations

TYPES = {
    "string": "text",
    "bytes": "bytea",
    "bool": "boolean",
    "int32": "integer",
    "sint32": "integer",
    "uint32": "integer",
    "int64": "bigint",
    "sint64": "bigint",
    "uint64": "bigint",
    "double": "double precision",
    "float": "real",
    "json": "jsonb",
    "timestamp": "timestamptz",
}
"""What each type of a record's field is in PostgreSQL."""
EMPTY = {
    "text": "''",
    "bytea": "''",
    "boolean": "false",
    "jsonb": "'null'",
    "timestamptz": "clock_timestamp()",
    "text[]": "'{}'",
}
"""What stands in a column that needs a value and was given none; 0 elsewhere."""
