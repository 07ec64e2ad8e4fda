"""Rules of errors.yaml."""
