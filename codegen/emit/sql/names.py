"""Names of columns and parameters in SQL, chosen so that no field's name can mean something else there.

A field's name begins with a letter and has no two underscores in a row. Whatever begins with an underscore is
therefore the engine's own, and so is a parameter that begins with neither of the two prefixes below.
"""

from __future__ import annotations

RECORD, GIVEN = "record_", "given_"
"""Prefixes of parameters: record fields, and request fields of an edge."""

_POSTGRES = """
all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both
case cast char character check coalesce collate collation column concurrently constraint create cross
current_catalog current_date current_role current_schema current_time current_timestamp current_user dec
decimal default deferrable desc distinct do else end except exists extract false fetch float for foreign
freeze from full grant greatest group grouping having ilike in initially inner inout int integer
intersect interval into is isnull join json json_array json_arrayagg json_exists json_object
json_objectagg json_query json_scalar json_serialize json_table json_value lateral leading least left
like limit localtime localtimestamp merge_action national natural nchar none normalize not notnull null
nullif numeric offset on only or order out outer overlaps overlay placing position precision primary real
references returning right row select session_user setof similar smallint some substring symmetric
system_user table tablesample then time timestamp to trailing treat trim true union unique user using
values varchar variadic verbose when where window with xmlattributes xmlconcat xmlelement xmlexists
xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable
"""
_PLPGSQL = "begin by declare execute foreach if loop strict while"
_SQLITE = """
add all alter and as autoincrement between case check collate commit constraint create cross current_date
current_time current_timestamp default deferrable delete distinct drop else escape except exists false
filter foreign from full glob group having if in index inner insert intersect into is isnull join left
like limit match natural not nothing notnull null on or order outer over primary raise references regexp
returning right select set table then to transaction true union unique update using values when where
window
"""
_OF_EVERY_TABLE = frozenset(("tableoid", "xmin", "cmin", "xmax", "cmax", "ctid", "old", "new"))
RESERVED = frozenset(f"{_POSTGRES} {_PLPGSQL} {_SQLITE}".split())
"""Words of one of the languages that a column has only in quotes."""


def quoted_name(field: str) -> str:
    """A name as SQL says it."""
    return f'"{field}"' if field in RESERVED else field


def postgres_column(field: str) -> str:
    """The column of a field in PostgreSQL; what every table has under this name is left to it."""
    return f"_{field}" if field in _OF_EVERY_TABLE else quoted_name(field)


def aside(name: str, *fields: str) -> str:
    """A name of the engine's own for something that stands beside fields."""
    return f"_{name}" if name in fields else name
