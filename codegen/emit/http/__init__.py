"""Emitters of OpenAPI documents for the methods that have routes."""
