"""Loading of specs: YAML with source positions, schema validation, rules, and the indexed model."""
