"""A sixth storage engine, from outside the package: each kind of entity is one JSON file."""
