"""Modules for pages in a browser."""
