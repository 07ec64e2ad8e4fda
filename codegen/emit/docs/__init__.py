"""Reference pages, parts of the README, and JSON Schemas for editors."""
