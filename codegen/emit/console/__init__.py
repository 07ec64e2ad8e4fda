"""Emitters of modules for pages in a browser."""
