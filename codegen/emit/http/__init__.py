"""OpenAPI documents of the methods that have routes."""
