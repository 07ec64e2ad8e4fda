"""Rules of callers.yaml."""
