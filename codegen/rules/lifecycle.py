"""Rules of lifecycle.yaml."""
