"""Emitters of reference pages and of JSON Schemas for editors."""
