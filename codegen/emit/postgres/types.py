"""The PostgreSQL types and defaults of record fields."""

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
"""The PostgreSQL type of each type of a record field."""
EMPTY = {
    "text": "''",
    "bytea": "''",
    "boolean": "false",
    "jsonb": "'null'",
    "timestamptz": "clock_timestamp()",
    "text[]": "'{}'",
}
"""The defaults of required columns by type; 0 for all others."""
